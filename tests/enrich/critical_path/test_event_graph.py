"""Tests of the event graph: its tables, and how it deals with times that contradict each other."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.algorithms.graphs.longest_path import has_cycle
from holotrace.enrich.critical_path import device_edges
from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass
from holotrace.enrich.critical_path.graph_building import event_graph
from holotrace.enrich.critical_path.path_window import path_window
from holotrace.testing.builder import TraceBuilder
from recordings import opened


def graph_of(builder: TraceBuilder) -> EventGraph:
    """Build the trace and return the graph of its step."""
    (rank_trace,) = builder.build().ranks.values()
    return event_graph(rank_trace, path_window(rank_trace))


def small() -> TraceBuilder:
    """Return an operator that launches a kernel, and a call that waits for the kernel."""
    return (
        TraceBuilder()
        .step(1, 0, 40)
        .operator("aten::mm", start_us=1, duration_us=4)
        .kernel("gemm", start_us=10, duration_us=15, launch_us=2)
        .runtime("cudaDeviceSynchronize", start_us=6, duration_us=20)
    )


def test_tables_have_the_declared_types() -> None:
    """Nodes and edges have the same columns and types in full and empty windows."""
    full, empty = graph_of(small()), graph_of(TraceBuilder().step(1, 0, 40))
    for graph in (full, empty):
        assert graph.nodes.schema == {"activity": pl.UInt32, "is_start": pl.Boolean, "time_ns": pl.Int64}
        assert graph.edges.schema == {
            "source": pl.UInt32,
            "target": pl.UInt32,
            "type": pl.UInt8,
            "weight_ns": pl.Int64,
            "delay_ns": pl.Int64,
            "path_class": pl.UInt8,
            "activity": pl.UInt32,
        }
    assert full.activities.schema == empty.activities.schema
    assert full.activities.schema["kernel_kind"] == pl.UInt8


def test_every_dependency_is_an_edge_with_its_own_time_and_delay() -> None:
    """The kernel starts 7 µs after its call, and the synchronisation returns 1 µs after the kernel ends."""
    graph = graph_of(small())
    times = graph.nodes["time_ns"] // 1_000
    edges = graph.edges.with_columns(
        pl.col("type").replace_strict({int(edge_type): edge_type.name for edge_type in EdgeType}),
        pl.col("path_class").replace_strict({int(path_class): path_class.name for path_class in PathClass}),
        pl.col("weight_ns", "delay_ns") // 1_000,
        times.gather(graph.edges["source"]).alias("from"),
        times.gather(graph.edges["target"]).alias("to"),
    )

    assert set(edges.select("type", "path_class", "from", "to", "weight_ns", "delay_ns").rows()) == {
        ("WINDOW", "HOST_GAP", 0, 1, 1, 0),
        ("OPERATOR", "CPU_OPERATOR", 1, 2, 1, 0),
        ("OPERATOR", "CPU_OPERATOR", 2, 3, 1, 0),
        ("LAUNCH", "LAUNCH_DELAY", 3, 10, 0, 7),
        ("OPERATOR", "CPU_OPERATOR", 3, 5, 2, 0),
        ("HOST_GAP", "HOST_GAP", 5, 6, 1, 0),
        ("OPERATOR", "COMPUTATION", 10, 25, 15, 0),
        ("OPERATOR", "SYNCHRONISATION_WAIT", 6, 26, 0, 0),
        ("HOST_SYNCHRONISATION", "SYNCHRONISATION_WAIT", 25, 26, 0, 1),
        ("WINDOW", "HOST_GAP", 26, 40, 14, 0),
    }
    assert graph.contradicted_count == 0


def test_every_node_but_the_first_has_a_binding_edge() -> None:
    """Binding edges lead from every node back to the start of the window."""
    graph = graph_of(small())
    binding = graph.binding.to_list()

    assert binding[0] == -1
    assert [graph.edges["target"][edge] for edge in binding[1:]] == list(range(1, len(graph.nodes)))


def test_contradicting_times_cause_no_cycle() -> None:
    """Copies a and b start before their launches, so host order and stream order contradict each other."""
    graph = graph_of(
        TraceBuilder()
        .step(1, 0, 10)
        .runtime("launch b", start_us=4, duration_us=1, correlation=1, thread=2)
        .runtime("launch a", start_us=5, duration_us=2, correlation=2)
        .runtime("other", start_us=3, duration_us=0, correlation=3)
        .copy("a", start_us=1, duration_us=0, stream=20, correlation=2)
        .copy("b", start_us=3, duration_us=1, stream=20, correlation=1)
    )

    assert not has_cycle(graph.order())
    assert EdgeType.STREAM_ORDER in graph.edges["type"].to_list()


def test_a_kernel_before_its_launch_is_a_contradiction_that_stays_in_the_graph() -> None:
    """A kernel that starts before its launch call keeps its launch edge, with a delay of 0."""
    graph = graph_of(TraceBuilder().step(1, 0, 40).kernel("gemm", start_us=4, duration_us=3, launch_us=5))
    launch = graph.edges.filter(pl.col("type") == EdgeType.LAUNCH)

    assert graph.contradicted_count == 1
    assert launch.select("weight_ns", "delay_ns").rows() == [(0, 0)]


@pytest.mark.parametrize("name", ["alexnet", "simple_add"])
def test_waits_inferred_from_times_are_those_that_were_recorded(real_traces, monkeypatch, name) -> None:
    """If the recorded waits are ignored, the same number of waits is inferred from timing."""
    (rank_trace,) = opened(real_traces / "critical_path" / name).ranks.values()
    whole = path_window(rank_trace, annotation="")
    recorded = event_graph(rank_trace, whole)
    monkeypatch.setattr(device_edges, "has_recorded_waits", lambda _: False)
    inferred = event_graph(rank_trace, whole)

    assert inferred.inferred_wait_count == 1
    assert recorded.inferred_wait_count == 0
    assert len(_event_waits(inferred)) == len(_event_waits(recorded))


def _event_waits(graph: EventGraph) -> set[tuple[int, int]]:
    return set(graph.edges.filter(pl.col("type") == EdgeType.EVENT_WAIT).select("source", "target").rows())


def test_work_waits_for_a_receive_rather_than_a_send_that_ends_with_it() -> None:
    """A receive ends at 200.0 µs and a send at 200.5; a kernel at 201 µs is inferred to wait for the receive."""
    ends = {"Src Rank": 0, "Dst Rank": 1}
    graph = graph_of(
        TraceBuilder()
        .step(1, 0, 400)
        .operator("aten::mm", start_us=1, duration_us=30)
        .collective("recv", start_us=10, duration_us=190, launch_us=2, stream=20, args=ends)
        .collective("send", start_us=10, duration_us=190.5, launch_us=4, stream=24, args=ends)
        .kernel("gemm", start_us=201, duration_us=20, launch_us=6)
    )

    assert graph.inferred_wait_count == 1
    ((source, _),) = _event_waits(graph)
    assert graph.nodes["time_ns"][source] == 200_000
