"""The training steps of a rank: `ProfilerStep#N` ranges on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import holding, intervals_of
from holotrace.algorithms.matching import rows_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import asked_for, launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import STEP_NAME, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_STEP_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
"""The kinds of events that record steps on the host. The profiler also writes a GPU_USER_ANNOTATION event for each
step, with the later times at which the device runs the step's work; these events are ignored.
"""

_ENOUGH_WORK = 0.8
"""The last window is considered cut short if it launched less than this fraction of the previous window's work."""

_BEFORE_ALL = np.iinfo(np.int64).min
"""A time before all other times."""


@derived
def steps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the ranges of steps on the host.

    Returns:
        One row for each range, so a step that several threads record has several rows; sorted by start_ns:

        step      int64   the N of ProfilerStep#N
        start_ns  int64
        end_ns    int64
        track_id  uint32  process and thread, a row of `tracks`
    """
    numbers = _step_numbers(rank_trace)
    columns = ["name", "start_ns", "end_ns", "track_id"]
    ranges = event_ranges(rank_trace, _STEP_KINDS, columns, names=numbers["name"])
    named = ranges.join(numbers, on="name")
    return named.select("step", "start_ns", "end_ns", "track_id").sort("start_ns", "step", "track_id")


@derived
def windows(rank_trace: RankTrace, annotation: str | None = None) -> pl.DataFrame:
    """Return the time windows of a rank's recording; by default, these are its steps.

    Args:
        rank_trace: the rank.
        annotation: name of the host annotations (or operators) to use instead of steps. They are numbered from 0 in
            order of start. By default, the windows are the steps. If there are no steps, window 0 is the whole
            recording.

    Returns:
        One row for each window, sorted by start_ns. A step that several threads record has only one row. The table is
        empty if no event has the name given as `annotation`:

        window    int64  the number of the step or annotation
        start_ns  int64
        end_ns    int64
    """
    if annotation is not None:
        return _numbered(_named_ranges(rank_trace, annotation))
    bounds = [pl.col("start_ns").min(), pl.col("end_ns").max()]
    announced = steps(rank_trace)
    if len(announced):
        per_step = announced.group_by(pl.col("step").alias("window")).agg(bounds)
        return per_step.sort("start_ns", "window")
    everything = event_ranges(rank_trace, EventKind, ["start_ns", "end_ns"]).select(bounds)
    return _numbered(everything.drop_nulls())


def annotation_names(rank_trace: RankTrace) -> tuple[str, ...]:
    """Return the sorted names of all host annotations; `windows` accepts any of these names as `annotation`."""
    names = rank_trace.events_of([EventKind.USER_ANNOTATION], ["name"])["name"].unique()
    return tuple(rank_trace.texts(names).sort().to_list())


@derived
def device_extended_windows(rank_trace: RankTrace, annotation: str | None = None) -> pl.DataFrame:
    """Return the `windows`, each extended until all device work that it launched has ended.

    Device work belongs to the window in which its launch begins. A window begins when it starts on the
    host. If the device work of the previous window is still running then, the window begins when this work ends. The
    first window likewise begins after all earlier device work. Windows at the end that launched no work are dropped. If
    the last remaining window launched less than 80 % of the previous window's work, it is dropped too, because the
    recording probably ended too early. If no window launched work, all windows stay unchanged.

    Returns:
        The columns of `windows`, sorted by start_ns. The windows overlap only if they stay unchanged because no window
        launched work.
    """
    host = windows(rank_trace, annotation)
    work = device_rows(rank_trace).select("event_index", "start_ns", "end_ns")
    launched = launches(rank_trace)["launch_start_ns"]
    return extended_by_work(host, work.select("start_ns", "end_ns", _row_of(host, launched)))


def extended_by_work(host: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Extend host windows to the end of their device work; see `device_extended_windows`.

    Args:
        host: window, start_ns, end_ns; sorted by start_ns.
        work: start_ns, end_ns, and row: the row in `host` of the window that launched the work, or null.
    """
    per_row = (
        work.drop_nulls("row")
        .group_by("row")
        .agg(pl.col("start_ns").min().alias("first_ns"), pl.col("end_ns").max().alias("last_ns"), count=pl.len())
    )
    if per_row.is_empty():
        return host
    rows = pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")
    extended = host.with_columns(rows).join(per_row, on="row", how="left", maintain_order="left")
    is_before = pl.col("row").is_null() & (pl.col("end_ns") < pl.lit(extended.item(0, "first_ns"), pl.Int64))
    before_ns = work.filter(is_before).select(pl.col("end_ns").max()).item()
    return _one_after_the_other(extended, before_ns).head(_kept_count(extended["count"].fill_null(0).to_list()))


