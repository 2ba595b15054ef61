"""Tests of call_graph, which adds the start, end and waits of a rank's communication to its event graph."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.critical_path.event_graph import EdgeType
from holotrace.enrich.critical_path.path_window import path_window
from holotrace.enrich.job_graph.call_nodes import CallGraph, call_graph
from holotrace.testing.builder import TraceBuilder

STEP_US = 100


def of_step(builder: TraceBuilder) -> CallGraph:
    """Build the trace and return the call graph of its step."""
    (rank_trace,) = builder.build().ranks.values()
    return call_graph(rank_trace, path_window(rank_trace))


def times_us(result: CallGraph) -> list[tuple[int, ...]]:
    """Return the times at which each call is requested, starts and ends, in µs after the start of the step."""
    times = result.graph.nodes["time_ns"] // 1_000
    begin = times[0]
    columns = [times.gather(result.calls[name]) - begin for name in ("asked_node", "start_node", "end_node")]
    return list(zip(*(column.to_list() for column in columns), strict=True))


def binding_us(result: CallGraph, node: int) -> tuple[str, int, int]:
    """Return the type of a node's binding edge, and the times of its two ends in µs after the start of the step."""
    edge = result.graph.edges.row(result.graph.binding[node], named=True)
    times = result.graph.nodes["time_ns"]
    from_us, to_us = ((times[edge[end]] - times[0]) // 1_000 for end in ("source", "target"))
    return EdgeType(edge["type"]).name, from_us, to_us


def with_receive() -> TraceBuilder:
    """Return a thread that requests a receive, waits for it and continues, with the annotations of gloo."""
    return (
        TraceBuilder()
        .step(1, 0, STEP_US)
        .operator("c10d::recv_", start_us=10, duration_us=5)
        .annotation("gloo:recv", start_us=14, duration_us=46)
        .operator("aten::mm", start_us=20, duration_us=5)
        .operator("aten::add", start_us=62, duration_us=3)
    )


def test_a_receive_runs_beside_the_thread_that_requested_it() -> None:
    """The receive is requested at 10 µs, starts at 14 µs and ends at 60 µs; the thread runs `aten::mm` meanwhile."""
    result = of_step(with_receive())
    assert times_us(result) == [(10, 14, 60)]
    (start, end) = result.calls.select("start_node", "end_node").row(0)
    assert binding_us(result, start) == ("HAND_OVER", 10, 14)
    assert binding_us(result, end) == ("OPERATOR", 25, 60), "the thread begins to wait at 25"


def test_a_receive_that_is_awaited_at_once_takes_all_of_its_time() -> None:
    """If a thread requests a receive and waits for it at once, the receive's start determines when the receive ends."""
    builder = (
        TraceBuilder()
        .step(1, 0, STEP_US)
        .operator("c10d::recv_", start_us=10, duration_us=3)
        .annotation("gloo:recv", start_us=14, duration_us=46)
        .operator("aten::add", start_us=62, duration_us=3)
    )
    result = of_step(builder)
    assert binding_us(result, result.calls["end_node"][0]) == ("OPERATOR", 14, 60)


def test_a_thread_waits_for_the_end_of_a_receive() -> None:
    """The thread is idle from 25 to 62 µs, because it waits for the receive, which ends at 60 µs."""
    result = of_step(with_receive())
    activity = result.graph.activities.with_row_index("row").filter(start_ns=result.graph.window_start_ns + 62_000)
    nodes = result.graph.nodes.with_row_index("node").filter("is_start", activity=activity["row"][0])
    assert binding_us(result, nodes["node"][0]) == ("HAND_OVER", 60, 62)


def test_a_recorded_wait_ends_with_the_call() -> None:
    """A Python function runs for less than half of the gap, but its name shows that the thread waits."""
    frame = {"Python id": 1, "Python parent id": None}
    wait = "<built-in method wait of pybind11_builtins.pybind11_detail_function_record object at 0x7f>"
    builder = with_receive().event(ph="X", cat="python_function", name=wait, pid=1000, tid=1, ts=58, dur=3, args=frame)
    result = of_step(builder)
    activities = result.graph.activities
    assert activities.filter("is_waiting").height == 1
    row = activities["is_waiting"].arg_true()[0]
    node = result.graph.nodes.with_row_index("node").filter(~pl.col("is_start"), activity=row)["node"][0]
    assert binding_us(result, node) == ("HAND_OVER", 60, 61)


def test_kernels_are_asked_for_where_they_start() -> None:
    """A collective on a device is requested and starts when its kernel starts, and ends when its kernel ends."""
    builder = (
        TraceBuilder().step(1, 0, STEP_US).collective(group_ranks=(0, 1), start_us=30, duration_us=20, launch_us=10)
    )
    assert times_us(of_step(builder)) == [(30, 30, 50)]


def test_threads_that_only_communicate_keep_their_order() -> None:
    """On one gloo worker, the second of two collectives starts after the first one ends."""
    builder = TraceBuilder().step(1, 0, STEP_US).operator("aten::mm", start_us=1, duration_us=80)
    for start_us in (10, 31):
        builder.annotation("gloo:all_reduce", start_us=start_us, duration_us=20, thread=7)
    result = of_step(builder)
    second = result.calls["start_node"][1]
    assert binding_us(result, second)[1:] == (30, 31)


def test_a_window_without_calls_has_none() -> None:
    """Without calls, the table has no rows and keeps its column types."""
    result = of_step(TraceBuilder().step(1, 0, STEP_US).operator("aten::mm", start_us=1, duration_us=5))
    assert result.calls.schema == dict.fromkeys(
        ("event_index", "activity", "asked_node", "start_node", "end_node"), pl.UInt32
    )
    assert result.calls.is_empty()
