"""Find the activities that determined when a rank's communication kernels started, along the edges of its graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clipping import clipped
from holotrace.algorithms.graphs.longest_path import Chains, chains
from holotrace.algorithms.matching import distinct_rows
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass
from holotrace.enrich.critical_path.path_window import path_window
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.job_graph.call_nodes import CallGraph, call_graph
from holotrace.enrich.job_graph.causes.cause_names import CAUSE_COLUMNS, HostRanges, host_ranges
from holotrace.enrich.job_graph.causes.host_lines import NO_CALL, Runs, thread_runs
from holotrace.enrich.job_graph.causes.lines import (
    LAUNCH_DELAY,
    LINE,
    NO_LINE,
    POSITIONS,
    RUNS,
    SYNCHRONISATION,
    UNKNOWN,
    Lines,
)
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_NAMELESS = {
    PathClass.LAUNCH_DELAY: LAUNCH_DELAY,
    PathClass.KERNEL_KERNEL_DELAY: LAUNCH_DELAY,
    PathClass.SYNCHRONISATION_WAIT: SYNCHRONISATION,
    PathClass.UNKNOWN: UNKNOWN,
}
_BEFORE_WORK = (PathClass.KERNEL_KERNEL_DELAY, PathClass.SYNCHRONISATION_WAIT)
_ON_HOST = (PathClass.CPU_OPERATOR, PathClass.HOST_GAP, PathClass.DATA_LOADING)
_NO_TRACK = -1
_SHORT_GAP_NS = 5_000
"""Device work normally starts within this time after the end of the work that it waits for."""
_LONG_GAP_NS = 30_000
"""If launched early enough, device work normally starts within this time after the end of previous work on its
stream."""


class _Steps(NamedTuple):
    """The edges of all chains, except edges that take no time; the edges of each chain are in time order.

    line
    start_ns, end_ns
    path_class  of the edge
    activity    row of the edge's activity; -1 in gaps
    track       host thread that spends the time; -1 for time on devices
    """

    line: _Rows
    start_ns: _Rows
    end_ns: _Rows
    path_class: _Rows
    activity: _Rows
    track: _Rows


def device_lines(rank_trace: RankTrace) -> tuple[Lines, pl.DataFrame]:
    """Return the timelines that lead to a rank's communication kernels, and the table of causes that they refer to."""
    known = call_graph(rank_trace, path_window(rank_trace, annotation=""))
    graph, own = known.graph, of_rank(rank_trace).calls
    row = rows_of_events(known.calls, own["event_index"])
    inside = np.flatnonzero(row >= 0)
    start_node = known.calls["start_node"].to_numpy()[row[inside]]
    latest_first = np.argsort(start_node, kind="stable")[::-1]
    found = chains(graph.order(), graph.binding.to_numpy(), start_node[latest_first])
    steps, line_start_ns = _steps(graph, found)
    host = host_ranges(rank_trace)
    causes, cause = _work_causes(rank_trace, host, graph, steps)
    runs = pl.concat([_on_devices(steps, cause, _call_of_activity(known, own)), _on_threads(host, steps)])
    line = np.full(len(own), NO_LINE, np.int64)
    line[inside[latest_first]] = found.chain_of_end
    at = pl.DataFrame({"line": line, "at_ns": own["start_ns"]}, POSITIONS)
    lines = pl.DataFrame({"parent": found.parent, "parent_ns": line_start_ns}, LINE)
    return Lines(_joined(_in_order(runs)), lines, at), causes


def _steps(graph: EventGraph, found: Chains) -> tuple[_Steps, _Rows]:
    """Return the edges of all chains with their start and end times, and the start time of each chain."""
    time = graph.nodes["time_ns"].to_numpy()
    edge = found.edges[::-1].astype(np.int64)
    line = np.repeat(np.arange(len(found.parent)), np.diff(found.first))[::-1]
    source, target = (graph.edges[column].to_numpy()[edge].astype(np.int64) for column in ("source", "target"))
    start, end = time[source], time[target]
    if (start > end).any():
        start, end = _monotone(line, start, end)
    activity = graph.edges["activity"].gather(edge).cast(pl.Int64).fill_null(-1).to_numpy()
    path_class = graph.edges["path_class"].to_numpy()[edge].astype(np.int64)
    track = _tracks(graph, edge, source, target, path_class)
    begins = time[found.origin]
    np.minimum.at(begins, line, start)
    lasting = end > start
    steps = _Steps(*(np.asarray(column)[lasting] for column in (line, start, end, path_class, activity, track)))
    return steps, begins


