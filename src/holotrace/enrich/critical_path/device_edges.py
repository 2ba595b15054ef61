"""Finds the dependencies of device work: launches, streams, events, and calls that wait."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import covered_before, intervals_of, union
from holotrace.enrich.collectives.collectives import communication
from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass
from holotrace.enrich.critical_path.graph_edges import GraphEdges, graph_edges, same_as_before
from holotrace.enrich.critical_path.window_activities import CLOCK_NOISE_NS, WindowActivities
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.synchronisations import (
    device_drained_ns,
    has_recorded_waits,
    host_synchronisations,
    stream_waits,
)
from holotrace.schema import KernelKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_LONG_DELAY_NS = 30_000
"""If nothing delays work, it starts within this time once it is launched and the previous work on its stream has
ended."""
_SOON_NS = 20_000
"""Work that waits for other work starts within this time after the other work ends."""

_Rows = npt.NDArray[np.int64]

_CLASS_OF_KIND = {
    KernelKind.COMPUTATION: PathClass.COMPUTATION,
    KernelKind.COMMUNICATION: PathClass.COMMUNICATION,
    KernelKind.MEMORY: PathClass.COPY,
    KernelKind.OTHER: PathClass.COMPUTATION,
}


def device_edges(rank_trace: RankTrace, activities: WindowActivities) -> list[GraphEdges]:
    """Return the edges into and out of device work.

    If several edges reach a node at the same time, the first in the list is its binding edge.
    """
    return [
        *_stream_order(activities),
        _within_launches(activities),
        _event_waits(rank_trace, activities),
        _host_synchronisations(rank_trace, activities),
        _launches(rank_trace, activities),
        _work(activities),
    ]


def _work(activities: WindowActivities) -> GraphEdges:
    """Return an edge from the start to the end of each kernel, copy or fill."""
    rows = np.flatnonzero(~activities.is_host)
    nodes = activities.nodes
    classes = np.zeros(max(KernelKind) + 1, np.uint8)
    for kind, path_class in _CLASS_OF_KIND.items():
        classes[kind] = path_class
    return graph_edges(
        nodes.start[rows],
        nodes.end[rows],
        EdgeType.OPERATOR,
        classes[activities.column("kernel_kind")[rows]],
        activity=rows,
        weight_ns=activities.column("end_ns")[rows] - activities.column("start_ns")[rows],
    )


def _launches(rank_trace: RankTrace, activities: WindowActivities) -> GraphEdges:
    """Return the edge from each launching call to the work it launches.

    If the work starts after the call has ended, the edge begins at the end of the call, and its time counts as a wait.
    The reason for the wait is unknown if the work may have waited for other work that was launched before the
    recording. If the work starts within the call, the edge begins at the start of the call, and its time is assigned to
    the call.
    """
    calls = activities.launching_row
    rows = np.flatnonzero(calls >= 0)
    calls = calls[rows]
    is_after = activities.column("start_ns")[rows] > activities.column("end_ns")[calls]
    is_unknown = _is_unknown(rank_trace, activities, rows, calls)
    after = np.where(is_unknown, PathClass.UNKNOWN, PathClass.LAUNCH_DELAY)
    return graph_edges(
        np.where(is_after, activities.nodes.end[calls], activities.nodes.start[calls]),
        activities.nodes.start[rows],
        EdgeType.LAUNCH,
        np.where(is_after, after, PathClass.CPU_OPERATOR).astype(np.uint8),
        activity=np.where(is_after, rows, calls),
    )


def _is_unknown(
    rank_trace: RankTrace, activities: WindowActivities, rows: _Rows, calls: _Rows
) -> npt.NDArray[np.bool_]:
    """Return, for each row in `rows`, whether it may have waited for work that was launched before the recording.

    This is possible if a row meets three conditions: it begins long after its launch; no earlier work was recorded on
    its stream, even outside the window; and it was launched before the host first waited for the whole device. But if
    recorded work keeps the device busy for at least half of the time from the row's launch to its start, the wait is
    attributed to the recorded work.
    """
    whole = rank_trace.unselected
    start_ns, launched_ns = activities.column("start_ns")[rows], activities.column("end_ns")[calls]
    unknown: npt.NDArray[np.bool_] = start_ns - launched_ns > _LONG_DELAY_NS
    unknown &= launched_ns <= device_drained_ns(whole)
    if not unknown.any():
        return unknown
    work = activities.table[["device", "stream"]][rows]
    unknown[unknown] = start_ns[unknown] <= _first_start_ns(whole, work.filter(unknown))
    for row in np.flatnonzero(unknown):
        busy_ns = _busy_ns(whole, work["device"][int(row)], launched_ns[row], start_ns[row])
        unknown[row] = 2 * busy_ns < start_ns[row] - launched_ns[row]
    return unknown


def _first_start_ns(rank_trace: RankTrace, work: pl.DataFrame) -> _Rows:
    """Return, for each row of `work`, when the first recorded work on its stream starts."""
    first = _first_of_streams(rank_trace)
    return work.join(first, on=["device", "stream"], how="left", maintain_order="left")["first_ns"].to_numpy()


@derived
def _first_of_streams(rank_trace: RankTrace) -> pl.DataFrame:
    return device_rows(rank_trace).group_by("device", "stream").agg(pl.col("start_ns").min().alias("first_ns"))


def _busy_ns(rank_trace: RankTrace, device: int, start_ns: int, end_ns: int) -> int:
    """Return how long a device is busy between two times."""
    busy = union(*intervals_of(device_rows(rank_trace).filter(pl.col("device") == device)))
    until_start, until_end = covered_before(busy, np.array([start_ns, end_ns]))
    return int(until_end - until_start)


def _stream_order(activities: WindowActivities) -> list[GraphEdges]:
    """Return the edges between consecutive work on each stream.

    If work B starts before the previous work A on its stream has ended, one edge leads from the start of A to the start
    of B. If C is the work on this stream that ended last before B started, another edge leads from the end of C to the
    start of B.
    """
    rows = np.flatnonzero(~activities.is_host)
    stream = activities.stream_number[rows]
    order = np.argsort(stream, kind="stable")
    rows, stream = rows[order], stream[order]
    start_ns, end_ns = activities.column("start_ns")[rows], activities.column("end_ns")[rows]
    same = same_as_before(stream)
    begins_after = np.roll(end_ns, 1) <= start_ns + CLOCK_NOISE_NS
    serial, overlapping = np.flatnonzero(same & begins_after), np.flatnonzero(same & ~begins_after)
    ended = _last_ended(stream, start_ns, end_ns, overlapping)
    known = ended >= 0
    return [
        _after(activities, rows[serial - 1], rows[serial], EdgeType.STREAM_ORDER),
        _after(activities, rows[ended[known]], rows[overlapping[known]], EdgeType.STREAM_ORDER),
        graph_edges(
            activities.nodes.start[rows[overlapping - 1]],
            activities.nodes.start[rows[overlapping]],
            EdgeType.STREAM_ORDER,
            PathClass.KERNEL_KERNEL_DELAY,
            activity=rows[overlapping],
        ),
    ]


def _last_ended(group: _Rows, start_ns: _Rows, end_ns: _Rows, wanted: _Rows) -> _Rows:
    """For each row in `wanted`, return the row in the same group that was last to end before its start, or -1."""
    in_order = np.sort(end_ns)
    width = len(end_ns) + 1  # build keys from positions, not from times, to keep them small
    ends = group * width + np.searchsorted(in_order, end_ns, side="right")
    starts = group[wanted] * width + np.searchsorted(in_order, start_ns[wanted], side="right")
    order = np.argsort(ends, kind="stable")
    place = np.searchsorted(ends, starts, side="right", sorter=order) - 1
    earlier = order[np.maximum(place, 0)]
    began_before = (place >= 0) & (group[earlier] == group[wanted]) & (start_ns[earlier] < start_ns[wanted])
    return np.where(began_before, earlier, -1)


def _within_launches(activities: WindowActivities) -> GraphEdges:
    """Return the edges between activities that a single call launched, such as the kernels of a CUDA graph.

    On each stream, only the first of these activities is the target of an edge. Of the activities of the same launch
    that ended before the target began, on any stream, the last one to end is the source of the edge.
    """
    launch = activities.launching_row
    rows = np.flatnonzero(launch >= 0)
    rows = rows[np.bincount(launch[rows])[launch[rows]] > 1] if len(rows) else rows
    stream = activities.stream_number[rows]
    order = np.lexsort((launch[rows], stream))
    rows, stream = rows[order], stream[order]
    alone = np.flatnonzero(~same_as_before(launch[rows], stream))
    earlier = _last_ended(launch[rows], activities.column("start_ns")[rows], activities.column("end_ns")[rows], alone)
    known = earlier >= 0
    return _after(activities, rows[earlier[known]], rows[alone[known]], EdgeType.EVENT_WAIT)


def _event_waits(rank_trace: RankTrace, activities: WindowActivities) -> GraphEdges:
    waits = stream_waits(rank_trace)
    source, target = activities.rows_of(waits["source_index"]), activities.rows_of(waits["target_index"])
    known = (source >= 0) & (target >= 0) & (source != target)
    source, target = source[known], target[known]
    possible = activities.column("end_ns")[source] <= activities.column("start_ns")[target] + CLOCK_NOISE_NS
    return _after(activities, source[possible], target[possible], EdgeType.EVENT_WAIT, PathClass.SYNCHRONISATION_WAIT)


def inferred_waits(rank_trace: RankTrace, activities: WindowActivities) -> GraphEdges:
    """Return unrecorded waits between streams, inferred from timing alone; none if the profiler recorded waits.

    Work B on one stream waited for work A on another stream of the same device if A was launched earlier, B starts
    right after A ends, and A ends long after B's launch and long after the previous work on B's stream. If a send and
    other work end at the same time, the other work counts as A, because no work needs data from a send.
    """
    rows = np.flatnonzero(~activities.is_host)
    if has_recorded_waits(rank_trace) or not len(rows):
        return _after(activities, rows[:0], rows[:0], EdgeType.EVENT_WAIT)
    start_ns, end_ns = activities.column("start_ns")[rows], activities.column("end_ns")[rows]
    calls = activities.launching_row[rows]
    waits_from_ns = np.maximum(_previous_end_ns(activities, rows), activities.column("end_ns")[calls])
    late = np.flatnonzero((calls >= 0) & (start_ns - waits_from_ns > _LONG_DELAY_NS))
    earlier = _last_but_sends(rank_trace, activities, rows, late)
    late, earlier = late[earlier >= 0], earlier[earlier >= 0]
    asked_ns = np.where(calls >= 0, activities.column("start_ns")[calls], activities.window_start_ns)
    waited = (
        (start_ns[late] - end_ns[earlier] <= _SOON_NS)
        & (end_ns[earlier] - waits_from_ns[late] > _LONG_DELAY_NS)
        & (asked_ns[earlier] <= asked_ns[late])
        & (calls[earlier] != calls[late])
    )
    return _after(
        activities,
        rows[earlier[waited]],
        rows[late[waited]],
        EdgeType.EVENT_WAIT,
        PathClass.SYNCHRONISATION_WAIT,
    )


def _last_but_sends(rank_trace: RankTrace, activities: WindowActivities, rows: _Rows, late: _Rows) -> _Rows:
    """Return, for each row in `late`, the work on its device that was the last to end before it began; -1 if none.

    If a send was the last to end, but other work ended almost at the same time, return the other work.
    """
    device = activities.column("device")[rows].astype(np.int64)
    start_ns, end_ns = activities.column("start_ns")[rows], activities.column("end_ns")[rows]
    last = _last_ended(device, start_ns, end_ns, late)
    if not len(late):
        return last
    sends = communication(rank_trace).filter(pl.col("family") == "send")["event_index"]
    is_send = np.isin(rows, activities.rows_of(sends))
    if not is_send.any():
        return last
    other = _last_ended(device, start_ns, np.where(is_send, np.iinfo(np.int64).max, end_ns), late)
    ended_together = end_ns[last] - end_ns[other] <= CLOCK_NOISE_NS
    return np.where((last >= 0) & is_send[last] & (other >= 0) & ended_together, other, last)


def _previous_end_ns(activities: WindowActivities, rows: _Rows) -> _Rows:
    """Return, for each row, the time when all earlier work on its stream has ended; without any, the window's start."""
    ends = pl.col("end_ns").cum_max().shift(1).over("device", "stream").fill_null(activities.window_start_ns)
    return activities.table[["device", "stream", "end_ns"]][rows].select(ends).to_series().to_numpy()


def _host_synchronisations(rank_trace: RankTrace, activities: WindowActivities) -> GraphEdges:
    """Return edges from the end of work to the end of the call that waited for this work."""
    waits = host_synchronisations(rank_trace)
    source, call = activities.rows_of(waits["source_index"]), activities.rows_of(waits["event_index"])
    known = (source >= 0) & (call >= 0)
    source, call = source[known], call[known]
    waited = activities.column("end_ns")[source] <= activities.column("end_ns")[call] + CLOCK_NOISE_NS
    return graph_edges(
        activities.nodes.end[source[waited]],
        activities.nodes.end[call[waited]],
        EdgeType.HOST_SYNCHRONISATION,
        PathClass.SYNCHRONISATION_WAIT,
        activity=call[waited],
    )


def _after(
    activities: WindowActivities,
    before: _Rows,
    after: _Rows,
    edge_type: EdgeType,
    path_class: PathClass = PathClass.KERNEL_KERNEL_DELAY,
) -> GraphEdges:
    """Return an edge from the end of each row in `before` to the start of the corresponding row in `after`."""
    nodes = activities.nodes
    return graph_edges(nodes.end[before], nodes.start[after], edge_type, path_class, activity=after)
