"""The dependencies between the events of a rank within a window, as a graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges
from holotrace.content_equality import EqualByContent


class EdgeType(IntEnum):
    """The reason why the target of an edge depends on its source."""

    OPERATOR = 0
    """Time inside an activity: on the host, between two consecutive nodes; on a device, from start to end."""
    HOST_GAP = 1
    """A gap between two activities of a thread."""
    LAUNCH = 2
    """From a call to the start of the work it launched. The edge begins at the end of the call or, if the work
    starts before the call ends, at the start of the call."""
    STREAM_ORDER = 3
    """From the end of work (or from its start, if the next work overlaps it) to the start of the next work on its
    stream."""
    EVENT_WAIT = 4
    """From the end of work to the start of other work, on another stream or in the same launch of a graph."""
    HOST_SYNCHRONISATION = 5
    """From the end of work to the end of the call that waits for this work."""
    HAND_OVER = 6
    """From a waiting thread to the thread that works in the meantime, or from this thread back to the waiting thread;
    also between consecutive collectives of a communication thread."""
    WINDOW = 7
    """From the start of the window to a node without a predecessor, or from a node without a successor to the end of
    the window."""


class PathClass(IntEnum):
    """The kind of activity or delay that a nanosecond of the critical path is spent on."""

    CPU_OPERATOR = 0
    HOST_GAP = 1
    DATA_LOADING = 2
    LAUNCH_DELAY = 3
    KERNEL_KERNEL_DELAY = 4
    COMPUTATION = 5
    COMMUNICATION = 6
    COPY = 7
    SYNCHRONISATION_WAIT = 8
    UNKNOWN = 9
    """Time before the first recorded work of a stream, or before work whose launch was not recorded."""


@dataclass(frozen=True, eq=False)
class EventGraph(EqualByContent):
    """Activities within a window, and the dependencies between their starts and ends.

    window_start_ns, window_end_ns  int; all times are clipped to this window

    activities   one row per host range, call, kernel, copy or fill, sorted by start_ns:

        event_index   uint32
        kind          uint8   EventKind
        name          uint32  string id
        track_id      uint32  for host rows, the process and thread, as a row of `tracks`
        device        int32   null on host rows
        stream        int64   null on host rows
        kernel_kind   uint8   KernelKind; null on host rows
        start_ns      int64   clipped to the window
        end_ns        int64   clipped to the window
        is_waiting    bool    whether this is a call that waits for a device

    nodes        the points in time, in order: node 0 is the start of the window, the last node its end:

        activity      uint32  row of `activities`; null for the first and the last node
        is_start      bool    true at the start of the activity, false at its end; true for the first node, false for
                              the last
        time_ns       int64   the measured time

    edges        time(target) >= time(source) + weight_ns:

        source        uint32  row of `nodes`
        target        uint32  row of `nodes`
        type          uint8   EdgeType
        weight_ns     int64   the least time that the edge takes
        delay_ns      int64   if the edge is the binding edge of its target, how much longer than weight_ns it took;
                              0 for all other edges, and for edges whose weight_ns exceeds the measured time
        path_class    uint8   PathClass to which the weight and the delay are assigned
        activity      uint32  row of `activities` to which the edge's time is assigned; null for gaps

    binding      int64, one value per node: row of the edge that arrives last, -1 for node 0
    contradicted_count  number of edges whose target was measured before their source, because times are rounded or
                        clocks differ; a replay keeps these edges, and the path counts the overlapping time only once
    inferred_wait_count  number of waits between streams that were not recorded, but inferred from timing alone
    unknown_launch_count  number of kernels, copies and fills in the window whose launch was not recorded
    """

    window_start_ns: int
    window_end_ns: int
    activities: pl.DataFrame
    nodes: pl.DataFrame
    edges: pl.DataFrame
    binding: pl.Series
    contradicted_count: int
    inferred_wait_count: int
    unknown_launch_count: int

    def order(self) -> Edges:
        """Return the sources and targets of the edges for `holotrace.algorithms.graphs.longest_path`."""
        return Edges(len(self.nodes), self.edges["source"].to_numpy(), self.edges["target"].to_numpy())
