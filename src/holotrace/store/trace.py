"""The trace of a job: its ranks and their tables."""

from __future__ import annotations

import functools
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.errors import (
    HolotraceError,
    InvalidOptionError,
    MissingDataError,
    NotATraceError,
    UnknownRankError,
    UnreadableTraceError,
)
from holotrace.execution import worker
from holotrace.execution.executor import IN_PROCESS, Executor, submit_near
from holotrace.schema import STEP_NAME, EventKind
from holotrace.store.captures import (
    Capture,
    CaptureSource,
    annotated_modules,
    inferred_layer_names,
    replays_graphs,
    with_other_texts,
)
from holotrace.store.header import Header
from holotrace.store.health import Health, state_of
from holotrace.store.kept_ranks import MOST_EVENTS_KEPT, KeptRanks
from holotrace.store.rule_table import rules_in_force, under_rules
from holotrace.store.tables.arrow_tables import ColumnMemo, known_columns
from holotrace.units import counted
from holotrace.visible_text import html_table

logger = logging.getLogger("holotrace")

P = ParamSpec("P")
T = TypeVar("T")

OnError: TypeAlias = Literal["fail", "skip"]
"""What to do if a rank cannot be processed: raise the error (`fail`), or skip the rank with a warning (`skip`)."""

ABOUT_THE_QUESTION = (InvalidOptionError, MissingDataError, UnknownRankError)
"""Errors about the request, not about one rank's file; `Trace.visit` raises them even with `on_error="skip"`."""

_THE_EXECUTOR_IS_GONE = (BrokenExecutor, CancelledError)
"""Errors after which an executor cannot continue; `Trace.visit` raises them even with `on_error="skip"`."""

_MOST_RANKS_SHOWN = 8
"""Maximum number of ranks that a notebook lists."""

_MOST_EVENTS_HELD = 20_000_000
_EVENTS_OF_ANY_RANK = 10_000
"""A process keeps at most `_MOST_EVENTS_HELD` events (about 100 bytes each) in memory; if there are more, it frees
the memory of the least recently used ranks. The count includes `_EVENTS_OF_ANY_RANK` additional events for each rank,
because even a rank without events needs a megabyte.
"""


@dataclass(frozen=True)
class SkippedFile:
    """A file that was skipped.

    is_unreadable  whether the file looks like a trace but cannot be read
    rank           the rank, if another file of the same rank was opened instead; otherwise None
    """

    path: str
    reason: str
    is_unreadable: bool = False
    rank: int | None = None


