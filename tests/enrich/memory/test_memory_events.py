"""Tests of memory events and of the host node around each of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.memory.memory_blocks import memory_blocks
from holotrace.enrich.memory.memory_events import memory_events, nodes_of_memory_events
from holotrace.testing.builder import TraceBuilder

ranges = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 15)), max_size=12)
event_times = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=12)


def with_memory(builder: TraceBuilder, thread: int, time_us: int, **args: int) -> TraceBuilder:
    """Add a memory event of the GPU."""
    known = {"Device Type": 1, "Device Id": 0, "Bytes": 1, **args}
    event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1000, "tid": thread}
    return builder.event(**event, ts=time_us, args=known)


@pytest.mark.slow
@given(ranges, event_times)
def test_the_innermost_node_has_begun_last_and_not_ended(calls, times) -> None:
    """The node of a memory event is the range that began last among those still open on its thread.

    If several open ranges share the latest start, the node is the shortest of them. The ranges are random.
    """
    builder = TraceBuilder()
    for thread, start, length in calls:
        builder.operator(f"{thread}.{start}.{length}", start_us=start, duration_us=length, thread=thread)
    for thread, time in times:
        with_memory(builder, thread, time)
    rank_trace = builder.build().ranks[0]
    nodes, node_rows = host_nodes(rank_trace), nodes_of_memory_events(rank_trace)
    names = [*rank_trace.texts(nodes["name"]), None]

    expected = []
    for thread, time in sorted(times, key=lambda thread_and_time: thread_and_time[1]):
        around = [call for call in calls if call[0] == thread and call[1] <= time < call[1] + call[2]]
        inner = max(around, key=lambda call: (call[1], -call[2]), default=None)
        expected.append(None if inner is None else ".".join(map(str, inner)))
    mine = [names[row] for row in node_rows]
    by_time = memory_events(rank_trace)["time_ns"].to_list()
    assert sorted(zip(by_time, map(str, mine), strict=True)) == sorted(zip(by_time, map(str, expected), strict=True))


def test_blocks_are_pairs_of_rows() -> None:
    """One block is allocated in row 0 and freed in row 2, one is never freed, and one was allocated before row 0."""
    builder = TraceBuilder()
    for time, size, address in ((1, 8, 1), (2, 4, 2), (3, -8, 1), (4, -9, 3)):
        with_memory(builder, 1, time, Bytes=size, Addr=address)
    events = memory_events(builder.build().ranks[0])
    assert sorted(memory_blocks(events).rows(), key=str) == [(0, 2), (1, None), (None, 3)]


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "cpu"),
        (1, "cuda"),
        (6, "cuda"),
        (9, "xla"),
        (12, "xpu"),
        (13, "mps"),
        (15, "hpu"),
        (19, "mtia"),
        (20, "privateuseone"),
        (21, "21"),
    ],
)
def test_devices_have_the_names_of_pytorch(number: int, name: str) -> None:
    """Device types are named as in `torch.device`, where HIP GPUs are cuda; unknown types are shown as numbers."""
    builder = with_memory(TraceBuilder(), 1, 1, **{"Device Type": number})
    assert memory_events(builder.build().ranks[0])["device_type"].to_list() == [name]


def test_a_device_without_a_name_stays_separate() -> None:
    """An event without a device type and id gets the type "?" and the id -1."""
    builder = TraceBuilder().event(
        ph="i", cat="cpu_instant_event", name="[memory]", pid=1000, tid=1, ts=1, args={"Bytes": 4}
    )
    events = memory_events(builder.build().ranks[0])
    assert events.select("device_type", "device", "allocated_bytes").rows() == [("?", -1, 4)]
