"""Finds replays of CUDA and HIP graphs whose device work is missing, which makes the device seem idle.

CUPTI and roctracer may lose some or all rows of a replay; then a saturated GPU looks idle most of the time
(https://github.com/AMD-AGI/TraceLens/issues/728, https://github.com/AMD-AGI/Hyperloom/issues/1047).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, union
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

GRAPH_LAUNCH = r"(?i)graph_?launch"
"""Matches calls that replay a graph: cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch."""

_DEVICE_WAIT = r"(?i)(device|ctx)_?synchroni[sz]e"
_FEWEST_REPLAYS = 2
"""A replay is assumed to be complete only if at least this many replays have the same row count or the same kernels."""

_INCOMPLETE = {
    "event_index": pl.UInt32,
    "start_ns": pl.Int64,
    "until_ns": pl.Int64,
    "device": pl.Int32,
    "stream": pl.Int64,
    "row_count": pl.Int64,
    "expected_count": pl.Int64,
}

_Signature = tuple[int, ...]


@derived
def incomplete_replays(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the graph replays that have no device rows, or fewer than other replays of the same graph.

    If the trace numbers its graphs, which is rare, a replay is incomplete if it has fewer rows than the most frequent
    row count of its graph. Otherwise, a replay that has rows is incomplete if both of these conditions hold:

    - No other replay in the trace has the same kernels.
    - At least two other replays share a set of kernels that contains all kernels of the incomplete replay and more. At
      least one of these other replays runs between the same two neighbouring replays as the incomplete replay.

    Returns:
        Sorted by start_ns; empty without graphs:

        event_index     uint32  the call that replays the graph
        start_ns        int64   start of the call
        until_ns        int64   the latest possible end of the replay's work: the start of later work on the stream, or
                                the end of a call that waits for the device, whichever comes first
        device          int32   null if unknown
        stream          int64   null if unknown
        row_count       int64   device rows of the replay
        expected_count  int64   device rows of a complete replay; null if unknown
    """
    if not rank_trace.strings.str.contains(GRAPH_LAUNCH).any():
        return pl.DataFrame(schema=_INCOMPLETE)
    replays = _replays(rank_trace)
    expected = _expected_by_graph(replays) if replays["graph"].count() else _expected_by_kernels(rank_trace, replays)
    known = replays.with_columns(pl.Series("expected_count", expected, pl.Int64))
    is_incomplete = (pl.col("row_count") == 0) | (pl.col("row_count") < pl.col("expected_count"))
    incomplete = known.with_columns(
        pl.col("device", "stream").fill_null(strategy="forward").fill_null(strategy="backward")
    )
    ended = _with_ends(rank_trace, incomplete.filter(is_incomplete))
    return ended.select(pl.col(name).cast(kind) for name, kind in _INCOMPLETE.items())


def unknown_work(rank_trace: RankTrace, device: int | None = None, stream: int | None = None) -> Intervals:
    """Return when a device may have run unrecorded work of incomplete replays, as disjoint intervals in time order.

    If a device is given, only this device is considered. If a stream is also given, only this stream is considered.
    """
    here = incomplete_replays(rank_trace.unselected)
    for column, place in (("device", device), ("stream", stream)):
        if place is not None:
            here = here.filter(pl.col(column).is_null() | (pl.col(column) == place))
    return union(here["start_ns"].to_numpy(), here["until_ns"].to_numpy())


def unknown_length(unknown: Intervals, work: Intervals) -> int:
    """Return the time covered by `unknown` but not by `work`, between the first start and the last end in `work`."""
    starts, ends = work
    if not len(unknown[0]) or not len(starts):
        return 0
    clipped = (np.clip(times, starts.min(), ends.max()) for times in unknown)
    inside: Intervals = (next(clipped), next(clipped))
    return covered_length(*concatenated([inside, work])) - covered_length(*work)


def unknown_findings(rank_trace: RankTrace) -> tuple[str, ...]:
    """Return one finding about incomplete replays, or an empty tuple if there are none."""
    count = len(incomplete_replays(rank_trace.unselected))
    if not count:
        return ()
    lack = "1 graph replay lacks" if count == 1 else f"{count:,} graph replays lack"
    listed = "lists it" if count == 1 else "lists them"
    return (f"{lack} device rows, so the device may have been busy when it seems idle; holotrace trust {listed}",)


