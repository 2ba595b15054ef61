"""Tests of the times of host tree nodes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from holotrace.enrich.compat import attribution_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.host.host_nodes import device_owner, host_nodes, node_texts, runtime_owner
from holotrace.enrich.host.node_times import device_durations, node_times
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder
from tb_goldens import EACH_CASE, case

GEMM = "ampere_fp16_s16816gemm_fp16_128x128"
"""A kernel that uses tensor cores."""


def times_of(builder: TraceBuilder, *columns: str) -> dict[str, tuple[object, ...]]:
    """Return {name of the node: the given times} for the nodes of rank 0."""
    rank_trace = builder.build().ranks[0]
    rows = node_times(rank_trace).select(columns).rows()
    return dict(zip(node_texts(rank_trace, host_nodes(rank_trace)), rows, strict=True))


def linear() -> TraceBuilder:
    """Return aten::linear (50 µs), which launches a kernel and contains aten::mm (20 µs).

    aten::mm launches a kernel and a memset.
    """
    return (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=50)
        .kernel("add", start_us=60, duration_us=4, launch_us=40, launch_duration_us=3)
        .operator("aten::mm", start_us=10, duration_us=20)
        .kernel(GEMM, start_us=70, duration_us=8, launch_us=12, launch_duration_us=2)
        .memset(start_us=72, duration_us=1, launch_us=20, launch_duration_us=1, stream=8)
    )


def test_self_time_excludes_children_and_calls():
    """Self time excludes children and launches: aten::linear has 50 - 20 - 3 µs and aten::mm has 20 - 2 - 1 µs."""
    assert times_of(linear(), "host_total_ns", "host_self_ns") == {
        "aten::linear": (50_000, 27_000),
        "aten::mm": (20_000, 17_000),
    }


def test_device_time_is_summed_over_streams_and_children():
    """aten::mm launched 8 µs and 1 µs of work, which overlap but are added; aten::linear launched another 4 µs."""
    assert times_of(linear(), "device_total_ns", "device_self_ns") == {
        "aten::linear": (13_000, 4_000),
        "aten::mm": (9_000, 9_000),
    }


def test_tensor_cores_are_counted_by_kernel():
    """The 8 µs of the tensor-core kernel count as aten::mm's own time and toward aten::linear's total."""
    assert times_of(linear(), "tensor_core_total_ns", "tensor_core_self_ns") == {
        "aten::linear": (8_000, 0),
        "aten::mm": (8_000, 8_000),
    }


def test_operators_are_eligible_by_name_kernel_or_inner_operator():
    """aten::mm is eligible for tensor cores by its name, my::op by its kernel, and my::outer by an inner operator."""
    builder = (
        TraceBuilder()
        .annotation("part", start_us=0, duration_us=99)
        .operator("my::outer", start_us=1, duration_us=20)
        .operator("aten::mm", start_us=2, duration_us=5)
        .operator("my::op", start_us=30, duration_us=9)
        .kernel(GEMM, start_us=100, duration_us=8, launch_us=31)
        .operator("aten::add", start_us=50, duration_us=9)
    )

    assert times_of(builder, "is_tensor_core_eligible") == {
        "part": (False,),
        "my::outer": (True,),
        "aten::mm": (True,),
        "my::op": (True,),
        "aten::add": (False,),
    }


@pytest.fixture(params=EACH_CASE, scope="module")
def real(request, goldens, real_traces) -> RankTrace:
    """Return the first rank of a trace.

    The fixture runs for all traces for which the plugin's results are stored, including unusual ones.
    """
    return next(iter(case(request.param, goldens, real_traces).trace.ranks.values()))


@pytest.mark.slow
def test_no_time_is_lost_or_made_up(real):
    """Self times and times of launch calls add up to the times of the outermost nodes.

    Device times add up to the time of all device work that belongs to a node.
    """
    nodes, times, calls = host_nodes(real), node_times(real), runtime_owner(real)
    outermost = times.filter(nodes["parent"] == -1)
    called_ns = calls.filter(pl.col("node") >= 0)["of_parent_ns"].sum()
    work = device_owner(real).join(device_durations(real), on="event_index")

    assert (times["host_self_ns"] >= 0).all()
    # Two siblings of this trace overlap by 10 µs.
    shared_ns = 10_000 if "partially_overlapping_ops" in real.source else 0
    assert times["host_self_ns"].sum() + called_ns == outermost["host_total_ns"].sum() + shared_ns
    assert times["device_self_ns"].sum() == work.filter(pl.col("node") >= 0)["duration_ns"].sum()
    assert times["device_self_ns"].sum() == outermost["device_total_ns"].sum()
    assert work.height == device_rows(real).height


def test_both_attributions_have_the_same_columns(real):
    """Our tables and the plugin's have equal schemas, so the same code works with both."""
    ours, plugins = attribution_of(None), attribution_of("torch_tb_profiler")

    assert ours.host_nodes(real).schema == plugins.host_nodes(real).schema
    assert ours.device_owner(real).schema == plugins.device_owner(real).schema
    assert ours.node_times(real).schema == plugins.node_times(real).schema


def test_nodes_come_after_the_nodes_that_contain_them(real):
    """Parents precede their children, subtrees are contiguous, and children lie within the times of their parents."""
    nodes = host_nodes(real)
    parent = nodes["parent"].to_numpy()
    inside = parent >= 0
    starts, ends = nodes["start_ns"].to_numpy(), nodes["end_ns"].to_numpy()

    assert (parent < np.arange(len(parent))).all()
    assert (starts[inside] >= starts[parent[inside]]).all()
    assert (ends[inside] <= ends[parent[inside]]).all()
    # If a row is deeper than the preceding row, the preceding row is its parent.
    deeper = np.flatnonzero(np.diff(nodes["depth"].to_numpy()) > 0) + 1
    assert (parent[deeper] == deeper - 1).all()
