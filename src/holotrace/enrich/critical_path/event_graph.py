"""What had to happen before what: the events of a rank as a graph, within a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import polars as pl

from holotrace.algorithms.longest_path import Edges
from holotrace.content_equality import EqualByContent


class EdgeType(IntEnum):
    """Why the target of an edge cannot be before its source."""

    OPERATOR = 0
    """Time inside an activity: of the host, between two of its points; of a device, from start to end."""
    HOST_GAP = 1
    """Between two activities of a thread, outside of all that was recorded."""
    LAUNCH = 2
    """From the end of a call to the start of the work it launched; from its start where the work starts within it."""
    STREAM_ORDER = 3
    """From the end of work to the start of the next on the same stream."""
    EVENT_WAIT = 4
    """From the end of work of one stream to the start of work of another, or of the same graph launch."""
    HOST_SYNCHRONISATION = 5
    """From the end of work to the end of the call that waits for it."""
    HAND_OVER = 6
    """From one thread to another that works while the first waits, and back."""
    WINDOW = 7
    """From the beginning of the window, or to its end."""


class PathClass(IntEnum):
    """What a nanosecond of the critical path was spent on."""

    CPU_OPERATOR = 0
    HOST_GAP = 1
    DATA_LOADING = 2
    LAUNCH_DELAY = 3
    KERNEL_KERNEL_DELAY = 4
    COMPUTE = 5
    COMMUNICATION = 6
    COPY = 7
    SYNCHRONISATION_WAIT = 8
    UNKNOWN = 9
    """Before the first recorded work of a stream, or before work whose launch was not recorded."""


@dataclass(frozen=True, eq=False)
class EventGraph(EqualByContent):
    """Activities within a window, and the order between their starts and ends.

    window_start_ns, window_end_ns  int; all times are clipped to them

    activities   one row for each host range, call or piece of device work, sorted by start_ns:

        event_index   uint32
        kind          uint8   EventKind
        name          uint32  string id
        track_id      uint32  process and thread of host rows, a row of `tracks`
        device        int32   null on host rows
        stream        int64   null on host rows
        kernel_kind   uint8   KernelKind; null on host rows
        start_ns      int64   clipped to the window
        end_ns        int64   likewise
        is_waiting    bool    a call that waits for a device

    nodes        the points of time, in order: node 0 is the beginning of the window, the last one its end:

        activity      uint32  row of `activities`; null for the first and the last node
        is_start      bool    whether the activity begins or ends there; true for the first, false for the last node
        time_ns       int64   when that was measured

    edges        the target is not before time(source) + weight_ns:

        source        uint32  row of `nodes`
        target        uint32  row of `nodes`
        type          uint8   EdgeType
        weight_ns     int64   what it takes at least
        delay_ns      int64   on the binding edge of each node, what it took beyond that; 0 on all others, and on edges
                              that the measured times contradict
        path_class    uint8   PathClass of weight and delay
        activity      uint32  row of `activities` to which its time belongs; null for gaps

    binding      int64, one value a node: row of the edge that held it up longest, -1 for node 0
    contradicted_count  edges whose target was measured before their source, which clocks explain; they count for a
                        replay, and the path is clipped there
    inferred_wait_count  waits of streams that were not recorded and that times leave little doubt about
    unknown_launch_count  pieces of device work in the window whose launch is not recorded
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
        """Return who comes before whom, for `holotrace.algorithms.longest_path`."""
        return Edges(len(self.nodes), self.edges["source"].to_numpy(), self.edges["target"].to_numpy())