def _monotone(line: _Rows, start: _Rows, end: _Rows) -> tuple[_Rows, _Rows]:
    """Clip each edge so that it ends no later than any edge after it in its line.

    Without clipping, an edge could end after its successors, because host and device clocks may disagree.
    """
    backwards = pl.DataFrame({"line": line, "end": end}).reverse()
    least = backwards.select(pl.col("end").cum_min().over("line"))["end"].reverse().to_numpy()
    return np.minimum(start, least), least


def _tracks(graph: EventGraph, edge: _Rows, source: _Rows, target: _Rows, path_class: _Rows) -> _Rows:
    """Return, for each edge, the host thread whose time it covers; -1 for device time and for waits for the device."""
    before, after = (_track_of_activity(graph, graph.nodes["activity"].gather(end)) for end in (source, target))
    own = np.where(after != _NO_TRACK, after, before)
    is_host = np.isin(path_class, _ON_HOST)
    waits = graph.edges["type"].to_numpy()[edge] == EdgeType.HOST_SYNCHRONISATION
    return np.where(is_host & ~waits, own, _NO_TRACK)


def _track_of_activity(graph: EventGraph, activity: pl.Series) -> _Rows:
    tracks = graph.activities["track_id"].gather(activity).cast(pl.Int64).fill_null(_NO_TRACK)
    is_host = graph.activities["device"].gather(activity).is_null()
    return np.where(is_host.to_numpy(), tracks.to_numpy(), _NO_TRACK)


def _work_causes(
    rank_trace: RankTrace, host: HostRanges, graph: EventGraph, steps: _Steps
) -> tuple[pl.DataFrame, _Rows]:
    """Return the causes of host time and of device work, and, for each edge on a device, the row of its cause."""
    is_work = np.isin(steps.path_class, (PathClass.COMPUTATION, PathClass.COPY)) & (steps.track == _NO_TRACK)
    work, position = np.unique(steps.activity[is_work], return_inverse=True)
    activities = graph.activities.select("event_index", "name")[work]
    calls = of_events(launches(rank_trace).select("event_index", "launch_index"), activities["event_index"])
    launch = rows_of_events(host.ranges, calls["launch_index"])
    around = np.where(launch < 0, -1, host.cause_row[launch])
    is_copy = np.zeros(len(work), np.int64)
    is_copy[position] = steps.path_class[is_work] == PathClass.COPY
    name = activities["name"].cast(pl.Int64).fill_null(-1).to_numpy()
    first, combination = distinct_rows([is_copy, name, around])
    table = pl.DataFrame(
        [
            pl.Series("cause", ["computation", "copy"]).gather(is_copy[first]).cast(CAUSE_COLUMNS["cause"]),
            rank_trace.texts(activities["name"].gather(first)),
            *(gathered(host.causes[column], around[first]) for column in ("module", "frame")),
        ]
    )
    distinct = table.unique(maintain_order=True).with_row_index("row")
    rows = table.join(distinct, on=list(CAUSE_COLUMNS), how="left", nulls_equal=True, maintain_order="left")["row"]
    cause = np.full(len(steps.line), UNKNOWN, np.int64)
    for path_class, nameless_cause in _NAMELESS.items():
        cause[steps.path_class == path_class] = nameless_cause
    cause[_is_unexplained(graph, steps)] = UNKNOWN
    cause[is_work] = len(host.causes) + rows.to_numpy().astype(np.int64)[combination[position]]
    return pl.concat([host.causes, distinct.drop("row")]), cause


