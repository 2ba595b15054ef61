"""The progress of reading files and of processing many ranks, for pages that wait for a result."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from holotrace.execution.executor import InProcessExecutor, submit_near

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _File:
    name: str
    total_bytes: int
    done_bytes: int = 0


class Reading:
    """A `Progress` that records which file each thread is reading."""

    def __init__(self) -> None:
        """Start without files."""
        self._files: dict[int, _File] = {}
        self._ranks: dict[int, str] = {}

    def start(self, total_bytes: int, description: str) -> None:
        """Record that this thread begins to read a file."""
        self._files[threading.get_ident()] = _File(description, total_bytes)

    def advance(self, byte_count: int, /) -> None:
        """Count bytes that this thread has read."""
        file = self._files.get(threading.get_ident())
        if file is not None:
            file.done_bytes += byte_count

    def finish(self) -> None:
        """Forget the file that this thread was reading."""
        self._files.pop(threading.get_ident(), None)

    def count(self, done: int, total: int, *, work: int | None = None) -> None:
        """Record that a computation has finished `done` of `total` ranks.

        `work` identifies the computation; by default, the id of the current thread does.
        """
        key = threading.get_ident() if work is None else work
        if done < total:
            self._ranks[key] = f"{done:,} of {total:,} ranks done"
        else:
            self._ranks.pop(key, None)

    def text(self) -> str:
        """Return the current progress, such as `reading rank0.json.gz: 45 %; 3 of 128 ranks done`; may be empty."""
        files = (f"reading {file.name}: {_percent(file)} %" for file in list(self._files.values()))
        return "; ".join((*files, *list(self._ranks.values())))


class CountingRanks(InProcessExecutor):
    """Processes the ranks in the caller's thread, and reports the number of finished ranks to a `Reading`."""

    def __init__(self, reading: Reading, rank_count: int) -> None:
        """Report the number of finished ranks, out of `rank_count`, to `reading`."""
        self._reading, self._total, self._done = reading, rank_count, 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` for one rank, and report that this rank is finished."""
        self._reading.count(self._done, self._total)
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            self._done += 1
            self._reading.count(self._done, self._total)


class CountingCalls(Executor):
    """Passes the call for each rank to another executor, and reports to a `Reading` how many ranks are finished."""

    def __init__(self, executor: Executor, reading: Reading, rank_count: int) -> None:
        """Report to `reading` how many of `rank_count` ranks are finished; each computation counts from 0 again."""
        self._executor, self._reading, self._total = executor, reading, rank_count
        self._numbers = itertools.count(1)  # thread-safe, because calls finish in several threads

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit the call, and count it when it finishes."""
        return self._counted(self._executor.submit(fn, *args, **kwargs))

    def submit_near(self, key: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit the call to the worker that ran the last call with this key, and count it when it finishes."""
        return self._counted(submit_near(self._executor, key, fn, *args, **kwargs))

    def _counted(self, future: Future[T]) -> Future[T]:
        future.add_done_callback(self._finished)
        return future

    def _finished(self, _: Future[T]) -> None:
        done = next(self._numbers) % self._total or self._total
        self._reading.count(done, self._total, work=id(self))


def _percent(file: _File) -> int:
    return min(100, 100 * file.done_bytes // max(1, file.total_bytes))
