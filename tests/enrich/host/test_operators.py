"""Tests of launching_operator, which finds the operator of device work."""

from __future__ import annotations

from holotrace.enrich.host.operators import launching_operator
from holotrace.testing.builder import TraceBuilder


def operators_of(builder):
    """Return the rows of rank 0 without the names of the operators."""
    rank_trace = builder.build().ranks[0]
    table = launching_operator(rank_trace)
    names = rank_trace.table("events", ["name"])["name"]
    assert table["operator_name"].to_list() == names.gather(table["operator_index"]).to_list()
    return table.drop("operator_name").rows()


def test_a_kernel_has_an_innermost_and_an_outermost_operator():
    """The annotation between aten::linear and aten::mm is not an operator."""
    builder = (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=50)
        .annotation("part", start_us=5, duration_us=30)
        .operator("aten::mm", start_us=10, duration_us=20)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=15)
    )

    assert operators_of(builder) == [(4, 3, 2, 0)]


def test_an_operator_on_another_thread_does_not_count():
    """A kernel that thread 1 launches in aten::mm does not belong to aten::add on thread 2."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=50)
        .operator("aten::add", start_us=10, duration_us=20, thread=2)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=15)
    )

    assert operators_of(builder) == [(3, 2, 0, 0)]


def test_every_kernel_of_a_graph_belongs_to_the_operator_that_launched_the_graph():
    """Two kernels of one cudaGraphLaunch have its correlation and therefore its operator."""
    builder = (
        TraceBuilder()
        .operator("replay", start_us=0, duration_us=20)
        .kernel("a", start_us=30, duration_us=5, launch_us=5, launch_name="cudaGraphLaunch", correlation=9)
        .kernel("b", start_us=40, duration_us=5, correlation=9)
    )

    assert operators_of(builder) == [(2, 1, 0, 0), (3, 1, 0, 0)]


def test_any_call_with_the_correlation_is_a_launch():
    """Driver calls such as cuLaunchKernelEx, and hipLaunchKernel on stream 0, are launches too."""
    builder = (
        TraceBuilder()
        .operator("triton_op", start_us=0, duration_us=20)
        .kernel("a", start_us=30, duration_us=5, launch_us=5, launch_name="cuLaunchKernelEx")
        .kernel("b", start_us=40, duration_us=5, launch_us=8, launch_name="hipLaunchKernel", stream=0)
    )

    assert operators_of(builder) == [(2, 1, 0, 0), (4, 3, 0, 0)]


def test_the_external_id_replaces_the_stack():
    """A launch on a thread without operators gets its operator from the external id."""
    known = {"External id": 77}
    builder = (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=50)
        .operator("aten::mm", start_us=1, duration_us=4, args=known)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=15, thread=2, args=known)
        .kernel("unknown", start_us=70, duration_us=5)
    )

    assert operators_of(builder) == [(3, 2, 1, 0), (4, None, None, None)]


def test_no_device_work_gives_no_row():
    """For a trace with only operators, the table is empty."""
    assert operators_of(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)) == []


def test_no_host_events_give_nulls():
    """A kernel whose launch was not recorded gets a row of nulls."""
    assert operators_of(TraceBuilder().kernel("gemm", start_us=0, duration_us=5, correlation=3)) == [
        (0, None, None, None)
    ]
