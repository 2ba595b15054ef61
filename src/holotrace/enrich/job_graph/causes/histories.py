"""What a rank did before each of its communication calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.job_graph.causes.cause_names import CAUSE_COLUMNS, host_ranges
from holotrace.enrich.job_graph.causes.device_lines import device_lines
from holotrace.enrich.job_graph.causes.host_lines import NO_CALL, Runs, main_track, thread_runs
from holotrace.enrich.job_graph.causes.lines import LAUNCH_DELAY, LINE, NO_LINE, POSITIONS, RUNS, Lines
from holotrace.enrich.steps.steps import steps
from holotrace.schema import EventKind
from holotrace.store.derived import derived_under_rules
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]


class Histories(NamedTuple):
    """What a rank did before each of its calls, for comparison with other ranks.

    lines     see `Lines`; `Runs.cause` refers to `causes`, `Runs.call` to the rows of `of_rank(rank_trace).calls`
    causes    distinct causes, with the columns in `CAUSE_COLUMNS`
    begin_ns  start of the recording; what happened earlier is unknown
    """

    lines: Lines
    causes: pl.DataFrame
    begin_ns: int


@derived_under_rules
def histories(rank_trace: RankTrace) -> Histories:
    """Return what the rank did before each of its calls.

    The history of a kernel follows the binding edges of `EventGraph` back from the kernel's start. These edges lead
    through earlier work on the same stream, work on other streams for which the stream waited, launches, and the
    launching thread. If the host performs a call (as with Gloo), the call starts soon after a thread requests it, so
    the history of the call is the history of that thread.
    """
    calls = of_rank(rank_trace).calls
    begin_ns = _begin_ns(rank_trace)
    if calls.is_empty():
        return Histories(Lines.empty(), pl.DataFrame(schema=CAUSE_COLUMNS), begin_ns)
    if calls["stream"].null_count() < len(calls):
        lines, causes = device_lines(rank_trace)
    else:
        lines, causes = _host_lines(rank_trace, calls), host_ranges(rank_trace).causes
    return Histories(lines, causes, begin_ns)


def _begin_ns(rank_trace: RankTrace) -> int:
    starts = rank_trace.events_of(
        [EventKind.CPU_OP, EventKind.USER_ANNOTATION, EventKind.RUNTIME, EventKind.DRIVER, EventKind.KERNEL],
        ["start_ns"],
    )["start_ns"]
    return int(starts.min() or 0)  # type: ignore[arg-type]  # of an int64 column


def _host_lines(rank_trace: RankTrace, calls: pl.DataFrame) -> Lines:
    """Return one timeline per requesting thread, and one for each call that a thread performs for another thread."""
    known = host_ranges(rank_trace)
    announced = steps(rank_trace)["track_id"].head(1).to_list()
    main = main_track(known, *(announced or [None]))
    own, asked = _tracks(rank_trace, calls, main)
    tracks = list(dict.fromkeys([main, *asked.tolist()]))
    threads = [thread_runs(known, track, calls) for track in tracks]
    line = np.array([tracks.index(track) for track in asked.tolist()], np.int64)
    return _with_workers(calls, threads, line, own, own != asked)


def _tracks(rank_trace: RankTrace, calls: pl.DataFrame, main: int) -> tuple[_Rows, _Rows]:
    """Return the thread that recorded each call, and the thread that requested it (the main thread if unknown)."""
    columns = ["event_index", "track_id"]
    own = of_events(rank_trace.events_of([EventKind.USER_ANNOTATION], columns), calls["event_index"])["track_id"]
    own_track = own.cast(pl.Int64).fill_null(main).to_numpy()
    requests = rank_trace.events_of([EventKind.CPU_OP], ["name", "start_ns", "track_id"])
    names = names_matching(rank_trace, "^c10d::")
    operators = requests.filter(pl.col("name").is_in(names.implode())).unique("start_ns", keep="first")
    asked = calls.select(start_ns="asked_ns").join(operators, on="start_ns", how="left", maintain_order="left")
    fallback = np.where(np.isin(own_track, operators["track_id"].unique().to_numpy()), own_track, main)
    return own_track, asked["track_id"].cast(pl.Int64).fill_null(pl.Series(fallback)).to_numpy()


def _with_workers(
    calls: pl.DataFrame, threads: list[Runs], line: _Rows, own_track: _Rows, is_apart: npt.NDArray[np.bool_]
) -> Lines:
    """Add a timeline for each call that a worker thread performs; the worker may have to finish another call first."""
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    asked = np.minimum(calls["asked_ns"].fill_null(pl.Series(start)).to_numpy(), start)
    apart = np.flatnonzero(is_apart)
    number = len(threads) + np.arange(len(apart))
    before = _previous(own_track)[apart]
    is_queued = (before >= 0) & (end[before] > asked[apart])
    own_line = np.full(len(calls), NO_LINE, np.int64)
    own_line[apart] = number
    queued_first = is_queued & (start[before] > asked[apart])
    parent = np.where(queued_first, own_line[before], line[apart])
    parent_ns = np.where(queued_first, start[before], asked[apart])
    busy_end = np.where(is_queued, np.minimum(end[before], start[apart]), parent_ns)
    delayed = len(apart)
    runs = [
        *(_lined(runs, row) for row, runs in enumerate(threads)),
        _runs(number, parent_ns, busy_end, np.zeros(delayed, np.int64), before),
        _runs(number, busy_end, start[apart], np.full(delayed, LAUNCH_DELAY), np.full(delayed, NO_CALL)),
    ]
    lasting = pl.concat(runs).filter(pl.col("end_ns") > pl.col("start_ns")).sort("line", "start_ns")
    none = np.full(len(threads), NO_LINE)
    lines = pl.DataFrame({"parent": np.append(none, parent), "parent_ns": np.append(none, parent_ns)}, LINE)
    at = pl.DataFrame({"line": np.where(is_apart, own_line, line), "at_ns": start}, POSITIONS)
    return Lines(lasting, lines, at)


def _previous(own_track: _Rows) -> _Rows:
    """Return, for each call, the previous call that the same thread performs, or -1; calls are sorted by start."""
    rows = pl.DataFrame({"track": own_track}).with_row_index("row")
    return rows.select(pl.col("row").cast(pl.Int64).shift(1).over("track").fill_null(NO_CALL))["row"].to_numpy()


def _lined(runs: Runs, line: int) -> pl.DataFrame:
    return _runs(np.full(len(runs.start_ns), line), *runs)


def _runs(*columns: _Rows) -> pl.DataFrame:
    return pl.DataFrame(dict(zip(RUNS, columns, strict=True)), RUNS)
