"""The runs below the served paths, the open traces, and the results computed so far.

A page refers to a run by an id, never by a path. All caches are limited: results by their size, open traces by their
number and by the memory of the process.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from holotrace.catalogue import analysis
from holotrace.enrich.steps.selections import in_steps, on_devices
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.processes import processes
from holotrace.execution.retrying import RetryingExecutor
from holotrace.ingest.open_trace import open_trace
from holotrace.locations import Address, address_text
from holotrace.questions.question import Analysis, Result
from holotrace.store.cache import CacheOption
from holotrace.store.trace import Trace
from holotrace.web.session.memory import bytes_of, resident_bytes
from holotrace.web.session.reading import CountingCalls, Reading
from holotrace.web.session.runs import (
    SPAN_MARK,
    RunInfo,
    contained,
    expect_still_there,
    of_span,
    real_paths,
    runs_under,
)
from holotrace.whole_job.workers import worthwhile_workers

__all__ = ["RunInfo", "Scope", "Session"]

T = TypeVar("T")

MOST_RESULT_BYTES = 256 << 20
MOST_OPEN_TRACES = 8
MOST_PROCESS_BYTES = 1_000 << 20
"""If the process uses more memory, it drops the open traces and the data read from them, but keeps the disk cache."""

MOST_ANSWERS = 64
LONGEST_QUESTIONS = ("diagnosis", "wait_causes")
"""Questions that take several times as long as others; in large jobs, worker processes may answer them."""

SCAN_AGAIN_S = 5.0
WORKERS = 2


@dataclass(frozen=True)
class Scope:
    """A run restricted to these ranks, steps and devices; None for all."""

    run: str
    ranks: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None
    devices: tuple[int, ...] | None = None


class Session:
    """The runs, open traces and results of one server; all methods are thread-safe."""

    def __init__(
        self,
        paths: Iterable[Address],
        *,
        cache: CacheOption = True,
        capture: tuple[Address, ...] = (),
        uses_processes: bool = False,
    ) -> None:
        """Serve these folders, files and patterns; all files and patterns together form one run.

        `capture` contains paths of captures for all runs; without it, each run uses the captures beside its files.
        `uses_processes` lets worker processes answer `LONGEST_QUESTIONS` about large jobs.
        """
        self._uses_processes = uses_processes
        self._running: set[RetryingExecutor] = set()
        self._capture = capture
        self.paths = tuple(map(address_text, paths))
        self.reading = Reading()
        self._named = real_paths(self.paths)
        self._cache = cache
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[Hashable, _Turn] = WeakValueDictionary()
        self._scanned_at = float("-inf")
        self._runs: dict[str, RunInfo] = {}
        self._results: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._traces: OrderedDict[Hashable, Trace] = OrderedDict()
        self._answers: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="holotrace-work")
        self._background = ThreadPoolExecutor(1, thread_name_prefix="holotrace-background")

    @property
    def runs(self) -> tuple[RunInfo, ...]:
        """The current runs, from a search made at most `SCAN_AGAIN_S` seconds ago."""
        return tuple(self._scanned().values())

    def run(self, run_id: str) -> RunInfo:
        """Return the run, or span of a run, with this id.

        Raises:
            InvalidOptionError: no run has this id.
        """
        whole, _, span = run_id.partition(SPAN_MARK)
        info = self._scanned().get(whole)
        if info and span:
            info = of_span(info, span)
        if info is None:
            message = "this run does not exist (any more); choose one from the list"
            raise InvalidOptionError(message)
        return info

    def whole(self, run_id: str) -> Trace:
        """Return the trace of a run with all its files, including unreadable files.

        Raises:
            InvalidOptionError: there is no such run.
            HolotraceError: the files do not form a job; see `holotrace.open_trace`.
        """
        info = self.run(run_id)
        return self._open((run_id, info.stamp), lambda: self._opened(info))

    def trace(self, scope: Scope) -> Trace:
        """Return the selected part of a run, without unreadable files; the files are read at first use.

        Raises:
            UnknownRankError: the run does not have one of the selected ranks.
            HolotraceError: no file is readable, or the readable files do not form a job.
        """
        return self._open((scope, self.run(scope.run).stamp), lambda: self._chosen(scope))

    def result(self, scope: Scope, name: str, **options: Hashable) -> Result:
        """Return the result of an analysis.

        Raises:
            KeyError: there is no such analysis.
            MissingDataError: the input of the analysis was not recorded.
            HolotraceError: see `trace`.
        """
        chosen = analysis(name)
        key = (name, tuple(sorted(options.items())))
        return self.remembered(scope, key, lambda trace: self._computed(chosen, trace, options))

    def results(self, scope: Scope, names: Iterable[str]) -> dict[str, Result]:
        """Return the results of the analyses whose input was recorded; see `result`."""
        outcomes = {name: _outcome(partial(self.result, scope, name)) for name in names}
        return {name: result for name, result in outcomes.items() if not isinstance(result, MissingDataError)}

    def remembered(self, scope: Scope, key: Hashable, compute: Callable[[Trace], T]) -> T:
        """Return `compute(trace)`; see `remember`."""
        return self.remember(scope, key, lambda: compute(self.trace(scope)))

    def remember(self, scope: Scope, key: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`, which is called once for each `key`; concurrent callers wait for the result.

        The result is dropped if memory is low or the files of the run change. A MissingDataError is also remembered.
        """
        whole_key = (scope, self.run(scope.run).stamp, key)
        with self._turn(whole_key):
            with self._lock:
                known = self._results.get(whole_key)
            value = _outcome(make) if known is None else known[0]
            self._keep(whole_key, value)
        if known is None:
            self._free_memory()
        if isinstance(value, MissingDataError):
            raise MissingDataError(*value.args)
        return cast("T", value)

    def has(self, scope: Scope, key: Hashable) -> bool:
        """Return whether `remember` has a result for this key."""
        whole_key = (scope, self.run(scope.run).stamp, key)
        with self._lock:
            return whole_key in self._results

    def answer(self, key: Hashable, work: Callable[[], T], *, is_in_background: bool = False) -> Future[T]:
        """Start `work` on a worker thread and return its future; calls with the same key share one future.

        Background work runs on a single separate thread, so it takes at most one core from other work. After a failure,
        the next call starts the work again.
        """
        with self._lock:
            known = self._answers.get(key)
            if known is None or (known.done() and known.exception() is not None):
                pool = self._background if is_in_background else self._pool
                known = self._answers[key] = pool.submit(work)
            self._answers.move_to_end(key)
            surplus = len(self._answers) - MOST_ANSWERS
            done = [other for other, future in self._answers.items() if future.done()]
            for other in done[: max(0, surplus)]:
                del self._answers[other]
            return known

    def close(self) -> None:
        """Cancel work that has not started, and end the worker processes."""
        for running in list(self._running):
            running.terminate()
        for pool in (self._pool, self._background):
            pool.shutdown(wait=False, cancel_futures=True)

    def _computed(self, question: Analysis, trace: Trace, options: Mapping[str, Hashable]) -> Result:
        is_long = self._uses_processes and question.name in LONGEST_QUESTIONS
        workers = worthwhile_workers([trace]) if is_long else 1
        if workers == 1:
            return question.compute(trace, **options)
        with processes(workers) as pool:
            self._running.add(pool)
            try:
                counted = CountingCalls(pool, self.reading, len(trace.ranks))
                return question.compute(trace, executor=counted, **options)
            finally:
                self._running.discard(pool)

    def _keep(self, key: Hashable, value: object) -> None:
        with self._lock:
            self._results[key] = (value, bytes_of(value))
            self._results.move_to_end(key)
            while len(self._results) > 1 and sum(size for _, size in self._results.values()) > MOST_RESULT_BYTES:
                self._results.popitem(last=False)

    def _free_memory(self) -> None:
        """Drop open traces if the process uses too much memory; a running analysis keeps its trace until it ends."""
        held = resident_bytes()
        if held is not None and held > MOST_PROCESS_BYTES:
            with self._lock:
                self._traces.clear()

    def _open(self, key: Hashable, opened: Callable[[], Trace]) -> Trace:
        with self._turn(("trace", key)):
            with self._lock:
                known = self._traces.get(key)
            trace = opened() if known is None else known
            with self._lock:
                self._traces[key] = trace
                self._traces.move_to_end(key)
                while len(self._traces) > MOST_OPEN_TRACES:
                    self._traces.popitem(last=False)
        return trace

    def _chosen(self, scope: Scope) -> Trace:
        trace = self.whole(scope.run).select(scope.ranks).readable()
        if scope.steps is not None:
            trace = trace.where(partial(in_steps, steps=scope.steps))
        if scope.devices is not None:
            trace = trace.where(partial(on_devices, devices=scope.devices))
        return trace

    def _opened(self, info: RunInfo) -> Trace:
        expect_still_there(self._named if info.root is None else {})
        return contained(
            open_trace(info.source, capture=self._capture or None, cache=self._cache, progress=self.reading), info.root
        )

    def _scanned(self) -> dict[str, RunInfo]:
        with self._turn("scan"):
            if time.monotonic() - self._scanned_at > SCAN_AGAIN_S:
                self._runs = {info.id: info for info in runs_under(self.paths)}
                self._scanned_at = time.monotonic()
            return self._runs

    def _turn(self, key: Hashable) -> _Turn:
        with self._lock:
            return self._turns.setdefault(key, _Turn())


class _Turn:
    """A lock that is stored in a weak dictionary; the dictionary drops it once no thread uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _outcome(make: Callable[[], T]) -> T | MissingDataError:
    try:
        return make()
    except MissingDataError as error:
        return error
