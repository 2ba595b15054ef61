"""Set how much freed memory the allocators of this process keep, and for how long."""

from __future__ import annotations

import ctypes
import os
import sys

ALLOCATOR_VARIABLE = "_RJEM_MALLOC_CONF"
"""Environment variable that Polars' allocator, jemalloc, reads when Polars is imported (Linux only)."""

_KEPT = "narenas:2,dirty_decay_ms:10000,muzzy_decay_ms:10000,oversize_threshold:0"

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 << 20
"""The highest threshold that glibc accepts on 64-bit systems."""

_MOST_KEPT_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Keep freed memory for reuse instead of returning it to the system; call this before Polars is imported.

    Polars, NumPy and our native code allocate and free large columns many times a second. By default, the allocators
    return much of this memory to the operating system at once, and the operating system must zero the pages again for
    the next column. Returning and zeroing pages took a third of the system time of
    `holotrace summary` on a trace of 1 GB.

    With these settings, Polars' allocator keeps freed memory for 10 s, even the memory of columns larger than 8 MB. All
    threads share its two arenas, so each thread can reuse memory that another has freed. With jemalloc's default of four
    arenas per core, `holotrace summary` needed 8 % more memory on the same trace. The C library, which NumPy and our
    native code use, keeps up to 1 GiB; this saves workers 6 % of the CPU time of `wait_causes`. Settings that the
    user made in environment variables take precedence over these settings.

    Options: https://jemalloc.net/jemalloc.3.html#opt.dirty_decay_ms, https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    os.environ.setdefault(ALLOCATOR_VARIABLE, _KEPT)
    if not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_in_c_library()


def _keep_in_c_library() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # glibc has it; musl does not
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT_BYTES)
