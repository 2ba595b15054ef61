"""Run work over ranks in processes of this machine."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from holotrace.errors import InvalidOptionError
from holotrace.execution import worker
from holotrace.execution.retrying import RetryingExecutor

P = ParamSpec("P")
T = TypeVar("T")

_MEMORY_OF_A_WORKER = 1 << 30
# Windows waits for at most 63 handles at once, and the pool needs two:
# https://docs.python.org/3/library/concurrent.futures.html#processpoolexecutor
_MOST_WORKERS = 61 if os.name == "nt" else 1 << 16


def processes(workers: int | None = None) -> RetryingExecutor:
    """Return a pool of worker processes; use it in a `with` block.

    Workers are spawned, never forked: a fork would copy threads and locks of Polars and the reader in an inconsistent
    state (https://docs.pola.rs/user-guide/misc/multiprocessing). Each worker gets its share of the cores, so the pool
    does not oversubscribe the machine. If a worker is killed, its work is retried.

    Args:
        workers: number of processes; by default one per core, limited to one per GiB of free memory.

    Raises:
        InvalidOptionError: `workers` is less than 1.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> if __name__ == "__main__":  # worker processes import this script
    ...     with holotrace.processes(2) as pool:
    ...         result = holotrace.temporal_breakdown(small_job(), executor=pool)
    """
    if workers is not None and workers < 1:
        message = f"workers={workers}: a pool needs at least one worker process"
        raise InvalidOptionError(message)
    count = min(workers or default_worker_count(), _MOST_WORKERS)
    return RetryingExecutor(functools.partial(WorkerPool, count), at_once=2 * count)


class WorkerPool(ProcessPoolExecutor):
    """Worker processes that start when there is work for them, and end with the process that created the pool."""

    def __init__(self, workers: int) -> None:
        """Start at most `workers` processes, and divide the cores among them."""
        context = multiprocessing.get_context("spawn")
        workers_end, self._lifeline = context.Pipe(duplex=False)
        threads = max(1, available_cores() // workers)
        super().__init__(workers, mp_context=context, initializer=worker.begin, initargs=(threads, workers_end))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in a worker."""
        return super().submit(functools.partial(worker.call, fn, *args, **kwargs))

    def terminate(self) -> None:
        """End the workers now, and wait until they have cleaned up."""
        self._lifeline.close()
        self.shutdown(cancel_futures=True)


def reader_threads() -> int | None:
    """Return how many threads the reader may use in this process; None means all cores."""
    text = os.environ.get(worker.THREADS_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def default_worker_count(memory_of_a_worker: int = 0) -> int:
    """Return the default number of workers: one per core, limited by free memory, at least 1.

    Args:
        memory_of_a_worker: bytes that a worker needs; at least 1 GiB is assumed.
    """
    memory = available_memory_bytes()
    if memory is None:
        return available_cores()
    return max(1, min(available_cores(), memory // max(memory_of_a_worker, _MEMORY_OF_A_WORKER)))


def available_cores() -> int:
    """Return the number of cores this process may run on; in a container fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int | None:
    """Return the memory available for new work, or None if the system does not report it."""
    known = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return min(known, default=None)


def _free_in_machine() -> int | None:
    import psutil  # noqa: PLC0415 -- takes 18 ms; only work on several ranks and SQL ask for it

    with suppress(OSError):  # no /proc
        return int(psutil.virtual_memory().available)
    return None


def _free_in_container() -> int | None:
    limit, used = (_read_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return max(0, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else None


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
