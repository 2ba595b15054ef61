"""Tests of host trees and of the device work of their nodes."""

from __future__ import annotations

from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import device_owner, host_nodes, node_texts, runtime_owner
from holotrace.testing.builder import TraceBuilder


def frame(builder: TraceBuilder, name: str, start: int, duration: int) -> TraceBuilder:
    """Add a Python function on thread 1."""
    return builder.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start, dur=duration)


def nodes_of(builder: TraceBuilder, *columns: str) -> list[tuple[object, ...]]:
    """Return the name and the given columns of each node of rank 0."""
    rank_trace = builder.build().ranks[0]
    nodes = host_nodes(rank_trace)
    return list(zip(node_texts(rank_trace, nodes), *(nodes[column] for column in columns), strict=True))


def owners_of(builder: TraceBuilder) -> list[tuple[object, ...]]:
    """Return the names of the node and the operator of each device row of rank 0."""
    rank_trace = builder.build().ranks[0]
    names = dict(enumerate(node_texts(rank_trace, host_nodes(rank_trace))))
    owners = device_owner(rank_trace).select("node", "operator")
    return [(names.get(node), names.get(operator)) for node, operator in owners.iter_rows()]


def test_modules_are_nodes_and_other_functions_are_not():
    """The module Linear_0 contains aten::mm, although both take 10 µs; the function in functional.py is not a node."""
    builder = frame(TraceBuilder(), "nn.Module: Linear_0", 0, 10)
    frame(builder, "functional.py(1): linear", 0, 10).operator("aten::mm", start_us=0, duration_us=10)

    assert nodes_of(builder, "parent", "depth", "node_class", "is_counted") == [
        ("nn.Module: Linear_0", -1, 0, NodeClass.MODULE, False),
        ("aten::mm", 0, 1, NodeClass.OPERATOR, True),
    ]


def test_names_identify_steps_loaders_and_optimizers_even_as_operators():
    """Files from 2021 list steps, data loaders, optimizers and DDP's wrapper as operators; only aten::mm is one."""
    builder = (
        TraceBuilder()
        .operator("ProfilerStep#3", start_us=0, duration_us=90)
        .operator("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start_us=1, duration_us=9)
        .operator("DistributedDataParallel.forward", start_us=10, duration_us=20)
        .operator("aten::mm", start_us=11, duration_us=5)
        .operator("Optimizer.step#SGD.step", start_us=40, duration_us=9)
        .operator("Optimizer.zero_grad#SGD.zero_grad", start_us=50, duration_us=9)
    )

    assert [(kind, counted) for _, kind, counted in nodes_of(builder, "node_class", "is_counted")] == [
        (NodeClass.STEP, False),
        (NodeClass.DATALOADER, False),
        (NodeClass.OPERATOR, False),
        (NodeClass.OPERATOR, True),
        (NodeClass.OPTIMIZER, False),
        (NodeClass.OPERATOR, False),
    ]


def test_an_annotation_inside_an_operator_is_not_a_node():
    """A kernel launched in an annotation inside aten::linear belongs to aten::linear."""
    builder = (
        TraceBuilder()
        .annotation("part", start_us=0, duration_us=50)
        .operator("aten::linear", start_us=5, duration_us=30)
        .annotation("inner", start_us=6, duration_us=20)
        .operator("aten::mm", start_us=7, duration_us=5)
        .kernel("a", start_us=60, duration_us=5, launch_us=15)
    )

    assert nodes_of(builder, "parent") == [("part", -1), ("aten::linear", 0), ("aten::mm", 1)]
    assert owners_of(builder) == [("aten::linear", "aten::linear")]


def test_a_range_that_overlaps_its_sibling_subtracts_only_the_rest():
    """aten::b (8 to 15 µs) overlaps aten::a (2 to 10 µs), so only 5 of its 7 µs are subtracted from their parent."""
    builder = (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=20)
        .operator("aten::a", start_us=2, duration_us=8)
        .operator("aten::b", start_us=8, duration_us=7)
    )

    assert nodes_of(builder, "parent", "of_parent_ns")[1:] == [("aten::a", 0, 8_000), ("aten::b", 0, 5_000)]


def test_a_driver_call_inside_a_runtime_call_subtracts_nothing():
    """A cuLaunchKernel inside a cudaLaunchKernel is not subtracted again from the self time of aten::mm."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=10)
        .runtime("cudaLaunchKernel", start_us=1, duration_us=5, correlation=1)
        .runtime("cuLaunchKernel", start_us=2, duration_us=3, correlation=1)
    )

    assert runtime_owner(builder.build().ranks[0]).rows() == [(1, 0, 5_000), (2, 0, 0)]


def test_an_operator_inside_a_call_subtracts_nothing_more():
    """aten::inner runs inside a launch call of aten::outer; only the 8 µs of the call are subtracted."""
    builder = (
        TraceBuilder()
        .operator("aten::outer", start_us=0, duration_us=10)
        .runtime("cudaGraphLaunch", start_us=1, duration_us=8, correlation=1)
        .operator("aten::inner", start_us=2, duration_us=3)
    )

    assert nodes_of(builder, "parent", "of_parent_ns") == [("aten::outer", -1, 10_000), ("aten::inner", 0, 0)]


def test_work_launched_in_an_annotation_has_a_node_but_no_operator():
    """A kernel launched in a record_function outside operators belongs to the annotation and has no operator."""
    builder = (
        TraceBuilder()
        .annotation("part", start_us=0, duration_us=50)
        .kernel("custom", start_us=60, duration_us=5, launch_us=15)
    )

    assert owners_of(builder) == [("part", None)]


def test_work_without_a_call_belongs_to_the_operator_with_its_external_id():
    """A kernel without a recorded launch belongs to the operator with its external id; without an id, to no operator."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=10, args={"External id": 7})
        .kernel("gemm", start_us=20, duration_us=5, args={"External id": 7})
        .kernel("other", start_us=30, duration_us=5)
    )

    assert owners_of(builder) == [("aten::mm", "aten::mm"), (None, None)]


def test_threads_of_two_processes_are_separate():
    """An operator on thread 1 of one process does not contain operators on thread 1 of another process."""
    builder = TraceBuilder().operator("aten::mm", start_us=5, duration_us=2)
    builder.event(ph="X", cat="cpu_op", name="aten::outer", pid=77, tid=1, ts=0, dur=50)

    assert sorted(nodes_of(builder, "parent")) == [("aten::mm", -1), ("aten::outer", -1)]


def test_a_trace_without_host_events_has_no_nodes():
    """A trace of one kernel has no host nodes, and the kernel has no owner."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)

    assert nodes_of(builder) == []
    assert owners_of(builder) == [(None, None)]
