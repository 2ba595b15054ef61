"""Work over ranks in processes of this machine."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from holotrace.errors import InvalidOptionError
from holotrace.execution import worker
from holotrace.execution.retrying import RetryingExecutor

P = ParamSpec("P")
T = TypeVar("T")

_MEMORY_OF_A_WORKER = 1 << 30
_MOST_WORKERS = 61 if os.name == "nt" else 1 << 16  # Windows waits for at most 63 handles at once; the pool needs two


def processes(workers: int | None = None) -> RetryingExecutor:
    """Return a pool of worker processes, to be used in a `with` block.

    Workers are spawned, never forked: Polars and the reader hold threads and locks that a fork would copy in the
    middle of their work (https://docs.pola.rs/user-guide/misc/multiprocessing). Each worker gets its share of the
    cores, so that the pool as a whole uses the machine once. Where a worker is killed, what it did is done again.

    Args:
        workers: how many processes; by default one per core, and no more than there is 1 GiB of free memory for.

    Raises:
        InvalidOptionError: `workers` is less than 1.
    """
    if workers is not None and workers < 1:
        message = f"workers={workers}: a pool needs at least one worker process"
        raise InvalidOptionError(message)
    count = min(workers or default_worker_count(), _MOST_WORKERS)
    return RetryingExecutor(functools.partial(WorkerPool, count), at_once=2 * count)


class WorkerPool(ProcessPoolExecutor):
    """Processes of this machine, each started when there is work for it, that end with the process that made them."""

    def __init__(self, workers: int) -> None:
        """Start no more than `workers` processes, and share the cores among them."""
        context = multiprocessing.get_context("spawn")
        of_workers, self._lifeline = context.Pipe(duplex=False)
        threads = max(1, available_cores() // workers)
        super().__init__(workers, mp_context=context, initializer=worker.begin, initargs=(threads, of_workers))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in a worker."""
        return super().submit(functools.partial(worker.call, fn, *args, **kwargs))

    def terminate(self) -> None:
        """End the workers now, and wait until they have cleaned up."""
        self._lifeline.close()
        self.shutdown(cancel_futures=True)


def reader_threads() -> int | None:
    """Return how many threads the reader may use in this process; None stands for all cores."""
    text = os.environ.get(worker.THREADS_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def default_worker_count(memory_of_a_worker: int = 0) -> int:
    """Return one worker per core, as far as free memory goes; at least 1.

    Args:
        memory_of_a_worker: bytes that one needs; a GiB where that is more.
    """
    memory = available_memory_bytes()
    if memory is None:
        return available_cores()
    return max(1, min(available_cores(), memory // max(memory_of_a_worker, _MEMORY_OF_A_WORKER)))


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