def _is_unexplained(graph: EventGraph, steps: _Steps) -> npt.NDArray[np.bool_]:
    """Return, for each edge, whether it is a gap in which device work waited for something that was not recorded.

    Such a wait is likely if the gap is long, or if other work on the rank's devices ends when the gap ends.
    """
    on_device = np.append(graph.activities["device"].is_not_null().to_numpy(), False)
    length_ns = steps.end_ns - steps.start_ns
    gap = on_device[steps.activity] & np.isin(steps.path_class, _BEFORE_WORK) & (length_ns > _SHORT_GAP_NS)
    ends_ns = np.sort(graph.activities["end_ns"].to_numpy()[on_device[:-1]])
    ended_within = np.searchsorted(ends_ns, steps.end_ns[gap], "right") > np.searchsorted(
        ends_ns, steps.end_ns[gap] - _SHORT_GAP_NS, "right"
    )
    is_wait = steps.path_class[gap] == PathClass.KERNEL_KERNEL_DELAY
    gap[gap] = (length_ns[gap] > _LONG_GAP_NS) | (is_wait & ended_within)
    return gap


def _call_of_activity(known: CallGraph, own: pl.DataFrame) -> _Rows:
    rows = np.full(len(known.graph.activities) + 1, NO_CALL, np.int64)
    rows[known.calls["activity"].to_numpy()] = rows_of_events(own, known.calls["event_index"])
    return rows


def _on_devices(steps: _Steps, cause: _Rows, call_of_activity: _Rows) -> pl.DataFrame:
    on_device = steps.track == _NO_TRACK
    call = np.where(steps.path_class == PathClass.COMMUNICATION, call_of_activity[steps.activity], NO_CALL)
    columns = (steps.line, steps.start_ns, steps.end_ns, cause, call)
    return pl.DataFrame({name: column[on_device] for name, column in zip(RUNS, columns, strict=True)}, RUNS)


def _on_threads(host: HostRanges, steps: _Steps) -> pl.DataFrame:
    """Divide the time on each thread among the causes of its ranges."""
    parts = [pl.DataFrame(schema=RUNS)]
    none = pl.DataFrame({"start_ns": [], "end_ns": []}, {"start_ns": pl.Int64, "end_ns": pl.Int64})
    for track in np.unique(steps.track[steps.track != _NO_TRACK]).tolist():
        chosen = np.flatnonzero(steps.track == track)
        line, start, end = _stretches(*(column[chosen] for column in steps[:3]))
        runs = thread_runs(host, track, none)
        inside = clipped(runs.start_ns, runs.end_ns, start, end)
        columns = (
            line[inside.window],
            inside.start,
            inside.end,
            runs.cause[inside.interval],
            runs.call[inside.interval],
        )
        parts.append(pl.DataFrame(dict(zip(RUNS, columns, strict=True)), RUNS))
    return pl.concat(parts)


def _stretches(line: _Rows, start: _Rows, end: _Rows) -> tuple[_Rows, _Rows, _Rows]:
    """Join edges of a timeline that follow each other without a gap."""
    follows = (line[1:] == line[:-1]) & (start[1:] == end[:-1])
    first = np.flatnonzero(np.append(np.ones(min(1, len(line)), np.bool_), ~follows))
    last = np.append(first[1:], len(line))[: len(first)] - 1
    return line[first], start[first], end[last]


def _in_order(runs: pl.DataFrame) -> pl.DataFrame:
    """Sort by line and start, with one combined key, because a stable sort of nearly sorted keys is much faster."""
    line, start_ns = runs["line"].to_numpy().astype(np.int64), runs["start_ns"].to_numpy()
    return runs[np.argsort(line * (int(np.ptp(start_ns)) + 1) + start_ns, kind="stable")] if len(runs) else runs


def _joined(runs: pl.DataFrame) -> pl.DataFrame:
    """Merge each run with the next run of its line if no time lies between them and their cause and call are equal."""
    columns = Runs(*(runs[name].to_numpy() for name in list(RUNS)[1:]))
    line = runs["line"].to_numpy()
    if not len(line):
        return runs
    same = (columns.cause[1:] == columns.cause[:-1]) & (columns.call[1:] == columns.call[:-1]) & (line[1:] == line[:-1])
    first = np.flatnonzero(np.append(True, ~(same & (columns.start_ns[1:] == columns.end_ns[:-1]))))
    last = np.append(first[1:] - 1, len(line) - 1)
    return runs[first].with_columns(runs["end_ns"].gather(last))
