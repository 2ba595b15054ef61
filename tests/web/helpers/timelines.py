"""Small traces and random events for tests of the timeline."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import strategies as st

from holotrace.schema import EventKind
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.index import Row, TimelineIndex
from holotrace.web.timeline.slices import Lanes


def _one_after_the_other(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Convert pairs (gap since the previous event, length) to pairs (start, length)."""
    at, events = 0, []
    for gap, length in pairs:
        events.append((at + gap, length))
        at += gap + max(length, 1)
    return events


Event = tuple[int, int]
LANES = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=25).map(
        lambda pairs: [(start, start + length) for start, length in _one_after_the_other(pairs)]
    ),
    min_size=1,
    max_size=3,
)


def index_of(lanes: list[list[Event]]) -> TimelineIndex:
    """Return a timeline index of one row with the given lanes; events are numbered from 0."""
    events = np.array([event for lane in lanes for event in lane], np.int64).reshape(-1, 2)
    bounds = np.cumsum([0, *map(len, lanes)]).astype(np.int64)
    count = len(events)
    return TimelineIndex(
        origin_ns=0,
        length_ns=int(events.max(initial=0)),
        rows=(Row("thread 1", "python 1", None, 0, 0, len(lanes), count, 0),),
        events=Lanes(bounds, events[:, 0].copy(), events[:, 1].copy()),
        name=np.zeros(count, np.uint32),
        kind=np.full(count, EventKind.CPU_OP, np.uint8),
        event_index=np.arange(count, dtype=np.uint32),
        step_ranges=(),
        strings=pl.Series("text", ["aten::add"]),
    )


def two_threads() -> Trace:
    """Return a trace with an operator, the kernel that it launches, and its backward operator on another thread."""
    return (
        TraceBuilder(base_time_ns=1_000_000)
        .operator("aten::mm", start_us=0, duration_us=100)
        .kernel("gemm", start_us=50, duration_us=200, launch_us=10, launch_duration_us=5)
        .operator("MmBackward0", start_us=300, duration_us=50, thread=2)
        .build()
    )