def _one_after_the_other(within: pl.DataFrame, before_ns: int | None) -> pl.DataFrame:
    """Delay starts and ends so that windows do not overlap and no window ends before its device work does."""
    ends = pl.max_horizontal("start_ns", "end_ns", "last_ns", pl.lit(before_ns, pl.Int64)).cum_max()
    starts = pl.max_horizontal("start_ns", ends.shift(1), pl.lit(before_ns, pl.Int64))
    return within.select("window", starts, ends.alias("end_ns"))


def _kept_count(counts: list[int]) -> int:
    """Return how many windows to keep: windows at the end are dropped if they launched no work or were cut short."""
    last = max(row for row, count in enumerate(counts) if count)
    is_cut_short = last > 0 and _ENOUGH_WORK * counts[last - 1] > counts[last]
    return 1 if len(counts) == 1 else last + (not is_cut_short)


def window_of(within: pl.DataFrame, times_ns: pl.Series) -> pl.Series:
    """Return the number of the window that contains each time (int64 ns); null outside all windows.

    If windows overlap, choose the window that began last.
    """
    return within["window"].gather(_row_of(within, times_ns))


def _row_of(within: pl.DataFrame, times_ns: pl.Series) -> pl.Series:
    """Return a column `row`: the row of the window that contains each time; null outside all windows."""
    times = (times_ns.fill_null(_BEFORE_ALL) if times_ns.null_count() else times_ns).to_numpy()
    return pl.Series("row", rows_of_windows(within, times)).cast(pl.UInt32, strict=False)  # -1 becomes null


def rows_of_windows(within: pl.DataFrame, times_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the row of the window that contains each time, -1 outside all windows; see `window_of`."""
    return holding(intervals_of(within), times_ns)


@dataclass(frozen=True)
class BeforeLastStep:
    """A condition for `Trace.where` that keeps the events before the last step.

    The step that begins last is often cut short, or slowed down by the profiler. Device work is kept if it was launched
    before this step. Host events, and device work without a known launch, are kept if they begin before this step. If
    the trace has fewer than two distinct steps, every event is kept.
    """

    def __call__(self, rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
        """Return whether to keep each row of `events`."""
        start_ns = rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy()
        boundary = _start_of_last_step(steps(rank_trace))
        if boundary is None:
            return np.ones(len(start_ns), np.bool_)
        return asked_for_ns(rank_trace, start_ns) < boundary

    def of_device_rows(self, rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
        """Return whether to keep each of the `device_rows`; see `holotrace.store.trace.DeviceSelection`."""
        boundary = _start_of_last_step(steps(rank_trace))
        if boundary is None:
            return np.ones(device_rows(rank_trace).height, np.bool_)
        return asked_for(rank_trace)["asked_ns"].fill_null(_BEFORE_ALL).to_numpy() < boundary


before_last_step = BeforeLastStep()


def _start_of_last_step(known: pl.DataFrame) -> int | None:
    """Return when the first thread begins the last step; None if there are fewer than two steps."""
    starts = known.group_by("step").agg(pl.col("start_ns").min(), pl.col("start_ns").max().alias("latest_ns"))
    *earlier, last = starts.sort("latest_ns", "step")["start_ns"].to_list() or [None]
    return last if earlier else None


def asked_for_ns(rank_trace: RankTrace, start_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the start of every event or, for device work, the time when the host requested it; see `asked_rows`."""
    rows, asked_ns = asked_rows(rank_trace)
    starts = start_ns.copy()
    starts[rows] = asked_ns
    return starts


def asked_rows(rank_trace: RankTrace) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of `events` that are device work, and for each row the time when the host requested the work.

    The time is `_BEFORE_ALL` for work that was requested before the recording.
    """
    asked = asked_for(rank_trace)
    event_index = rank_trace.table("events", ["event_index"])["event_index"].to_numpy()
    return rows_of(event_index, asked["event_index"].to_numpy()), asked["asked_ns"].fill_null(_BEFORE_ALL).to_numpy()


def _named_ranges(rank_trace: RankTrace, name: str) -> pl.DataFrame:
    ids = (rank_trace.strings == name).arg_true().cast(pl.UInt32)
    return event_ranges(rank_trace, _STEP_KINDS, ["start_ns", "end_ns"], names=ids).sort("start_ns", "end_ns")


def _numbered(ranges: pl.DataFrame) -> pl.DataFrame:
    return ranges.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("window"), "start_ns", "end_ns")


def _step_numbers(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the string id and the number of every step name."""
    texts = rank_trace.strings
    ids = texts.str.starts_with("ProfilerStep").arg_true().cast(pl.UInt32)
    numbers = rank_trace.texts(ids).str.extract(STEP_NAME).cast(pl.Int64, strict=False)
    return pl.DataFrame({"name": ids, "step": numbers}).drop_nulls()
