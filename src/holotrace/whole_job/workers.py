"""Estimate how many worker processes pay off for a job."""

from __future__ import annotations

import os
from collections.abc import Iterable

from holotrace.execution.processes import default_worker_count
from holotrace.store.trace import Trace

_RANKS_WORTH_A_WORKER = 16
_BYTES_WORTH_A_WORKER = 8 << 20
"""Starting a worker takes as long as analysing about 16 small ranks, or about 8 MiB of compressed traces."""

_MEMORY_PER_BYTE = 16
"""Memory in bytes that a worker may need for all analyses together, per byte of the compressed file."""

_COMPRESSION = 16
"""Estimated ratio of a trace's uncompressed size to its compressed size."""


def worthwhile_workers(traces: Iterable[Trace]) -> int:
    """Return how many worker processes pay off and fit into memory; 1 means that this process should do the work."""
    sizes = [_compressed_size(rank_trace.source) for trace in traces for rank_trace in trace.ranks.values()]
    worth = int(len(sizes) / _RANKS_WORTH_A_WORKER + sum(sizes) / _BYTES_WORTH_A_WORKER)
    if min(worth, len(sizes)) <= 1:
        return 1
    return min(worth, len(sizes), default_worker_count(max(sizes) * _MEMORY_PER_BYTE))


def _compressed_size(path: str) -> int:
    """Return the compressed size of a local file, estimated if it is not compressed; 0 for a remote file."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116 -- the path may be a URL
    except OSError:
        return 0
    return size // _COMPRESSION if path.endswith(".json") else size
