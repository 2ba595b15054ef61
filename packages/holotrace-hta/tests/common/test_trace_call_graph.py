"""Call stacks as columns of data frames."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace import open_trace
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.common.trace_call_graph import CallGraph
from hta.facade.trace.trace_view import TraceView


@pytest.fixture
def view() -> TraceView:
    """Build a trace: `outer` calls `inner`, which launches two kernels, one on stream 0; `alone` launches none."""
    builder = TraceBuilder().operator("outer", start_us=0, duration_us=50)
    builder.operator("inner", start_us=10, duration_us=20)
    builder.kernel("late", start_us=60, duration_us=4.5, launch_us=12, stream=0)
    builder.kernel("early", start_us=40, duration_us=5, launch_us=15, stream=7)
    builder.operator("alone", start_us=70, duration_us=1).kernel("unlaunched", start_us=80, duration_us=3)
    return TraceView(builder.build(), "")


def test_each_event_has_its_ancestors_and_descendants(view) -> None:
    """A call graph counts kernels on stream 0 too, and its times are on the same clock as `ts`."""
    CallGraph(view)
    columns = ["parent", "depth", "height", "num_kernels", "kernel_dur_sum", "first_kernel_start", "last_kernel_end", "kernel_span"]  # fmt: skip
    assert view.get_trace(0)[columns].to_numpy().tolist() == [
        [-1, 0, 3, 2, 9.5, 40, 64.5, 24.5],
        [0, 1, 2, 2, 9.5, 40, 64.5, 24.5],
        [1, 2, 1, 1, 4.5, 60, 64.5, 4.5],
        [2, 3, 0, 1, 4.5, 60, 64.5, 4.5],
        [1, 2, 1, 1, 5, 40, 45, 5],
        [4, 3, 0, 1, 5, 40, 45, 5],
        [-1, 0, 1, 0, 0, -1, -1, 0],
        [-1, 0, 0, 1, 3, 80, 83, 3],
    ]


def test_a_stack_can_be_taken_out(view) -> None:
    """`get_stack_of_node` returns an event with its descendants and, unless `skip_ancestors` is set, its ancestors."""
    graph = CallGraph(view)
    assert graph.get_stack_of_node(4).index.tolist() == [0, 1, 4, 5]
    assert graph.get_stack_of_node(1, skip_ancestors=True).index.tolist() == [1, 2, 4, 5, 3]
    assert graph.get_node_attributes(3, 0)["dur"] == 4.5
    assert graph.get_gpu_kernels()["ts"].tolist() == [60, 40, 80]
    with pytest.raises(InvalidOptionError, match="no event 99"):
        graph.get_stack_of_node(99)


def test_an_empty_rank_gets_the_columns_too() -> None:
    """The frame of a rank without events gets the columns of a call graph."""
    view = TraceView(TraceBuilder().build(), "")
    CallGraph(view)
    assert set(CallGraph.stack_columns) <= set(view.get_trace(0).columns)


@pytest.mark.parametrize("rank", [0, 5])
def test_kernels_are_counted_as_in_hta(real_traces, goldens, rank) -> None:
    """Count, duration and start of kernels equal HTA's in over 99 % of rows.

    HTA's spans and depths are wrong, so they are not compared.
    """
    path = goldens / "hta" / "param_dlrm" / f"call_graph.rank{rank}.csv.gz"
    theirs = pd.read_csv(path, index_col=0)
    view = TraceView(open_trace(real_traces / "dlrm_8rank", cache=False).where(before_last_step), "")
    CallGraph(view, ranks=[rank])
    both = view.get_trace(rank).join(theirs.add_suffix("_theirs"), how="inner")
    assert len(both) == len(theirs)
    for column in ("num_kernels", "kernel_dur_sum", "first_kernel_start"):
        assert (both[column] == both[f"{column}_theirs"]).mean() > 0.99