def _replays(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that replay graphs, in time order.

    Added columns show how many device rows each replay has, which device and stream most of these rows have, and the
    id of the graph.
    """
    rows = device_rows(rank_trace).select("event_index", "correlation", "device", "stream")
    numbers = rank_trace.table("kernels", ["event_index", "graph_id"]).filter(pl.col("graph_id") > 0)
    per_call = (
        rows.filter(pl.col("correlation") > 0)
        .join(numbers, on="event_index", how="left")
        .group_by("correlation")
        .agg(
            pl.len().alias("row_count"),
            pl.col("graph_id").max().alias("graph"),
            pl.col("device", "stream").mode().min(),
        )
    )
    calls = graph_launches(rank_trace)
    return (
        calls.join(per_call, on="correlation", how="left")
        .with_columns(pl.col("row_count").fill_null(0).cast(pl.Int64))
        .sort("start_ns", "event_index")
    )


def graph_launches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return event_index, start_ns and correlation of the outermost calls that replay graphs."""
    names = names_matching(rank_trace, GRAPH_LAUNCH)
    columns = ["event_index", "start_ns", "correlation", "kind"]
    calls = event_ranges(rank_trace, LAUNCH_KINDS, columns, names=names).filter(pl.col("correlation") > 0)
    of_runtime = calls.filter(pl.col("kind") == EventKind.RUNTIME)
    return (of_runtime if len(of_runtime) else calls).drop("kind")


def _expected_by_graph(replays: pl.DataFrame) -> list[int | None]:
    """Return, for each replay, the most frequent row count of its graph; on a tie, the largest."""
    counts = replays.filter(pl.col("row_count") > 0).group_by("graph", "row_count").agg(pl.len().alias("replays"))
    often = counts.filter(pl.col("replays") >= _FEWEST_REPLAYS).sort("replays", "row_count", descending=True)
    modes = dict(often.unique("graph", keep="first", maintain_order=True).select("graph", "row_count").iter_rows())
    return [modes.get(graph) for graph in replays["graph"].to_list()]


def _expected_by_kernels(rank_trace: RankTrace, replays: pl.DataFrame) -> list[int | None]:
    """Return the expected row count of each replay; None if it is unknown.

    A replay is called repeated if at least one other replay has the same kernels. A repeated replay is complete. Any
    other replay is compared with each repeated replay that has the same two neighbours (see `_surroundings`) and runs
    all of the other replay's kernels. The expected count is the largest row count of these repeated replays.
    """
    signatures = _signatures(rank_trace, replays)
    often = {kernels for kernels, count in Counter(signatures).items() if kernels and count >= _FEWEST_REPLAYS}
    expected: list[int | None] = [len(kernels) if kernels in often else None for kernels in signatures]
    rare = [row for row, kernels in enumerate(signatures) if kernels and kernels not in often]
    if not rare or not often:
        return expected
    around = _surroundings(signatures, often)
    places: dict[tuple[_Signature | None, _Signature | None], set[_Signature]] = {}
    for kernels, place in zip(signatures, around, strict=True):
        if kernels in often:
            places.setdefault(place, set()).add(kernels)
    for row in rare:
        if None in around[row]:  # the recording may begin or end within a chain of graphs
            continue
        complete = [kernels for kernels in places.get(around[row], ()) if _is_part(signatures[row], kernels)]
        expected[row] = max(map(len, complete), default=None)
    return expected


def _signatures(rank_trace: RankTrace, replays: pl.DataFrame) -> list[_Signature]:
    """Return, for each replay, the sorted names of its device rows."""
    rows = device_rows(rank_trace).select("correlation", "name")
    chosen = rows.filter(pl.col("correlation").is_in(replays["correlation"].implode()))
    names: Mapping[int, Sequence[int]] = dict(chosen.group_by("correlation").agg(pl.col("name").sort()).iter_rows())
    return [tuple(names.get(correlation, ())) for correlation in replays["correlation"].to_list()]


def _surroundings(
    signatures: Sequence[_Signature], often: set[_Signature]
) -> list[tuple[_Signature | None, _Signature | None]]:
    """Return, for each replay, the kernels of the nearest earlier and nearest later replay with kernels in `often`.

    If there is no such earlier or later replay, the value is None.
    """
    before = list(_latest(signatures, often))
    after = list(_latest(signatures[::-1], often))[::-1]
    return list(zip(before, after, strict=True))


def _latest(signatures: Sequence[_Signature], often: set[_Signature]) -> Iterator[_Signature | None]:
    latest = None
    for kernels in signatures:
        yield latest
        latest = kernels if kernels in often else latest


def _is_part(some: _Signature, whole: _Signature) -> bool:
    return len(some) < len(whole) and not Counter(some) - Counter(whole)


def _with_ends(rank_trace: RankTrace, replays: pl.DataFrame) -> pl.DataFrame:
    """Add `until_ns`: the latest possible end of each replay's work."""
    return with_until(rank_trace, replays, ["device", "stream"] if replays["stream"].count() else [])


def with_until(rank_trace: RankTrace, calls: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Add `until_ns`: the latest possible end of each call's work.

    This is the earliest of three times: when later work with the same values of `keys` starts, when a call that waits
    for a whole device returns, and when the last recorded work ends.
    """
    rows = device_rows(rank_trace)
    launched = rows.select("device", "stream", "start_ns").hstack(launches(rank_trace).select("launch_start_ns"))
    later = launched.drop_nulls("launch_start_ns").select(
        *keys, pl.col("launch_start_ns").alias("moment_ns"), pl.col("start_ns").alias("next_ns")
    )
    numbered = calls.with_row_index("_row").sort("start_ns")
    joined = numbered.join_asof(
        later.sort("moment_ns"),
        left_on="start_ns",
        right_on="moment_ns",
        by=list(keys) or None,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    last_ns = pl.lit(rows["end_ns"].max(), pl.Int64)
    until = pl.min_horizontal("next_ns", _wait_ends(rank_trace, joined["start_ns"]), last_ns)
    return joined.with_columns(pl.max_horizontal(until, "start_ns").alias("until_ns")).sort("_row").drop("_row")


def _wait_ends(rank_trace: RankTrace, moments: pl.Series) -> pl.Series:
    """Return, for each time, the end of the next call that waits for a whole device; null if there is none."""
    names = names_matching(rank_trace, _DEVICE_WAIT)
    waits = event_ranges(rank_trace, LAUNCH_KINDS, ["start_ns", "end_ns"], names=names).sort("start_ns")
    rows = waits["start_ns"].search_sorted(moments, side="left")
    return waits["end_ns"].extend_constant(None, 1).gather(rows).alias("wait_end_ns")
