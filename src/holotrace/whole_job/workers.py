"""How many worker processes a job is worth."""

from __future__ import annotations

import os
from collections.abc import Iterable

from holotrace.execution.processes import default_worker_count
from holotrace.store.trace import Trace

_RANKS_WORTH_A_WORKER = 16
_BYTES_WORTH_A_WORKER = 8 << 20
"""Starting a worker takes about as long as analysing this many small ranks, or this many compressed bytes."""

_MEMORY_PER_BYTE = 16
"""How much memory a worker may need for all analyses together, per byte of the compressed file."""

_COMPRESSION = 16
"""Compression makes a trace about this many times smaller; estimates divide the size of uncompressed files by it."""


def worthwhile_workers(traces: Iterable[Trace]) -> int:
    """Return how many worker processes are worth starting and fit into memory; 1 means that this process does the work."""
    sizes = [_compressed_size(rank_trace.source) for trace in traces for rank_trace in trace.ranks.values()]
    worth = int(len(sizes) / _RANKS_WORTH_A_WORKER + sum(sizes) / _BYTES_WORTH_A_WORKER)
    if min(worth, len(sizes)) <= 1:
        return 1
    return min(worth, len(sizes), default_worker_count(max(sizes) * _MEMORY_PER_BYTE))


def _compressed_size(path: str) -> int:
    """Return the size that a local file has or would have when compressed; remote files count as empty."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116 -- the path may be a URL
    except OSError:
        return 0
    return size // _COMPRESSION if path.endswith(".json") else size