class RankFile(Protocol):
    """The trace file or store from which a rank's tables are read; pickling keeps only its address."""

    @property
    def path(self) -> str:
        """Path of the trace file, as the user wrote it."""

    @property
    def header(self) -> Header:
        """The header of the trace: everything outside its events."""

    @property
    def health(self) -> Health:
        """The health record: data that the reader repaired or dropped, and other remarks."""

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table."""

    def events_of(self, kinds: Sequence[int], columns: Sequence[str], names: pl.Series | None = None) -> pl.DataFrame:
        """Return columns of the events of these kinds and, if given, these `names` (string ids), in file order."""

    def forget(self) -> None:
        """Free the tables kept in memory; the next use opens the file again."""


class RankTrace:
    """The recording of one rank, as the tables of `holotrace.schema.TABLES`.

    Files are opened when first needed. Pickling a RankTrace keeps only its address (file, rank, selections, captures);
    a worker uses this address to open a copy. Workers of `holotrace.processes` keep recently used copies. All copies of
    a RankTrace have the same `identity`; when the trace is opened again, its ranks get new identities.

    >>> from holotrace.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
    >>> rank_trace = builder.kernel("gemm", start_us=3, duration_us=9).build().ranks[0]
    >>> rank_trace.table("events", ["start_ns", "duration_ns"]).rows()
    [(0, 5000), (3000, 9000)]
    """

    def __init__(
        self,
        rank: int,
        file: RankFile,
        selections: tuple[Selection, ...] = (),
        capture_source: CaptureSource | None = None,
    ) -> None:
        """Create the trace of a rank; users call `holotrace.open_trace` instead."""
        self.rank = rank
        self._file = file
        self._selections = selections
        self._capture_source = capture_source
        self._unselected: RankTrace | None = None
        self._derived: dict[Hashable, Any] = {}
        self._is_used = False

    def __reduce__(self) -> tuple[Callable[..., RankTrace], tuple[Any, ...]]:
        """Pickle only what a copy needs to open the file again, not the data."""
        return _copy, (self.identity, self.rank, self._file, self._selections, self._capture_source)

    def __repr__(self) -> str:
        """Show the rank and its file."""
        return f"RankTrace(rank={self.rank}, source={self.source!r})"

    @functools.cached_property
    def identity(self) -> str:
        """A unique string that this RankTrace shares only with its pickled copies.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> from pickle import dumps, loads
        >>> loads(dumps(rank_trace)).identity == rank_trace.identity
        True
        """
        return uuid.uuid4().hex

    @property
    def source(self) -> str:
        """Path of the file, as the user wrote it.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.source.endswith("rank0.pt.trace.json")
        True
        """
        return self._file.path

    @property
    def file(self) -> RankFile:
        """The source of the tables.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.file.path == rank_trace.source
        True
        """
        return self._file

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The selections applied to this trace; only the events that match all of them are kept.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.selections
        ()
        """
        return self._selections

    @property
    def has_selections(self) -> bool:
        """Whether the events are filtered by selections.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.has_selections
        False
        """
        return bool(self._selections)

    @property
    def header(self) -> Header:
        """The header of the file: everything outside its events.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.header.world_size
        1
        """
        return self._file.header

    @property
    def health(self) -> Health:
        """The health record: data that the reader repaired or dropped, and other remarks.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.health.event_count
        1
        """
        return self._file.health

    @property
    def unselected(self) -> RankTrace:
        """The same rank with all events; this object itself if there are no selections.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.unselected is rank_trace
        True
        """
        if not self._selections:
            return self
        if self._unselected is None:
            self._unselected = RankTrace(self.rank, self._file, capture_source=self._capture_source)
        return self._unselected

    def with_captures(self, source: CaptureSource | None) -> RankTrace:
        """Return this rank, with the captures of its graphs taken from `source`; for None, return this rank unchanged.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.with_captures(None) is rank_trace
        True
        """
        return self if source is None else RankTrace(self.rank, self._file, self._selections, source)

    @property
    def capture_source(self) -> CaptureSource | None:
        """The captures, which show which operators launched the kernels of graphs; None if there are none.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.capture_source is None
        True
        """
        return self._capture_source

    @functools.cached_property
    def captures(self) -> tuple[Capture, ...]:
        """The captures of the graphs that this rank replays; empty if it replays no graphs.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.captures
        ()
        """
        if self is not self.unselected:
            return self.unselected.captures
        texts = self._own_strings
        if self._capture_source is None or not replays_graphs(texts):
            return ()
        return self._capture_source.of_rank(self.rank, texts)

    @functools.cached_property
    def strings(self) -> pl.Series:
        """All strings: string id `i` stands for `strings[i]`; the series is named `text`.

        The strings of the file come first, then the strings of its captures, the names of modules from graph
        annotations, and the names of inferred layers.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> "aten::mm" in rank_trace.strings
        True
        """
        texts = self._own_strings
        if not replays_graphs(texts):
            return texts
        others = [capture.trace.strings for capture in self.captures]
        return with_other_texts(texts, [*others, annotated_modules(self)["module"], inferred_layer_names()])

    @property
    def _own_strings(self) -> pl.Series:
        return self.table("strings")["text"].rechunk()

    def texts(self, ids: pl.Series) -> pl.Series:
        """Return the string for each id in a `string` or `json` column; null stays null.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.texts(rank_trace.table("events")["name"]).to_list()
        ['aten::mm']
        """
        return self.unselected.strings[ids].alias(ids.name)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table, with the types of `holotrace.schema`; None selects all columns.

        Rows are in file order. Selections apply only to `events`. Other tables contain all their rows; to filter one,
        join it with `events` by `event_index`.

        Raises:
            InvalidOptionError: the table or column does not exist.
            NotATraceError, UnreadableTraceError: the file, which is opened at first use, is not a trace or cannot be
            read.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.table("events", ["start_ns", "duration_ns"]).rows()
        [(0, 5000)]
        """
        self._is_used = True
        if name != "events" or not self._selections:
            return self._file.table(name, columns)
        return self._selected_events.get(known_columns(name, columns))

    def events_of(
        self, kinds: Iterable[EventKind], columns: Sequence[str], *, names: pl.Series | None = None
    ) -> pl.DataFrame:
        """Return these columns of the selected events that have one of `kinds` and, if given, `names`; in file order.

        `names` are string ids.

        For a few kinds of events in a large file, this takes much less memory than filtering `table("events")`, because
        other events are never loaded. The events of large files are not kept in memory; facts derived from them are
        kept (see `holotrace.store.derived`).

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
        >>> rank_trace = builder.kernel("gemm", start_us=3, duration_us=9).build().ranks[0]
        >>> from holotrace.schema import EventKind
        >>> rank_trace.events_of([EventKind.KERNEL], ["duration_ns"])["duration_ns"].to_list()
        [9000]
        """
        self._is_used = True
        if not self._selections:
            return self._file.events_of(tuple(kinds), columns, names)
        events = self._file.events_of(tuple(kinds), list(dict.fromkeys([*columns, "event_index"])), names)
        return events.filter(self._is_selected[events["event_index"].to_numpy()]).select(columns)

    def derive(self, function: Callable[Concatenate[RankTrace, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Return `function(self, *arguments, **options)`, computed only once; functions with `@derived` use this.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> def event_count(rank_trace):
        ...     return rank_trace.table("events").height
        >>> rank_trace.derive(event_count), rank_trace.derive(event_count)  # the second call takes the first result
        (1, 1)
        """
        derived, key = self._derived, (function, arguments, tuple(options.items()))
        if key not in derived:
            derived[key] = function(self, *arguments, **options)
        result: T = derived[key]
        return result

    def where(self, selection: Selection) -> RankTrace:
        """Return this rank with only the events for which `selection` and all earlier selections are true.

        `selection` receives the rank with all events and returns one bool for each row of `events`. To make the result
        picklable, use a module-level function or a `functools.partial` of one.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
        >>> rank_trace = builder.kernel("gemm", start_us=3, duration_us=9).build().ranks[0]
        >>> long = rank_trace.where(lambda rank_trace: rank_trace.table("events")["duration_ns"].to_numpy() > 5_000)
        >>> long.event_counts()
        {<EventKind.KERNEL: 6>: 1}
        """
        selected = RankTrace(self.rank, self._file, (*self._selections, selection), self._capture_source)
        selected._unselected = self.unselected  # so that facts about all events are not computed again
        return selected

    def event_counts(self) -> dict[EventKind, int]:
        """Return {kind: number of selected events} for the kinds that occur.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
        >>> rank_trace = builder.kernel("gemm", start_us=3, duration_us=9).build().ranks[0]
        >>> rank_trace.event_counts()
        {<EventKind.CPU_OP: 1>: 1, <EventKind.KERNEL: 6>: 1}
        """
        return self.derive(_event_counts)

    @property
    def events_held(self) -> int:
        """Approximate number of events in memory; 0 while only the rank's header and health have been used.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> rank_trace.events_held  # nothing was used yet
        0
        """
        is_used = self._is_used or self.unselected._is_used  # noqa: SLF001 -- an instance of the same class
        try:
            return self.health.event_count + _EVENTS_OF_ANY_RANK if is_used else 0
        except HolotraceError:  # the file cannot be read, so no events are in memory
            return 0

    def forget(self) -> None:
        """Free the memory of tables and derived results; the next use opens the file again.

        >>> from holotrace.testing import TraceBuilder
        >>> rank_trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build().ranks[0]
        >>> _ = rank_trace.table("events")
        >>> rank_trace.forget()
        >>> rank_trace.events_held
        0
        """
        self._file.forget()
        for view in {id(self): self, id(self.unselected): self.unselected}.values():
            view._forget_own()  # noqa: SLF001 -- an instance of the same class

    def _forget_own(self) -> None:
        for capture in self.__dict__.get("captures", ()):
            capture.trace.forget()
        self._is_used = False
        self._derived = {}  # a new dict, because another thread may be adding to the old one
        for cached in ("captures", "strings", "_mask", "_is_selected", "_selected_events"):
            self.__dict__.pop(cached, None)

    @functools.cached_property
    def _selected_events(self) -> ColumnMemo:
        return ColumnMemo(lambda columns: self._file.table("events", columns).filter(self._mask))

    @functools.cached_property
    def _mask(self) -> pl.Series:
        row_count = self.unselected.table("events", ["event_index"]).height
        masks = [_checked(selection, selection(self.unselected), row_count) for selection in self._selections]
        return pl.Series(np.logical_and.reduce(masks))

    @functools.cached_property
    def _is_selected(self) -> npt.NDArray[np.bool_]:
        """For each `event_index`, whether the event is selected."""
        event_index = self.unselected.table("events", ["event_index"])["event_index"].to_numpy()
        is_selected = np.zeros(int(event_index.max(initial=0)) + 1, np.bool_)
        is_selected[event_index] = self._mask.to_numpy()
        return is_selected


