"""Work over ranks in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hta.errors import InvalidOptionError

THREADS_VARIABLE = "HTA_THREADS"
"""Environment variable: how many threads the reader uses in a process; all cores where it is unset."""

_MEMORY_OF_A_WORKER = 1 << 30
_MOST_WORKERS = 61 if os.name == "nt" else 1 << 16  # Windows waits for at most 63 handles at once; the pool needs two


def processes(workers: int | None = None) -> ProcessPoolExecutor:
    """Return a pool of worker processes, to be used in a `with` block.

    Workers are spawned, never forked: Polars and the reader hold threads and locks that a fork would copy in the
    middle of their work (https://docs.pola.rs/user-guide/misc/multiprocessing). Each worker gets its share of the
    cores, so that the pool as a whole uses the machine once.

    Args:
        workers: how many processes; by default one per core, and no more than there is 1 GiB of free memory for.

    Raises:
        InvalidOptionError: `workers` is less than 1.
    """
    if workers is not None and workers < 1:
        message = f"workers={workers}: a pool needs at least one worker process"
        raise InvalidOptionError(message)
    count = min(workers or default_worker_count(), _MOST_WORKERS)
    threads = max(1, available_cores() // count)
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_limit_threads, initargs=(threads,))


def reader_threads() -> int | None:
    """Return how many threads the reader may use in this process; None stands for all cores."""
    text = os.environ.get(THREADS_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def default_worker_count() -> int:
    """Return one worker per core, as far as free memory goes; at least 1."""
    memory = available_memory_bytes()
    return available_cores() if memory is None else max(1, min(available_cores(), memory // _MEMORY_OF_A_WORKER))


def available_cores() -> int:
    """Return the cores this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int | None:
    """Return the memory free for new work, or None where the system does not say."""
    known = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return min(known, default=None)


def _free_in_machine() -> int | None:
    for line in _read_text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _free_in_container() -> int | None:
    limit, used = (_read_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return max(0, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else None


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _limit_threads(threads: int) -> None:
    """Run first in a worker, before Polars is imported there and starts its threads."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    os.environ[THREADS_VARIABLE] = str(threads)
