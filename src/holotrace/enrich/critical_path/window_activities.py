"""Collects the activities of the host and the devices within a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from holotrace.algorithms.graphs.threads import Points, sorted_points
from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above, nesting, nesting_order
from holotrace.content_equality import EqualByContent
from holotrace.enrich.collectives.collectives import HOST_COLLECTIVE
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.launches import asked_for, launches, of_work
from holotrace.enrich.device.synchronisations import host_synchronisations
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.errors import InvalidOptionError
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import RankTrace

DATA_LOADING = (r"DataLoader.*__next__",)
"""Names of host ranges that load data, as regular expressions."""

_CALL_KINDS = (EventKind.CPU_OP, *LAUNCH_KINDS)
_NAMED_KINDS = (EventKind.USER_ANNOTATION, EventKind.PYTHON_FUNCTION)
"""Host ranges of these kinds are activities only if their names show that they load data, perform a collective or wait
for a collective."""

_WAITS_FOR_COLLECTIVE = r"method '?wait'? of .*(c10d|pybind11)|wait_tensor$"
"""Matches functions and operators in which a thread waits for a collective that the host performs."""

_HOST_COLUMNS = ("event_index", "kind", "name", "track_id", "start_ns", "end_ns")
_FLAGS = ("is_waiting", "is_loading", "is_collective")
_NO_ROW = -1
_LONG_AGO_NS = -(2**62)

CLOCK_NOISE_NS = 2_000
"""Old traces record whole microseconds, so rounding may put the times of two dependent events in the wrong order, by at
most `CLOCK_NOISE_NS`. If two times are in the wrong order by more than that, neither event depends on the other. For
example, two kernels on one stream ran in parallel if they overlap by more than 2 µs, and a call did not wait for work
if it returned more than 2 µs before the work ended."""


@dataclass(frozen=True, eq=False)
class WindowActivities(EqualByContent):
    """The activities of a window, sorted by start.

    window_start_ns, host_end_ns, window_end_ns  start of the window, and its ends on the host and on devices
    table  the columns of `EventGraph.activities`, where `is_waiting` is true also for calls inside a waiting call, and

        launch_index   uint32  the call that launched the work; null on host rows and if unknown
        is_loading     bool    whether the row is, or is inside, a host range that loads data
        is_collective  bool    whether the row is, or is inside, the host range of a communication that uses no device,
                               such as `gloo:recv`
        parent         int64   row of the enclosing host range; -1 for outermost ranges and device work
        lane           int64   the same as track_id; but if `collectives_apart` was requested, each collective that the
                               host performs has a lane of its own; null on device rows

    nodes  the starts and ends of the activities
    unknown_launch_count  number of device rows in the table whose launch was not recorded
    """

    window_start_ns: int
    host_end_ns: int
    window_end_ns: int
    table: pl.DataFrame
    nodes: Points
    unknown_launch_count: int

    @cached_property
    def is_host(self) -> npt.NDArray[np.bool_]:
        """Whether each activity is on the host."""
        return self.table["device"].is_null().to_numpy()

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of the table as an array, with 0 for null."""
        return self._without_nulls[name].to_numpy()

    @cached_property
    def _without_nulls(self) -> pl.DataFrame:
        return self.table.with_columns(cs.integer().fill_null(0))

    @cached_property
    def launching_row(self) -> npt.NDArray[np.int64]:
        """The row of the call that launched each activity; -1 on the host, or if the call is not in the table."""
        return self.rows_of(self.table["launch_index"])

    @cached_property
    def stream_number(self) -> npt.NDArray[np.int64]:
        """A number for the stream of each row; the order is by device, then by stream id; -1 for host rows."""
        rows = np.flatnonzero(~self.is_host)
        device, stream = self.column("device")[rows], self.column("stream")[rows]
        order = np.lexsort((stream, device))
        is_next = np.append(False, (np.diff(device[order]) != 0) | (np.diff(stream[order]) != 0))
        numbers = np.full(len(self.table), _NO_ROW, np.int64)
        numbers[rows[order]] = np.cumsum(is_next[: len(rows)])
        return numbers

    def rows_of(self, event_index: pl.Series) -> npt.NDArray[np.int64]:
        """Return the row of each event; -1 for null and for events that are not in the window."""
        indexes = event_index.cast(pl.Int64)
        wanted = (indexes.fill_null(_NO_ROW) if indexes.null_count() else indexes).to_numpy()
        inside = (wanted >= 0) & (wanted < len(self._row_of_event))
        return np.where(inside, self._row_of_event[np.where(inside, wanted, 0)], _NO_ROW)

    @cached_property
    def _row_of_event(self) -> npt.NDArray[np.int32]:
        indexes = self.column("event_index")
        rows = np.full(int(indexes.max(initial=0)) + 1, _NO_ROW, np.int32)
        rows[indexes] = np.arange(len(indexes), dtype=np.int32)
        return rows


