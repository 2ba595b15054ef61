"""A job's trace: ranks, and the tables of each."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from hta.errors import InvalidOptionError, NotATraceError, UnknownRankError, UnreadableTraceError
from hta.execution.executor import IN_PROCESS, Executor
from hta.schema import EventKind
from hta.store.arrow_tables import ColumnMemo, known_columns
from hta.store.header import Header
from hta.store.health import Health
from hta.store.trace_file import TraceFile

logger = logging.getLogger("hta")

T = TypeVar("T")


@dataclass(frozen=True)
class SkippedFile:
    """A file that was found and left out."""

    path: str
    reason: str


class RankTrace:
    """What one rank recorded, as the tables of `hta.schema.TABLES`.

    Files are opened when first needed. A RankTrace pickles as its address (file, rank, selections), so a worker opens
    its own copy.
    """

    def __init__(self, rank: int, file: TraceFile, selections: tuple[Selection, ...] = ()) -> None:
        """Name the rank, its file, and the selections its events have to pass; `hta.open_trace` does this."""
        self.rank = rank
        self._file = file
        self._selections = selections
        self._unselected: RankTrace | None = None
        self._derived: dict[Callable[..., Any], Any] = {}

    def __reduce__(self) -> tuple[type[RankTrace], tuple[int, TraceFile, tuple[Selection, ...]]]:
        """Pickle the address alone."""
        return RankTrace, (self.rank, self._file, self._selections)

    def __repr__(self) -> str:
        """Show the rank and its file."""
        return f"RankTrace(rank={self.rank}, source={self.source!r})"

    @property
    def source(self) -> str:
        """Path of the file, as given."""
        return self._file.path

    @property
    def header(self) -> Header:
        """What the file says about itself outside its events."""
        return self._file.header

    @property
    def health(self) -> Health:
        """What the reader repaired, dropped or noticed."""
        return self._file.health

    @property
    def unselected(self) -> RankTrace:
        """The same rank with all of its events; itself where nothing was selected."""
        if not self._selections:
            return self
        if self._unselected is None:
            self._unselected = RankTrace(self.rank, self._file)
        return self._unselected

    @functools.cached_property
    def strings(self) -> pl.Series:
        """The text of every string id: `strings[i]`; named `text`."""
        return self.table("strings")["text"].rechunk()

    def texts(self, ids: pl.Series) -> pl.Series:
        """Return the text of each id of a `string` or `json` column, null for null."""
        return self.unselected.strings[ids].alias(ids.name)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table, all of them for None, with the types of `hta.schema`.

        A table without rows comes back empty. Rows are in file order; only the rows of `events` are selected, side
        tables stay whole and join by `event_index`.

        Raises:
            InvalidOptionError: there is no such table or column.
            NotATraceError, UnreadableTraceError: the file, opened at first use, turns out to be no readable trace.
        """
        if name != "events" or not self._selections:
            return self._file.table(name, columns)
        return self._selected_events.get(known_columns(name, columns))

    def events_of(self, kinds: Iterable[EventKind], columns: Sequence[str]) -> pl.DataFrame:
        """Return columns of the selected events of these kinds, in file order.

        Much lighter than filtering `table("events")` where the kinds are few: other events are never held in memory.
        Nothing is remembered; an analysis remembers what it makes of them through `derive`.
        """
        if not self._selections:
            return self._file.events_of(tuple(kinds), columns)
        events = self._file.events_of(tuple(kinds), list(dict.fromkeys([*columns, "event_index"])))
        return events.filter(self._is_selected[events["event_index"].to_numpy()]).select(columns)

    def derive(self, function: Callable[[RankTrace], T]) -> T:
        """Return `function(self)`, computed once; `function` is a module-level function."""
        if function not in self._derived:
            self._derived[function] = function(self)
        result: T = self._derived[function]
        return result

    def where(self, selection: Selection) -> RankTrace:
        """Return this rank with fewer events: those where `selection` and all earlier selections say true.

        `selection` gets the rank with all of its events and returns one bool for each row of `events`. It is a
        module-level function, or a `functools.partial` of one, so that the result pickles.
        """
        selected = RankTrace(self.rank, self._file, (*self._selections, selection))
        selected._unselected = self.unselected  # shares what was already derived
        return selected

    def event_counts(self) -> dict[EventKind, int]:
        """Return how many of the selected events are of each kind, kinds without events left out."""
        counts = np.bincount(self.table("events", ["kind"])["kind"].to_numpy(), minlength=len(EventKind))
        return {kind: int(counts[kind]) for kind in EventKind if counts[kind]}

    def forget(self) -> None:
        """Free the memory of tables and derived results; the next use opens the file again."""
        self._file.forget()
        for view in {id(self): self, id(self.unselected): self.unselected}.values():
            view._forget_own()  # noqa: SLF001 -- the same class

    def _forget_own(self) -> None:
        self._derived.clear()
        for cached in ("strings", "_mask", "_is_selected", "_selected_events"):
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
        """Say of each `event_index` whether its event is selected."""
        event_index = self.unselected.table("events", ["event_index"])["event_index"].to_numpy()
        is_selected = np.zeros(int(event_index.max(initial=0)) + 1, np.bool_)
        is_selected[event_index] = self._mask.to_numpy()
        return is_selected


