"""The critical path with HTA's methods and objects."""

from __future__ import annotations

import gzip
import json
import math
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError, MissingDataError, NotASavedPathError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.analyzers.critical_path_analysis import (
    BoundType,
    CPEdge,
    CPEdgeType,
    CPGraph,
    CPNode,
    CriticalPathAnalysis,
    restore_cpgraph,
)
from hta.trace_analysis import TraceAnalysis

MM, LAUNCH, GEMM, SYNC = 1, 2, 3, 4
"""Indices of the events of `small`; event 0 is the step."""


def small() -> TraceBuilder:
    """Return a step of 100 µs: mm (10..30) launches gemm (40..80) at 15, and a call (50..90) waits for gemm."""
    return (
        TraceBuilder(base_time_ns=5_000)
        .step(1, 0, 100)
        .operator("aten::mm", start_us=10, duration_us=20)
        .kernel("void gemm<int>(float*)", start_us=40, duration_us=40, launch_us=15, launch_duration_us=5)
        .runtime("cudaStreamSynchronize", start_us=50, duration_us=40, correlation=9)
        .sync("Stream Sync", start_us=50, duration_us=30, correlation=9)
    )


@pytest.fixture
def analyzer(tmp_path, monkeypatch) -> TraceAnalysis:
    """Write the job of `small` and open it."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    small().write(tmp_path / "job")
    return TraceAnalysis(trace_dir=str(tmp_path / "job"))


@pytest.fixture
def graph(analyzer) -> CPGraph:
    """Analyse the step of `small`."""
    graph, succeeded = analyzer.critical_path_analysis(0, "ProfilerStep", 0)
    assert succeeded is True
    return graph


def test_the_parts_of_the_path_add_up_to_the_step(graph, capsys) -> None:
    """The path: gap 10, mm 5, launch 5, launch delay 20, gemm 40, synchronization 10 and gap 10 add up to 100 µs."""
    breakdown = graph.get_critical_path_breakdown()

    columns = "event_idx duration type s_name cat pid tid stream index bound_by"
    assert list(breakdown.columns) == columns.split()
    shown = breakdown[["event_idx", "duration", "type", "s_name", "stream", "bound_by"]]
    assert shown.astype(object).where(shown.notna(), None).to_numpy().tolist() == [
        [None, 10, "critical_path_dependency", None, None, "host_gap"],
        [MM, 5, "critical_path_operator", "aten::mm", -1, "cpu_bound"],
        [LAUNCH, 5, "critical_path_operator", "cudaLaunchKernel", -1, "cpu_bound"],
        [GEMM, 20, "critical_path_kernel_launch_delay", "gemm", 7, "gpu_kernel_launch_overhead"],
        [GEMM, 40, "critical_path_operator", "gemm", 7, "gpu_compute_bound"],
        [SYNC, 10, "critical_path_sync_dependency", "cudaStreamSynchronize", -1, "synchronization_wait"],
        [None, 10, "critical_path_dependency", None, None, "host_gap"],
    ]
    assert graph.summary().to_dict() == {
        "cpu_bound": 10,
        "gpu_compute_bound": 40,
        "gpu_kernel_launch_overhead": 20,
        "host_gap": 20,
        "synchronization_wait": 10,
    }
    assert "ProfilerStep, instance 0: 100 µs" in capsys.readouterr().out
    assert set(breakdown["bound_by"]) <= {bound.value for bound in BoundType}


def test_nodes_edges_and_maps_describe_the_events(graph) -> None:
    """The graph has two nodes per event and two for the ends of the window; every edge leads to a later node."""
    assert (len(graph), graph.number_of_nodes(), graph.number_of_edges()) == (10, 10, len(graph.edges))
    assert graph.critical_path_nodes == [0, 1, 2, 3, 5, 7, 8, 9]
    assert graph.node_list[5] == CPNode(5, GEMM, 40, is_start=True, is_blocking=False)
    assert graph.node_list[-1] == CPNode(9, -1, 100, is_start=False, is_blocking=False)
    assert [node.ev_idx for node in graph.node_list[6:9]] == [SYNC, GEMM, SYNC]
    assert graph.get_nodes_for_event(SYNC)[0].is_blocking
    assert graph.get_nodes_for_event(0) == (None, None)
    assert graph.event_to_start_node_map == {MM: 1, LAUNCH: 2, GEMM: 5, SYNC: 6}
    assert graph.event_to_end_node_map == {LAUNCH: 3, MM: 4, GEMM: 7, SYNC: 8}
    assert graph.critical_path_events_set == {MM, LAUNCH, GEMM, SYNC}
    kernel = CPEdge(5, 7, CPEdgeType.OPERATOR_KERNEL, 40)
    assert kernel in graph.critical_path_edges_set
    assert graph.edges[5, 7]["object"] == kernel
    assert (3, 5) in graph.edges
    assert (5, 3) not in graph.edges
    assert graph.get_events_for_edge(kernel) == (GEMM, GEMM)
    assert graph.get_event_attribution_for_edge(kernel) == graph.edge_to_event_map[5, 7] == GEMM
    assert graph.get_event_attribution_for_edge(CPEdge(0, 1, CPEdgeType.DEPENDENCY)) is None
    assert kernel in graph.get_edges_attributed_to_event(GEMM)
    assert all(begin < end for begin, end in graph.edges)


def test_frames_hold_the_events_of_the_graph_and_all(graph, analyzer) -> None:
    """`full_trace_df` has all events of the rank; `trace_df` has only the events of the graph."""
    assert graph.trace_df.index.tolist() == [MM, LAUNCH, GEMM, SYNC]
    pd.testing.assert_frame_equal(graph.full_trace_df, analyzer.t.get_trace(0))
    assert graph.trace_df.loc[MM, "iteration"] == 1


def test_networkx_finds_a_path_of_the_same_length(graph) -> None:
    """The longest path that networkx computes is the critical path: 100 µs."""
    converted = graph.to_networkx()

    assert isinstance(converted, nx.DiGraph)
    assert nx.dag_longest_path_length(converted) == 100
    assert nx.dag_longest_path(converted) == graph.critical_path_nodes
    assert converted.edges[5, 7]["object"].weight == 40


def test_without_networkx_the_way_out_is_named(graph, monkeypatch) -> None:
    """Without networkx, `to_networkx` fails with an error that says what to install."""
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDataError, match="pip install networkx"):
        graph.to_networkx()


def test_weights_that_a_script_sets_move_the_path(graph, tmp_path, analyzer) -> None:
    """If a script sets the weights of gemm and of the delays before and after it to 3 µs, the path avoids gemm."""
    for begin, end in ((5, 7), (3, 5), (7, 8)):
        graph.edges[begin, end]["weight"] = 3

    assert graph.critical_path()
    assert graph.critical_path_nodes == [0, 1, 2, 3, 4, 6, 8, 9]
    assert math.isclose(graph.summary().sum(), 100)
    assert graph.get_critical_path_breakdown()["duration"].sum() == 60
    marked = copied(analyzer.overlay_critical_path_analysis(0, graph, str(tmp_path / "out")))[0]
    assert "gemm" not in "".join(marked)

    graph.edges[3, 5]["weight"] = 100
    assert graph.critical_path()
    assert GEMM in graph.critical_path_events_set


@pytest.mark.parametrize(("key", "value"), [("weight", -1), ("weight", float("nan")), ("object", 5)])
def test_only_valid_weights_can_be_set(graph, key, value) -> None:
    """A negative or NaN weight, and any attribute other than the weight, is refused."""
    with pytest.raises(InvalidOptionError, match="weight can be set"):
        graph.edges[5, 7][key] = value
    with pytest.raises(InvalidOptionError, match="cannot be removed"):
        del graph.edges[5, 7]["weight"]


def test_a_kernel_before_its_launch_fails_only_a_strict_analysis(tmp_path, monkeypatch) -> None:
    """If a kernel starts before its launch, `critical_path` fails only if the environment variable for strict checks is 1."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    builder = small().kernel("early", start_us=31, duration_us=1, launch_us=35, stream=8)
    builder.write(tmp_path / "job")
    analyzer = TraceAnalysis(trace_dir=str(tmp_path / "job"))

    graph, succeeded = analyzer.critical_path_analysis(0, "ProfilerStep", 0)
    assert succeeded
    monkeypatch.setenv("CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS", "1")
    assert not graph.critical_path()
    assert graph.get_critical_path_breakdown()["duration"].sum() == 100