def window_activities(
    rank_trace: RankTrace, window: PathWindow, data_loading: Sequence[str], *, collectives_apart: bool = False
) -> WindowActivities:
    """Return the window's host activities, the device work launched in it, and earlier work that was still running.

    Args:
        rank_trace: the rank.
        window: the window.
        data_loading: regular expressions; host ranges whose names match any of them load data.
        collectives_apart: whether collectives that the host performs run concurrently with the thread that requests
            them. If so, ranges such as `gloo:recv` move to separate lanes, so that the thread's later work is not
            inside them. Python functions in which a thread waits for a collective become waiting activities.
    """
    device, end_ns = _device(rank_trace, window)
    host = _host(rank_trace, window, data_loading, (_WAITS_FOR_COLLECTIVE,) if collectives_apart else ())
    rows = _in_one_table(host, device, window.start_ns, end_ns)
    rows = _in_lanes(rows) if collectives_apart else rows.with_columns(_TRACK.alias("lane"))
    parent = _parents(rows)
    inherited = [pl.Series(flag, _inherited(rows[flag].to_numpy(), parent)) for flag in _FLAGS]
    return WindowActivities(
        window.start_ns,
        window.end_ns,
        end_ns,
        rows.with_columns(*inherited, pl.Series("parent", parent)),
        sorted_points(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), window.start_ns, end_ns),
        device["launch_index"].null_count(),
    )


_TRACK = pl.col("track_id").cast(pl.Int64)