def _event_counts(rank_trace: RankTrace) -> dict[EventKind, int]:
    counts = np.bincount(rank_trace.table("events", ["kind"])["kind"].to_numpy(), minlength=len(EventKind))
    return {kind: int(counts[kind]) for kind in EventKind if counts[kind]}


_KEPT: KeptRanks[RankTrace] = KeptRanks()


def _copy(identity: str, *address: Any) -> RankTrace:  # noqa: ANN401 -- the arguments of `RankTrace`
    """Return a copy of a pickled rank; in a worker, return the copy of an earlier call if it is still in memory."""
    rank_trace = RankTrace(*address)
    rank_trace.identity = identity
    if not worker.pool_size:
        return rank_trace
    return _KEPT.kept(identity, rank_trace, MOST_EVENTS_KEPT // worker.pool_size)


Selection: TypeAlias = Callable[[RankTrace], npt.NDArray[np.bool_]]
"""A function that returns, for each event of a rank, whether to keep the event."""


@runtime_checkable
class DeviceSelection(Protocol):
    """A selection that can also be applied if only the device work of a rank is loaded.

    Many analyses need only device work; with such a selection, they do not have to load all events.
    """

    def of_device_rows(self, rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
        """Return whether to keep each row of `holotrace.enrich.device.device_work.device_rows`."""


class Trace:
    """The ranks of one job.

    ranks     {rank: RankTrace}, sorted by rank
    skipped   files that were skipped, with the reason
    on_error  what to do if a rank cannot be processed: "skip" logs the error and continues, "fail" raises the error
    left_out  ranks of the job that `select` left out

    >>> from holotrace.testing import TraceBuilder
    >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
    >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
    >>> trace
    Trace(ranks=[0, 1])
    """

    def __init__(
        self,
        ranks: Mapping[int, RankTrace],
        skipped: Iterable[SkippedFile] = (),
        on_error: OnError = "fail",
        left_out: Iterable[int] = (),
    ) -> None:
        """Create the trace of a job from its ranks; users call `holotrace.open_trace` instead."""
        self.ranks: dict[int, RankTrace] = dict(sorted(ranks.items()))
        self.skipped = tuple(skipped)
        self.on_error = on_error
        self.left_out = frozenset(left_out)
        self._events_held: dict[int, int] = {}  # by rank, least recently used first

    def __reduce__(
        self,
    ) -> tuple[type[Trace], tuple[dict[int, RankTrace], tuple[SkippedFile, ...], OnError, frozenset[int]]]:
        """Pickle only what a copy needs to open the files of the ranks again, not the data."""
        return Trace, (self.ranks, self.skipped, self.on_error, self.left_out)

    def __repr__(self) -> str:
        """Show the ranks."""
        return f"Trace(ranks={list(self.ranks)})"

    def _repr_html_(self) -> str:
        """Show the first ranks in a notebook, with steps, devices, events and health; this opens their files."""
        shown = list(self.ranks.values())[:_MOST_RANKS_SHOWN]
        rest = len(self.ranks) - len(shown)
        more = f"<p>… and {counted(rest, 'more rank')}.</p>" if rest else ""
        skipped = f"<p>{counted(len(self.skipped), 'skipped file')}: <code>.skipped</code></p>" if self.skipped else ""
        headings = ("rank", "file", "steps", "devices", "events", "health")
        return f"{html_table(headings, map(_described, shown))}{more}{skipped}"

    def select(self, ranks: Iterable[int] | None) -> Trace:
        """Return the trace with only these ranks, or with all ranks for None.

        Raises:
            UnknownRankError: the job does not have one of the ranks.
            InvalidOptionError: `ranks` is empty.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
        >>> list(trace.select([1]).ranks)
        [1]
        """
        if ranks is None:
            return self
        chosen = {rank: self._rank(rank) for rank in ranks}
        if not chosen:
            message = "ranks=[] selects no rank; leave it out to select all ranks"
            raise InvalidOptionError(message)
        return Trace(chosen, self.skipped, self.on_error, self.left_out | (self.ranks.keys() - chosen.keys()))

    def where(self, selection: Selection) -> Trace:
        """Return the trace with only the selected events of each rank; see `RankTrace.where`.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
        >>> long = trace.where(lambda rank_trace: rank_trace.table("events")["duration_ns"].to_numpy() > 5_000)
        >>> {rank: rank_trace.event_counts() for rank, rank_trace in long.ranks.items()}
        {0: {}, 1: {<EventKind.KERNEL: 6>: 1}}
        """
        chosen = {rank: rank_trace.where(selection) for rank, rank_trace in self.ranks.items()}
        return Trace(chosen, self.skipped, self.on_error, self.left_out)

    def readable(self, executor: Executor = IN_PROCESS) -> Trace:
        """Return the trace with only the ranks whose files can be read; `skipped` lists the others with their errors.

        Raises:
            NotATraceError, UnreadableTraceError: no file can be read; the error of the first file is raised.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
        >>> list(trace.readable().ranks)
        [0, 1]
        """
        visit = self.visit(_reading_error, executor)
        errors = {rank: error for rank, error in visit.results.items() if error is not None}
        return visit.trace._without(errors)  # noqa: SLF001 -- an instance of the same class

    def map(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> dict[int, T]:
        """Return {rank: function(rank_trace)}, sorted by rank; see `visit`.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
        >>> trace.map(lambda rank_trace: rank_trace.table("events")["duration_ns"].sum())
        {0: 5000, 1: 9000}
        """
        return self.visit(function, executor).results

    def visit(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> Visit[T]:
        """Call `function(rank_trace)` for each rank.

        By default, the first error is raised, and calls that have not started are cancelled. If the trace was opened
        with `on_error="skip"`, an error that affects only one rank is logged as a warning, and the rank is skipped. If
        the executor uses processes, `function` must be a module-level function or a `functools.partial` of one.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> trace = builder.rank(1).kernel("gemm", start_us=3, duration_us=9).build()
        >>> visit = trace.visit(lambda rank_trace: rank_trace.table("events").height)
        >>> visit.results
        {0: 1, 1: 1}
        """
        under_current_rules = functools.partial(under_rules, rules_in_force(), function)
        futures: dict[int, Future[T]] = {}
        try:
            for rank, rank_trace in self.ranks.items():
                futures[rank] = submit_near(executor, rank_trace.identity, under_current_rules, rank_trace)
                # If the executor runs the call immediately, its error is raised here, before the next rank begins.
                if futures[rank].done() and self._error_of_rank(futures[rank]) is None:
                    self._make_room(rank_trace)
            errors = {rank: error for rank, future in futures.items() if (error := self._error_of_rank(future))}
            rest = self._without(errors)
            findings = tuple(f"skipped: {file.reason}" for file in rest.skipped[len(self.skipped) :])
            return Visit({rank: futures[rank].result() for rank in rest.ranks}, rest, findings)
        finally:
            for future in futures.values():
                future.cancel()

    def _error_of_rank(self, future: Future[Any]) -> Exception | None:
        """Wait for a call. If the call fails and its rank can be skipped, return the error; raise all other errors."""
        try:
            future.result()
        except (*ABOUT_THE_QUESTION, *_THE_EXECUTOR_IS_GONE):
            raise
        except Exception as error:
            if self.on_error == "fail":
                raise
            return error
        return None

    def _without(self, errors: Mapping[int, Exception]) -> Trace:
        """Return the trace with these ranks moved to `skipped`, and log them.

        If no rank remains, raise the first error.
        """
        if not errors:
            return self
        if len(errors) == len(self.ranks):
            raise next(iter(errors.values()))
        for rank, error in errors.items():
            is_expected = isinstance(error, HolotraceError)
            logger.warning("skipped: %s", _reason(rank, error), exc_info=None if is_expected else error)
        skipped = [
            SkippedFile(self.ranks[rank].source, _reason(rank, error), is_unreadable=True)
            for rank, error in errors.items()
        ]
        ranks = {rank: rank_trace for rank, rank_trace in self.ranks.items() if rank not in errors}
        rest = Trace(ranks, (*self.skipped, *skipped), self.on_error, self.left_out)
        rest._events_held = {rank: held for rank, held in self._events_held.items() if rank in ranks}
        return rest

    def _make_room(self, latest: RankTrace) -> None:
        """Free the memory of the least recently used ranks if this process keeps too many events in memory."""
        self._events_held.pop(latest.rank, None)
        self._events_held[latest.rank] = latest.events_held
        while len(self._events_held) > 1 and sum(self._events_held.values()) > _MOST_EVENTS_HELD:
            oldest = next(iter(self._events_held))
            del self._events_held[oldest]
            if oldest in self.ranks:
                self.ranks[oldest].forget()

    def _rank(self, rank: int) -> RankTrace:
        if rank not in self.ranks:
            raise UnknownRankError.from_available(rank, self.ranks)
        return self.ranks[rank]


@dataclass(frozen=True)
class Visit(Generic[T]):
    """The results of a function for the ranks of a trace.

    results   {rank: result}, sorted by rank
    trace     the trace with only the ranks in `results`; `trace.skipped` also lists the ranks that failed
    findings  a sentence per rank that failed
    """

    results: dict[int, T]
    trace: Trace
    findings: tuple[str, ...] = ()


def _described(rank_trace: RankTrace) -> tuple[str, ...]:
    """Return rank, file, number of steps, devices, number of events, and health."""
    named = str(rank_trace.rank), rank_trace.source
    try:
        health, properties = rank_trace.health, rank_trace.header.device_properties
        steps = rank_trace.strings.str.extract(STEP_NAME).drop_nulls().n_unique()
    except (NotATraceError, UnreadableTraceError) as error:
        return *named, "", "", "", f"unreadable: {error}"
    devices = Counter(str(device.get("name", "?")) for device in properties)
    texts = [f"{count} of {name}" for name, count in devices.items()]
    return *named, f"{steps:,}", ", ".join(texts), f"{health.event_count:,}", state_of(health.findings)


def _reading_error(rank_trace: RankTrace) -> NotATraceError | UnreadableTraceError | None:
    """Open the file of a rank; return the error if that fails."""
    try:
        _ = rank_trace.health
    except (NotATraceError, UnreadableTraceError) as error:
        return error
    return None


def _reason(rank: int, error: Exception) -> str:
    """Return the message of an error, preceded by the rank if the message does not name the file."""
    if isinstance(error, (NotATraceError, UnreadableTraceError)):
        return str(error)
    return (
        f"rank {rank}: {error}"
        if isinstance(error, HolotraceError)
        else f"rank {rank}: {type(error).__name__}: {error}"
    )


def _checked(selection: Selection, mask: npt.NDArray[np.bool_], row_count: int) -> npt.NDArray[np.bool_]:
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.shape != (row_count,):
        message = f"{selection} must return {row_count:,} bools, one per event, but returned {mask.dtype} {mask.shape}"
        raise InvalidOptionError(message)
    return mask
