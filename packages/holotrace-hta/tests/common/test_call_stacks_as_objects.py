"""Call stacks as objects, in HTA's modules `trace_call_stack` and `call_stack`."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.common import call_stack
from hta.common.trace_call_graph import CallGraph
from hta.common.trace_call_stack import CallStackGraph, CallStackIdentity, CallStackNode
from hta.common.trace_filter import ZeroDurationFilter
from hta.common.types import DeviceType
from hta.facade.trace.trace_view import TraceView

OUTER, INNER, CALL, KERNEL, OTHER = range(5)


@pytest.fixture
def view() -> TraceView:
    """`outer` calls `inner`, which launches a kernel; `other` runs on another thread."""
    builder = TraceBuilder().operator("outer", start_us=0, duration_us=50)
    builder.operator("inner", start_us=10, duration_us=20)
    builder.kernel("gemm", start_us=40, duration_us=5, launch_us=12)
    builder.operator("other", start_us=5, duration_us=5, thread=2)
    return TraceView(builder.build(), "")


MAIN, SIDE = CallStackIdentity(0, 1000, 1), CallStackIdentity(0, 1000, 2)


def test_a_graph_of_each_thread(view) -> None:
    """The graph of a thread has nodes from the root down to kernels; its methods return paths through these nodes."""
    graph = CallGraph(view)
    assert list(graph.rank_to_stacks) == [0]
    assert set(graph.rank_to_stacks[0]) == {MAIN, SIDE}
    stack = graph.rank_to_stacks[0][MAIN]
    gpu = DeviceType.GPU
    assert stack.get_nodes() == {
        -1: CallStackNode(-1, -1, 4, children=[OUTER]),
        OUTER: CallStackNode(-1, 0, 3, children=[INNER]),
        INNER: CallStackNode(OUTER, 1, 2, children=[CALL]),
        CALL: CallStackNode(INNER, 2, 1, children=[KERNEL]),
        KERNEL: CallStackNode(CALL, 3, 0, gpu),
    }
    assert stack.get_path_to_root(CALL) == [CALL, INNER, OUTER, -1]
    assert stack.get_leaf_nodes(OUTER) == [CALL]
    assert stack.get_leaf_nodes(OUTER, include_gpu_kernel=True) == [KERNEL]
    assert stack.get_descendants(INNER) == [INNER, CALL]
    assert (stack.get_parent(99), stack.get_children(99), stack.get_root(CALL)) == (-2, [], -1)
    assert stack.get_depth().to_dict() == {OUTER: 0, INNER: 1, CALL: 2}
    assert set(graph.rank_to_nodes[0]) == {-1, -2, *range(5)}


def test_graphs_are_found_by_their_identity(view) -> None:
    """`get_call_stacks` finds graphs by thread or index, and `get_csg_of_node` by event."""
    graph = CallGraph(view)
    assert graph.mapping.to_numpy().tolist() == [
        [0, 1000, 1, "outer", 0, -1, 1],
        [0, 1000, 2, "other", 1, -2, 1],
    ]
    assert [stack.identity for stack in graph.get_call_stacks(tid=2)] == [SIDE]
    assert [stack.identity for stack in graph.get_call_stacks(stack_index=0)] == [MAIN]
    assert [graph.get_csg_of_node(index).identity for index in (KERNEL, OTHER)] == [MAIN, SIDE]
    with pytest.raises(InvalidOptionError, match="no event 77"):
        graph.get_csg_of_node(77)


def test_a_graph_of_a_frame_alone(view) -> None:
    """`from_dataframe` accepts symbol ids or text, and does not change the frame."""
    frame = view.get_trace(0)
    columns = list(frame.columns)
    graph = CallGraph.from_dataframe(frame[frame["stream"] < 0], view.symbol_table)
    assert [stack.identity.rank for stack in graph.call_stacks] == [-1, -1]
    texts = pd.DataFrame({"cat": "cpu_op", "name": ["a", "b"], "ts": [0, 1], "dur": [9, 1], "pid": 1, "tid": 1})
    assert CallGraph.from_dataframe(texts.assign(index=[4, 5], stream=-1)).rank_to_nodes[-1][5].parent == 4
    assert list(frame.columns) == columns


def test_a_visit_enters_and_leaves_each_node(view) -> None:
    """`dfs_traverse` enters a parent before its children, and leaves the parent after its children."""
    visited: list[tuple[str, int]] = []
    stack = CallGraph(view).rank_to_stacks[0][SIDE]
    stack.dfs_traverse(lambda index, _: visited.append(("in", index)), lambda index, _: visited.append(("out", index)))
    assert visited == [("in", -2), ("in", OTHER), ("out", OTHER), ("out", -2)]


def frame_of_a_thread() -> pd.DataFrame:
    """Return a frame in which event 0 contains event 1, which contains event 2 of duration 0."""
    rows = {"index": [0, 1, 2], "ts": [0, 1, 3], "dur": [10, 5, 0], "stream": -1, "index_correlation": -1}
    return pd.DataFrame(rows).assign(pid=1, tid=2)


def test_a_graph_of_a_thread_writes_its_columns() -> None:
    """A graph adds parent, depth and height to the frame; if the frame already has them, the graph reads them."""
    frame = frame_of_a_thread()
    none = pd.DataFrame({"cpu_index": [], "gpu_index": []})
    CallStackGraph(frame, CallStackIdentity(0, 1, 2), none, frame, None)
    assert frame[["parent", "depth", "height"]].to_numpy().tolist() == [[-2, 0, 3], [0, 1, 2], [1, 2, 1]]
    frame["parent"] = [-2, 0, 0]
    again = CallStackGraph(frame, CallStackIdentity(0, 1, 2), none, frame, None)
    assert again.get_children(0) == [1, 2]


def test_the_first_call_stacks_of_hta(view) -> None:
    """In `hta.common.call_stack`, nodes are tuples (parent, depth, children) and the root is -1; `CallGraph` adds columns."""
    stack = call_stack.CallStackGraph(frame_of_a_thread(), CallStackIdentity(0, 1, 2), ZeroDurationFilter)
    assert stack.get_nodes() == {
        -1: call_stack.CallStackNode(-1, -1, [0]),
        0: call_stack.CallStackNode(-1, 0, [1]),
        1: call_stack.CallStackNode(0, 1, []),
    }
    graph = call_stack.CallGraph(view)
    frame = view.get_trace(0)
    assert frame["parent"].tolist() == [-1, OUTER, INNER, CALL, -1]
    assert frame["depth"].tolist() == [0, 1, 2, -1, 0]
    stack_of_kernel = graph.get_stack_of_node(KERNEL, 0, skip_ancestors=True)
    assert stack_of_kernel["index"].tolist() == [CALL, KERNEL]


def test_python_functions_end_with_their_callers(view) -> None:
    """A Python function's event is cut off at its caller's end, after the caller's event itself has been cut off."""
    ids = {"python_id": [10, 11, 12], "python_parent_id": [-1, 10, 11]}
    frame = frame_of_a_thread().assign(ts=[0, 2, 4], dur=[10, 20, 30], **ids)
    call_stack.CallGraph(view).constrain_child_time_withinin_parent(frame)
    assert frame["dur"].tolist() == [10, 8, 6]