def _in_lanes(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the lane of each row: a new lane for each collective, and the thread's lane for all other rows.

    A thread that runs only collectives is a communication thread. On communication threads, drop the ranges
    inside collectives: they are parts of the collectives, such as waits for other ranks.
    """
    if not rows["is_collective"].any():
        return rows.with_columns(_TRACK.alias("lane"))
    host = np.flatnonzero(rows["device"].is_null().to_numpy())
    ranges = rows[["track_id", "is_collective", "start_ns", "end_ns"]][host]
    tracks, is_collective, *times = (column.to_numpy() for column in ranges)
    around = nearest_above(nesting(tracks, *times).parent, is_collective, np.arange(len(host)))
    does_other_work = np.isin(tracks, tracks[~is_collective & (around == NO_PARENT)])
    kept = np.ones(len(rows), np.bool_)
    kept[host] = is_collective | does_other_work
    first = int(np.max(tracks, initial=0))
    own = first + pl.col("is_collective").cum_sum().cast(pl.Int64)
    lane = pl.when("is_collective").then(own).otherwise(_TRACK)
    return rows.with_columns(lane.alias("lane")).filter(kept)


def _host(
    rank_trace: RankTrace, window: PathWindow, data_loading: Sequence[str], waiting: Sequence[str]
) -> pl.DataFrame:
    """Return the host activities that overlap the window, cut at its end."""
    overlaps = (pl.col("start_ns") <= window.end_ns) & (pl.col("end_ns") >= window.start_ns)
    inside = _host_activities(rank_trace, tuple(data_loading), tuple(waiting)).filter(overlaps)
    return inside.with_columns(pl.col("end_ns").clip(upper_bound=window.end_ns))


@derived
def _host_activities(rank_trace: RankTrace, data_loading: tuple[str, ...], waiting: tuple[str, ...]) -> pl.DataFrame:
    """Return the host activities of the whole recording; the result is cached for other windows."""
    loading = _matching(rank_trace, data_loading)
    collective = _matching(rank_trace, (HOST_COLLECTIVE,))
    waits = _matching(rank_trace, waiting)
    calls = event_ranges(rank_trace, _CALL_KINDS, _HOST_COLUMNS)
    special = pl.concat([loading, collective, waits])
    named = event_ranges(rank_trace, _NAMED_KINDS, _HOST_COLUMNS, names=special) if len(special) else calls.clear()
    ranges = pl.concat([named, calls])
    work_end_ns = of_events(_waits(rank_trace), ranges["event_index"])["work_end_ns"]
    return ranges.with_columns(
        is_waiting=pl.col("name").is_in(waits.implode())
        | (work_end_ns <= pl.col("end_ns") + CLOCK_NOISE_NS).fill_null(value=False),
        is_loading=pl.col("name").is_in(loading.implode()),
        is_collective=pl.col("name").is_in(collective.implode()) & ~pl.col("kind").is_in(LAUNCH_KINDS),
    )


@derived
def _waits(rank_trace: RankTrace) -> pl.DataFrame:
    """Return each call that waits for work, or queries whether work has ended, with the earliest end of this work."""
    waits = host_synchronisations(rank_trace).select("event_index", "source_index")
    work = device_rows(rank_trace).select(source_index="event_index", work_end_ns="end_ns")
    known = waits.join(work, on="source_index", how="left")
    return known.group_by("event_index").agg(pl.col("work_end_ns").fill_null(_LONG_AGO_NS).min())


def _matching(rank_trace: RankTrace, patterns: tuple[str, ...]) -> pl.Series:
    """Return the ids of the strings that match any of the patterns."""
    ids = [_matching_one(rank_trace, pattern) for pattern in patterns]
    return pl.concat(ids) if ids else pl.Series([], dtype=pl.UInt32)


def _matching_one(rank_trace: RankTrace, pattern: str) -> pl.Series:
    try:
        return names_matching(rank_trace, pattern)
    except pl.exceptions.ComputeError as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise InvalidOptionError(message) from None


def _device(rank_trace: RankTrace, window: PathWindow) -> tuple[pl.DataFrame, int]:
    """Return the device work of the window, and the time when the window and all work requested in it have ended.

    The device work includes work that was requested before the window if it still runs when the window starts.
    """
    work, asked_ns = _requested_work(rank_trace)
    end_ns = work["end_ns"].to_numpy()
    in_window = (asked_ns >= window.start_ns) & (asked_ns <= window.end_ns)
    from_before = (asked_ns < window.start_ns) & (end_ns > window.start_ns)
    return work.filter(in_window | from_before), int(np.max(end_ns[in_window], initial=window.end_ns))


@derived_under_rules
def _requested_work(rank_trace: RankTrace) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Return all device work with its kind and launch, and the times when the host requested it."""
    work = device_work(rank_trace).drop("correlation")
    kinds = of_work(device_rows(rank_trace).select("event_index", "kind"), work)
    flags = [pl.lit(value=False).alias(flag) for flag in _FLAGS]
    known = work.hstack([kinds["kind"], of_work(launches(rank_trace), work)["launch_index"]]).with_columns(flags)
    return known, of_work(asked_for(rank_trace), work)["asked_ns"].fill_null(_LONG_AGO_NS).to_numpy()


def _in_one_table(host: pl.DataFrame, device: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Join both tables, clip times to the window, and sort by start; if starts are equal, the longest comes first."""
    both = pl.concat([host, device.filter(device["start_ns"] < end_ns)], how="diagonal").select(
        "event_index",
        *("kind", "name", "track_id", "device", "stream", "kernel_kind"),
        pl.col("start_ns", "end_ns").clip(start_ns, end_ns),
        *("is_waiting", "launch_index", "is_loading", "is_collective"),
    )
    times = (both[name].to_numpy() for name in ("start_ns", "end_ns"))
    return both[nesting_order(np.zeros(len(both), np.uint32), *times)]


def _parents(both: pl.DataFrame) -> npt.NDArray[np.int64]:
    is_host = both["device"].is_null().to_numpy()
    rows = np.flatnonzero(is_host)
    nested = nesting(*(both[column].to_numpy()[rows] for column in ("lane", "start_ns", "end_ns")))
    parent = np.full(len(both), NO_PARENT, np.int64)
    parent[rows] = np.where(nested.parent == NO_PARENT, NO_PARENT, rows[nested.parent])
    return parent


def _inherited(flag: npt.NDArray[np.bool_], parent: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return the flag, set also for all ranges inside a flagged range."""
    inside: npt.NDArray[np.bool_] = flag.astype(np.bool_)
    if not inside.any():
        return inside
    others = np.flatnonzero(~inside)
    inside[others] = nearest_above(parent, inside.copy(), others) != NO_PARENT
    return inside
