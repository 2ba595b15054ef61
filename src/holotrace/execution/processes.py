"""Process the ranks in worker processes on this machine."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from holotrace.errors import InvalidOptionError
from holotrace.execution import worker
from holotrace.execution.retrying import RetryingExecutor

T = TypeVar("T")

_MEMORY_OF_A_WORKER = 1 << 30
_MOST_KEYS = 100_000
"""A pool remembers which worker ran the last call of each key, but only for this many recently used keys."""


def processes(workers: int | None = None) -> RetryingExecutor:
    """Return a pool of worker processes; use it in a `with` block.

    Workers are spawned, never forked, because a fork copies the locks of Polars and the reader, but not the threads
    that will release them (https://docs.pola.rs/user-guide/misc/multiprocessing). The workers divide the cores among
    themselves, so they do not oversubscribe the machine. Work on the same rank goes to the same worker, which keeps the
    rank open. If a worker is killed, its work is retried.

    Args:
        workers: number of processes; by default one per core, but at most one per GiB of free memory.

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
    count = workers or default_worker_count()
    return RetryingExecutor(functools.partial(WorkerPool, count), at_once=2 * count)


class WorkerPool:
    """A pool of worker processes, which end together with the process that created the pool.

    Each worker has its own queue. Calls with the same key can therefore run in the same worker, which keeps the rank in
    memory.
    """

    def __init__(self, workers: int) -> None:
        """Divide the cores among at most `workers` processes, which are launched by `start` or by the first calls."""
        context = multiprocessing.get_context("spawn")
        workers_end, self._lifeline = context.Pipe(duplex=False)
        threads = max(1, available_cores() // workers)
        begin = functools.partial(worker.begin, threads, workers, workers_end)
        self._start_worker = functools.partial(_Worker, 1, mp_context=context, initializer=begin)
        self._most_workers = workers
        self._workers: list[_Worker] = []
        self._worker_of_key: dict[Hashable, _Worker] = {}

    def submit_near(self, key: Hashable, fn: Callable[[], T], /) -> Future[T]:
        """Call `fn` in the worker that ran the last call with this key, unless that worker is busier than others."""
        chosen = self._least_busy()
        if key is None:
            return chosen.call(fn)
        last = self._worker_of_key.pop(key, chosen)
        if last.call_count() <= chosen.call_count() + 1:
            chosen = last
        self._worker_of_key[key] = chosen
        if len(self._worker_of_key) > _MOST_KEYS:
            del self._worker_of_key[next(iter(self._worker_of_key))]
        return chosen.call(fn)

    def start(self) -> None:
        """Start all workers; they import the libraries that all analyses need."""
        while len(self._workers) < self._most_workers:
            self._workers.append(self._start_worker())
            self._workers[-1].submit(worker.import_libraries)

    def shutdown(self) -> None:
        """Wait for all submitted calls, then end the workers."""
        for each in self._workers:
            each.shutdown()

    def terminate(self) -> None:
        """End the workers now, and wait until they have cleaned up."""
        self._lifeline.close()
        for each in self._workers:
            each.shutdown(cancel_futures=True)

    def _least_busy(self) -> _Worker:
        if len(self._workers) < self._most_workers and all(each.call_count() for each in self._workers):
            self._workers.append(self._start_worker())
        return min(self._workers, key=_Worker.call_count)


class _Worker(ProcessPoolExecutor):
    """One worker process and its unfinished calls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- the arguments of ProcessPoolExecutor
        super().__init__(*args, **kwargs)
        self._calls: list[Future[Any]] = []

    def call_count(self) -> int:
        """Return the number of unfinished calls."""
        self._calls = [call for call in self._calls if not call.done()]
        return len(self._calls)

    def call(self, fn: Callable[[], T]) -> Future[T]:
        """Call `fn` when the earlier calls have finished."""
        self._calls.append(future := self.submit(worker.call, fn))
        return future


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
    """Return the number of cores that this process may use; in a container, the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int | None:
    """Return the memory available for new work, or None if the system does not report it."""
    known = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return min(known, default=None)


def _free_in_machine() -> int | None:
    import psutil  # noqa: PLC0415 -- takes 18 ms; needed only for several ranks and for SQL

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
