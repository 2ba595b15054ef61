"""Recordings that are opened only once per process, so that tests share the results derived from them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace


@lru_cache(maxsize=32)
def opened(path: Path) -> Trace:
    """Open a recording without the cache on disk, or return it if another test has opened it."""
    return open_trace(path, cache=False)
