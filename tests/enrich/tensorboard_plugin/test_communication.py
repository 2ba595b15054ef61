"""Tests of the communication nodes of the TensorBoard plugin."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holotrace.enrich.tensorboard_plugin.communication import (
    communication_kernels,
    communication_nodes,
    node_ranges,
    step_of_nodes,
)
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder

REAL = {
    "hta_df_index_resolver/worker0@default": "single_v100/*",
    "hta_ns_resolution/rank-0.Apr_03_18_51_38@1": "ns_resolution/*",
    "hta_trace_diff_control/worker0@default": "diff/control/*",
    "hta_cpu_only/rank-34.Jul_15_10_52_41@1": "cpu_only/*",
    **{f"param_dlrm_8rank/worker{rank}_step_12@1": f"dlrm_8rank/worker{rank}_*" for rank in range(8)},
}


def one_rank(builder: TraceBuilder) -> RankTrace:
    """Build the trace and return rank 0."""
    return builder.build().ranks[0]


def call(external_id: int | None, name: str = "nccl:all_reduce", **placement: int) -> TraceBuilder:
    """Return a trace that begins with one collective."""
    return TraceBuilder().operator(name, args={"External id": external_id}, **placement)


@pytest.mark.parametrize("run", REAL)
def test_real_jobs_have_the_nodes_of_the_plugin(run, goldens, real_traces) -> None:
    """Our nodes have the same names and ids as the plugin's nodes, and the same intervals to the microsecond."""
    (file,) = real_traces.glob(REAL[run])
    (internals,) = (goldens / "tb" / run).glob("internals.json*")
    content = internals.read_bytes()
    expect_nodes(file, json.loads(gzip.decompress(content) if internals.suffix == ".gz" else content))


@pytest.mark.slow
def test_the_inputs_of_the_plugins_tests_have_its_nodes(goldens) -> None:
    """We find the plugin's nodes in the inputs of its unit tests and in all edge cases that the plugin can read."""
    folders = [
        *((file.parent / "input.json", file) for file in goldens.glob("tb/unit/*/*/internals.json")),
        *((next(file.parents[1].glob("input*")), file) for file in goldens.glob("tb_edge/*/head/internals.json")),
    ]
    assert len(folders) > 70
    for file, internals in folders:
        expect_nodes(file, json.loads(internals.read_text()))


def expect_nodes(file: Path, internals: dict[str, Any]) -> None:
    """Assert that the nodes and their intervals equal the plugin's."""
    (rank_trace,) = open_trace([file], cache=False).ranks.values()
    nodes, ranges = communication_nodes(rank_trace), node_ranges(rank_trace)
    expected = internals.get("comm_nodes") or []
    assert nodes["name"].to_list() == [node["name"] for node in expected]
    assert nodes["external_id"].to_list() == [node["external_id"] for node in expected]
    for number, node in enumerate(expected):
        since_base = (pl.col("start_ns", "end_ns") - rank_trace.header.base_time_ns) / 1_000
        intervals = ranges.filter(pl.col("node") == number).select(since_base).rows()
        assert intervals == [pytest.approx(pair, abs=0.3) for pair in node["ranges"]]


def test_a_kernel_belongs_to_the_node_with_its_external_id() -> None:
    """A node has its host range and the ranges of all kernels, of any name, that have the node's external id."""
    builder = call(3, start_us=10, duration_us=5)
    builder.kernel("gemm", start_us=12, duration_us=9, args={"External id": 3})
    builder.kernel("ncclDevKernel_AllReduce", start_us=50, duration_us=9, args={"External id": 4})
    rank_trace = one_rank(builder)
    assert communication_kernels(rank_trace)["start_ns"].to_list() == [12_000]
    assert node_ranges(rank_trace).rows() == [(0, 10_000, 15_000, 0), (0, 12_000, 21_000, 1)]


def test_kernels_count_only_with_nccl() -> None:
    """A gloo node has only its host range, even if a kernel has the same external id."""
    builder = call(3, "gloo:broadcast", start_us=10, duration_us=5)
    builder.kernel("gemm", start_us=12, duration_us=9, args={"External id": 3})
    assert len(node_ranges(one_rank(builder))) == 1


def test_two_libraries_leave_no_node() -> None:
    """The plugin cannot distinguish nccl from gloo ranges, so the table is empty for a file with both."""
    builder = call(3, start_us=10, duration_us=5).operator("gloo:reduce", start_us=20, duration_us=5)
    assert communication_nodes(one_rank(builder)).is_empty()


def test_of_events_with_one_id_the_last_counts() -> None:
    """Three events with id 3 form one node with the data of the last one; two events without an id form another."""
    builder = call(3, start_us=0, duration_us=5)
    for start in (10, 20):
        builder.operator("nccl:reduce", start_us=start, duration_us=5, args={"External id": 3})
    for start in (30, 40):
        builder.operator("nccl:reduce", start_us=start, duration_us=5)
    assert communication_nodes(one_rank(builder)).select("name", "start_ns").rows() == [
        ("nccl:reduce", 20_000),
        ("nccl:reduce", 40_000),
    ]


def test_six_types_have_a_size() -> None:
    """Doubles, lists of tensors and unrecorded inputs have size 0; a scalar has one element."""
    builder = TraceBuilder()
    inputs = (
        ([[4, 5], []], ["c10::Half", "long int"]),
        ([[4, 5]], ["double"]),
        ([[[4], [5]]], ["float"]),
        (None, None),
    )
    for number, (dims, types) in enumerate(inputs):
        args = {"External id": number + 1, "Input Dims": dims, "Input type": types}
        builder.operator("nccl:all_gather", start_us=10 * number, duration_us=5, args=args)
    assert communication_nodes(one_rank(builder))["byte_count"].to_list() == [48, 0, 0, 0]


def test_a_node_belongs_to_the_step_that_contains_it() -> None:
    """A node that is not completely within one step belongs to no step."""
    steps = pl.DataFrame({"window": [7, 8], "start_ns": [10, 20], "end_ns": [20, 30]})
    pairs = [(5, 12), (10, 20), (19, 21), (20, 25), (30, 31)]
    nodes = pl.DataFrame(pairs, {"start_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")
    assert step_of_nodes(nodes, steps).to_list() == [None, 7, None, 8, None]
    assert step_of_nodes(nodes, steps.clear()).to_list() == [None] * 5
