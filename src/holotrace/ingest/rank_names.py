"""The rank in a file name: `rank-3.json`, `worker2_step_12.pt.trace.json.gz`, `trace_rank_0.json`."""

from __future__ import annotations

import re

from holotrace.locations import name_of

_RANK_IN_NAME = re.compile(r"(?<![a-z0-9])(?P<of>[a-z]+[-_.])?rank[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE)
_WORKER_IN_NAME = re.compile(r"(?<![a-z0-9])worker[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE)
_CAPTURE_NAME = re.compile(r"graph_capture_rank_?\d+\.|bs_\d+_rank_?\d+\.")
"""vLLM writes `graph_capture_rank_0.*`, SGLang `bs_32_rank0.json.gz`."""

_PARALLEL_AXES = {"local", "node", "tp", "pp", "dp", "ep", "cp", "sp", "dcp"}


def rank_in_name(path: str) -> int | None:
    """Return the rank in a file name, or None.

    `rank` takes precedence over `worker`; a rank within a host or along a parallel axis (`local_rank3`, `tp_rank1`) is
    ignored.
    """
    name = name_of(path)
    for match in reversed(list(_RANK_IN_NAME.finditer(name))):
        if (match["of"] or "").rstrip("-_.").lower() not in _PARALLEL_AXES:
            return int(match["rank"])
    worker = _WORKER_IN_NAME.search(name)
    return int(worker["rank"]) if worker else None


def is_capture_name(path: str) -> bool:
    """Return whether this is a file name that inference engines give to recordings of CUDA graph captures."""
    return _CAPTURE_NAME.match(name_of(path)) is not None