Selection: TypeAlias = Callable[[RankTrace], npt.NDArray[np.bool_]]
"""Says of each event of a rank whether to keep it."""


class Trace:
    """The ranks of one job.

    ranks    {rank: RankTrace}, sorted by rank
    skipped  files that were found and left out, with the reason
    """

    def __init__(self, ranks: Mapping[int, RankTrace], skipped: Iterable[SkippedFile] = ()) -> None:
        """Join ranks to a job; `hta.open_trace` does this."""
        self.ranks: dict[int, RankTrace] = dict(sorted(ranks.items()))
        self.skipped = tuple(skipped)

    def __reduce__(self) -> tuple[type[Trace], tuple[dict[int, RankTrace], tuple[SkippedFile, ...]]]:
        """Pickle the addresses of the ranks."""
        return Trace, (self.ranks, self.skipped)

    def __repr__(self) -> str:
        """Show the ranks."""
        return f"Trace(ranks={list(self.ranks)})"

    def select(self, ranks: Iterable[int] | None) -> Trace:
        """Return the trace of these ranks alone, of all for None.

        Raises:
            UnknownRankError: the job does not have such a rank.
            InvalidOptionError: no rank at all is asked for.
        """
        if ranks is None:
            return self
        chosen = {rank: self._rank(rank) for rank in ranks}
        if not chosen:
            message = "ranks=[] asks for no rank at all; leave it out to take all of them"
            raise InvalidOptionError(message)
        return Trace(chosen, self.skipped)

    def where(self, selection: Selection) -> Trace:
        """Return the trace with fewer events on each rank; see `RankTrace.where`."""
        return Trace({rank: each.where(selection) for rank, each in self.ranks.items()}, self.skipped)

    def readable(self, executor: Executor = IN_PROCESS) -> Trace:
        """Return the trace of the ranks whose files can be read; the others are among `skipped`, with the error.

        Raises:
            NotATraceError, UnreadableTraceError: no file can be read; this is the error of the first.
        """
        errors = {rank: error for rank, error in self.map(_reading_error, executor).items() if error is not None}
        if not errors:
            return self
        if len(errors) == len(self.ranks):
            raise next(iter(errors.values()))
        for error in errors.values():
            logger.warning("left out: %s", error)
        left_out = [SkippedFile(self.ranks[rank].source, str(error)) for rank, error in errors.items()]
        kept = {rank: each for rank, each in self.ranks.items() if rank not in errors}
        return Trace(kept, (*self.skipped, *left_out))

    def map(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> dict[int, T]:
        """Return {rank: function(rank_trace)}, sorted by rank.

        The first error is raised, and work not yet begun is cancelled. For an executor of processes, `function` is a
        module-level function or a `functools.partial` of one.
        """
        futures: dict[int, Future[T]] = {}
        try:
            for rank, rank_trace in self.ranks.items():
                futures[rank] = executor.submit(function, rank_trace)
                _raise_early(futures[rank])
            return {rank: future.result() for rank, future in futures.items()}
        finally:
            for future in futures.values():
                future.cancel()

    def _rank(self, rank: int) -> RankTrace:
        if rank not in self.ranks:
            raise UnknownRankError.from_available(rank, self.ranks)
        return self.ranks[rank]


def _reading_error(rank_trace: RankTrace) -> NotATraceError | UnreadableTraceError | None:
    """Open the file of a rank; return the error where that fails."""
    try:
        _ = rank_trace.health
    except (NotATraceError, UnreadableTraceError) as error:
        return error
    return None


def _raise_early(future: Future[Any]) -> None:
    """Raise the error of a call that has already failed, so that ranks after it are not begun."""
    if future.done():
        future.result()


def _checked(selection: Selection, mask: npt.NDArray[np.bool_], row_count: int) -> npt.NDArray[np.bool_]:
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.shape != (row_count,):
        message = f"{selection} must return {row_count:,} bools, one per event, but returned {mask.dtype} {mask.shape}"
        raise InvalidOptionError(message)
    return mask
