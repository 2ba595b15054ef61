"""How long this process keeps memory that Polars frees."""

from __future__ import annotations

import os

ALLOCATOR_VARIABLE = "_RJEM_MALLOC_CONF"
"""Environment variable that Polars' allocator, jemalloc, reads when Polars is imported (Linux only)."""

_KEPT = "narenas:2,dirty_decay_ms:10000,muzzy_decay_ms:10000"


def keep_freed_memory() -> None:
    """Reuse freed memory for 10 s before it goes back to the system; call this before Polars is imported.

    Polars allocates and frees large columns many times a second. By default, much of their memory goes back to the system at
    once and must be cleared again page by page, which took a third of the system time of `holotrace summary` on a trace of
    1 GB. The threads share two arenas, so that each can use what another has freed: with jemalloc's default of four arenas per
    core, the same command needed 8 % more memory. Settings of the user take precedence.

    Options: https://jemalloc.net/jemalloc.3.html#opt.dirty_decay_ms
    """
    os.environ.setdefault(ALLOCATOR_VARIABLE, _KEPT)