def copied(path: str) -> tuple[list[str], list[dict]]:
    """Read a copy of a trace; return the names of its marked events, and the events of its arrows."""
    content = Path(path).read_bytes()
    events = json.loads(gzip.decompress(content) if path.endswith(".gz") else content)["traceEvents"]
    marked = [event["name"] for event in events if event["ph"] == "X" and event["args"].get("critical") == 1]
    return marked, [event for event in events if event.get("cat") == "critical_path"]


def test_the_copy_marks_the_path_and_replaces_an_earlier_one(analyzer, graph, tmp_path) -> None:
    """`overlay_critical_path_analysis` creates the folder, marks four events and replaces an earlier copy, as in HTA."""
    folder = tmp_path / "job" / "out"

    paths = [analyzer.overlay_critical_path_analysis(0, graph, str(folder)) for _ in range(2)]

    assert paths == [str(folder / "overlaid_critical_path_rank0.pt.trace.json")] * 2
    marked, arrows = copied(paths[0])
    assert marked == ["aten::mm", "cudaLaunchKernel", "void gemm<int>(float*)", "cudaStreamSynchronize"]
    assert len(arrows) == 4


def test_copies_with_all_edges_show_launches_without_delay_if_asked_to(tmp_path, monkeypatch) -> None:
    """If an environment variable is set, copies with all edges also show a launch without delay, as two arrows."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    builder = small().kernel("late", start_us=81, duration_us=3, launch_us=31)
    builder.write(tmp_path / "job")
    analyzer = TraceAnalysis(trace_dir=str(tmp_path / "job"))
    graph, _ = analyzer.critical_path_analysis(0, "ProfilerStep", 0)

    def arrow_count(**options: bool) -> int:
        return len(copied(analyzer.overlay_critical_path_analysis(0, graph, str(tmp_path / "out"), **options))[1])

    everything = {"only_show_critical_events": False, "show_all_edges": True}
    usual = arrow_count(**everything)
    monkeypatch.setenv("CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE", "1")
    assert arrow_count(**everything) == usual + 2
    assert arrow_count(show_all_edges=True) == arrow_count()


def test_a_copy_for_another_rank_or_over_a_file_is_refused(analyzer, graph, tmp_path) -> None:
    """It is an error to mark the path in another rank's trace, or to name a file as the folder."""
    with pytest.raises(InvalidOptionError, match="belongs to rank 0 and cannot be drawn into the trace of rank 1"):
        analyzer.overlay_critical_path_analysis(1, graph, str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        analyzer.overlay_critical_path_analysis(0, graph, str(tmp_path / "file"))


def test_a_saved_graph_is_restored_unchanged(graph, analyzer, tmp_path) -> None:
    """A saved graph keeps nodes, edges and breakdown; `overwrite=False` refuses to replace the file."""
    path = graph.save(str(tmp_path / "new" / "saved"), overwrite=False)
    restored = restore_cpgraph(path, analyzer.t, 0)

    assert path == str(tmp_path / "new" / "saved.zip")
    assert list(restored.node_list) == list(graph.node_list)
    assert restored.critical_path_edges_set == graph.critical_path_edges_set
    pd.testing.assert_frame_equal(restored.get_critical_path_breakdown(), graph.get_critical_path_breakdown())
    assert restored.critical_path()
    with pytest.raises(InvalidOptionError, match="already exists"):
        graph.save(str(tmp_path / "new" / "saved"), overwrite=False)
    assert graph.save(str(tmp_path / "new" / "saved"), overwrite=True) == path


def test_a_file_that_is_not_a_saved_graph_is_an_error(analyzer, tmp_path) -> None:
    """Restoring a file that is not a saved graph, or an unknown rank, raises an error."""
    (tmp_path / "other.zip").write_bytes(b"PK nothing")
    with pytest.raises(NotASavedPathError, match=r"other\.zip is not a saved critical path"):
        restore_cpgraph(str(tmp_path / "other.zip"), analyzer.t, 0)
    with pytest.raises(UnknownRankError):
        restore_cpgraph(str(tmp_path / "other.zip"), analyzer.t, 9)


@pytest.mark.parametrize(
    ("annotation", "instance", "message"),
    [
        ("ProfilerStap", 0, "no annotation or operator 'ProfilerStap'; the nearest names: 'ProfilerStep#1'"),
        ("ProfilerStep", 3, "has 1 instance of 'ProfilerStep'"),
        ("ProfilerStep", (0, 3), "has 1 instance of 'ProfilerStep'"),
    ],
)
def test_an_unknown_annotation_or_instance_is_an_error(analyzer, annotation, instance, message) -> None:
    """The error for an unknown name lists the nearest names; the error for an instance says how many exist."""
    with pytest.raises(InvalidOptionError, match=message):
        analyzer.critical_path_analysis(0, annotation, instance)
    with pytest.raises(UnknownRankError):
        analyzer.critical_path_analysis(5, annotation, instance)


def test_the_whole_trace_and_several_instances_are_windows_too(analyzer, graph) -> None:
    """An empty name selects the whole trace; a pair selects a range of instances; None selects the first instance."""
    assert analyzer.critical_path_analysis(0, "", 4)[0].path_graph.window == "whole recording"
    assert analyzer.critical_path_analysis(0, "ProfilerStep", (0, 0))[0].edges == graph.edges
    assert analyzer.critical_path_analysis(0, "ProfilerStep", None)[0].path_graph.window == graph.path_graph.window


def test_events_that_load_data_are_recognized_by_name(analyzer) -> None:
    """Names of data-loading events are literal text, including brackets, not regular expressions."""
    graph, _ = analyzer.critical_path_analysis(0, "ProfilerStep", 0, data_load_events=["aten::mm"])
    assert graph.summary()["data_loading"] == 10
    assert graph.data_load_events == ["aten::mm"]
    assert "data_loading" not in analyzer.critical_path_analysis(0, "ProfilerStep", 0, ["aten::m("])[0].summary()


def test_the_path_can_be_logged(graph, caplog) -> None:
    """`show_critical_path` logs one line per node of the path."""
    with caplog.at_level("INFO", logger="holotrace"):
        graph.show_critical_path()
    assert len(caplog.messages) == 8
    assert "ev_name = aten::mm" in caplog.messages[1]
    assert "ProfilerStep, instance 0" in repr(graph)


def test_hta_class_methods_give_the_same_graph(analyzer, graph, tmp_path) -> None:
    """The class methods of `CriticalPathAnalysis` return the same path and can draw selected edge types."""
    of_function, succeeded = CriticalPathAnalysis.critical_path_analysis(analyzer.t, 0, "ProfilerStep", 0)

    assert succeeded
    assert of_function.critical_path_edges_set == graph.critical_path_edges_set
    launches = {CPEdgeType.KERNEL_LAUNCH_DELAY}
    path = CriticalPathAnalysis.overlay_critical_path_analysis(
        analyzer.t,
        0,
        of_function,
        str(tmp_path / "out"),
        only_show_critical_events=True,
        show_all_edges=False,
        edge_types_to_viz=launches,
    )
    assert [event["args"]["type"] for event in copied(path)[1]] == ["critical_path_kernel_launch_delay"] * 2


def test_functions_of_networkx_take_the_graph(graph) -> None:
    """Functions of networkx return equal results for a CPGraph and its DiGraph, even after weights have changed."""
    nx = pytest.importorskip("networkx")
    converted = graph.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert nx.dag_longest_path(graph, "weight") == nx.dag_longest_path(converted, "weight")
    assert list(nx.topological_sort(graph)) == list(nx.topological_sort(converted))
    assert nx.descendants(graph, 0) == nx.descendants(converted, 0)
    assert dict(graph.in_degree()) == dict(converted.in_degree())
    assert list(graph.successors(0)) == list(converted.successors(0))
    assert (list(graph), 0 in graph, len(graph) in graph) == (list(converted), True, False)
    assert list(graph.nodes(data=True)) == list(converted.nodes(data=True))
    (begin, end) = next(iter(graph.edges))
    graph.edges[begin, end]["weight"] = 12_345
    assert graph[begin][end]["weight"] == 12_345
    with pytest.raises(AttributeError, match="CPGraph"):
        _ = graph.nothing_like_it
