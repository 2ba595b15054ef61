"""Find device work that is missing from the trace: incomplete graph replays, and launches without work."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.algorithms.intervals import Intervals, gaps, intersection, intervals_of, union, union_of
from holotrace.algorithms.matching import NO_MATCH, only_matches
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.graph_replays import graph_launches, incomplete_replays, with_until
from holotrace.enrich.device.launches import launches
from holotrace.enrich.device.left_out_launches import calls_between_launches
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.trust.doubts import Doubt
from holotrace.schema import LAUNCH_KINDS
from holotrace.store.trace import RankTrace
from holotrace.units import counted, duration_text

_LAUNCH = r"(?i)launch_?(cooperative_?)?kernel|Module_?Launch|ExtLaunch"
"""Pattern for calls that launch one kernel, such as cudaLaunchKernelExC, cuLaunchKernel and hipExtModuleLaunchKernel."""

_CAPTURE = r"(?i)stream_?(begin|end)_?capture"
_BEGINS = r"(?i)begin_?capture"


def incomplete_graph_replays(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the idle time during graph replays for which some or all device rows are missing.

    Rows are missing if a replay has fewer rows than other replays of the same graph, or none.

    Sources: https://github.com/AMD-AGI/TraceLens/issues/728, https://github.com/AMD-AGI/Hyperloom/issues/1047.
    """
    replays = incomplete_replays(rank_trace)
    if replays.is_empty():
        return
    total = len(graph_launches(rank_trace))
    for (device, stream), rows in replays.group_by("device", "stream", maintain_order=True):
        place = None if device is None else int(device), None if stream is None else int(stream)
        doubtful = _idle_within(rank_trace, rows, place[0])
        if not len(doubtful[0]):
            continue
        empty = int((rows["row_count"] == 0).sum())
        yield Doubt(
            "incomplete_graph_replays",
            f"Device rows are missing for {len(rows):,} of {counted(total, 'graph replay')}{_place_text(*place)}"
            f"{f' (all rows for {empty:,})' if empty else ''}: for "
            f"{duration_text(_length(doubtful))}, it is unknown whether the device was idle",
            count=len(rows),
            event_index=rows.item(0, "event_index"),
            times=doubtful,
            device=place[0],
            stream=place[1],
        )


def launches_without_work(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the idle time after calls whose kernel is missing from the trace.

    Launches before the first launch with recorded work, or after the last one, are ignored, because a recording often
    lacks device work at its start and end. Launches during a capture are also ignored, because they only add nodes to a
    graph.

    Source: https://github.com/pytorch/pytorch/issues/192021 (the profiler dropped kernels).
    """
    rows = device_rows(rank_trace)
    launched_ns = launches(rank_trace)["launch_start_ns"]
    first_ns, last_ns = launched_ns.min(), launched_ns.max()
    if first_ns is None:
        return
    calls = _kernel_launches(rank_trace).filter(pl.col("start_ns").is_between(first_ns, last_ns))
    matches = only_matches(rows["correlation"].to_numpy(), calls["correlation"].to_numpy())
    without = calls.filter(matches == NO_MATCH).sort("start_ns", "event_index")
    missing = _outside_captures(rank_trace, without) if len(without) else without
    if missing.is_empty():
        return
    doubtful = _idle_within(rank_trace, with_until(rank_trace, missing, []), None)
    yield Doubt(
        "launches_without_work",
        f"The trace has no kernel for {len(missing):,} of {counted(len(calls), 'kernel launch', 'kernel launches')}, though "
        "earlier and later launches have one: the profiler lost device work, so busy time, kernel counts and the causes of "
        f"{duration_text(_length(doubtful))} of idle time are doubtful",
        count=len(missing),
        event_index=missing.item(0, "event_index"),
        times=doubtful,
        from_ns=missing.item(0, "start_ns"),
        to_ns=missing.item(-1, "start_ns"),
    )


def launches_left_out(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about all idle time between the first and last device work if most launches are missing.

    In this case, the work of these launches is missing, too.

    Source: https://docs.nvidia.com/cupti/main/main.html#correlating-activity-records, on correlation ids.
    """
    between = calls_between_launches(rank_trace)
    if between is None:
        return
    times = gaps(*union_of(device_rows(rank_trace)))
    yield Doubt(
        "launches_left_out",
        f"Judging by correlation numbers, consecutive recorded launches are {between:,.0f} runtime calls apart "
        "on average (up to 20 is normal): most launches and their work seem to be missing from the file, so whether the GPU "
        "was idle is unknown",
        times=times,
    )


def _place_text(device: int | None, stream: int | None) -> str:
    return "" if device is None or stream is None else f" on device {device}, stream {stream}"


def _idle_within(rank_trace: RankTrace, calls: pl.DataFrame, device: int | None) -> Intervals:
    """Return the intervals of `calls` in which the device is idle; each call lasts from `start_ns` to `until_ns`.

    If `device` is None, all devices must be idle.
    """
    work = device_work(rank_trace)
    here = work if device is None else work.filter(pl.col("device") == device)
    return intersection(union(calls["start_ns"].to_numpy(), calls["until_ns"].to_numpy()), gaps(*intervals_of(here)))


def _kernel_launches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that launch one kernel, in file order."""
    names = names_matching(rank_trace, _LAUNCH)
    columns = ["event_index", "start_ns", "correlation", "track_id"]
    calls = event_ranges(rank_trace, LAUNCH_KINDS, columns, names=names)
    return calls.filter(pl.col("correlation") > 0)


def _outside_captures(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Drop calls between the start and the end of a capture on the same thread."""
    names = names_matching(rank_trace, _CAPTURE)
    marks = event_ranges(rank_trace, LAUNCH_KINDS, ["name", "start_ns", "track_id"], names=names).sort("start_ns")
    if marks.is_empty():
        return calls
    is_open = rank_trace.texts(marks["name"]).str.contains(_BEGINS)
    latest = calls.join_asof(
        marks.select("start_ns", "track_id", is_open.alias("is_captured")),
        on="start_ns",
        by="track_id",
        check_sortedness=False,
    )
    return calls.filter(~latest["is_captured"].fill_null(value=False))


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
