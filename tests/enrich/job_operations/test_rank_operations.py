"""Tests of the operations of a rank and of a job: where computation ends, and the kind of each operation."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.job_operations.job_operations import job_operations
from holotrace.enrich.job_operations.rank_operations import rank_operations
from holotrace.testing.builder import TraceBuilder


def _operations(builder: TraceBuilder) -> pl.DataFrame:
    """Return the operations of all ranks, with starts and ends in µs after the first start."""
    trace = builder.build()
    table = job_operations({rank: rank_operations(rank_trace) for rank, rank_trace in trace.ranks.items()}).table
    first = table["start_ns"].min()
    times = (((pl.col(name) - first) / 1_000).alias(name) for name in ("start_ns", "end_ns"))
    return table.with_columns((pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")).with_columns(times)


def _rows(operations: pl.DataFrame, rank: int) -> list[tuple[str, float, float]]:
    of_rank = operations.filter((pl.col("rank") == rank) & (pl.col("kind") != "step-start"))
    return of_rank.select("kind", "start_ns", "end_ns").rows()


def test_a_wait_is_no_computation_but_a_gap_is() -> None:
    """The device computes from 10 to 110 µs and from 350 to 400 µs.

    From 110 to 300 µs, it waits for the all-reduce; from 300 to 350 µs, it is idle.
    """
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="a").step(1, 0, 400)
        builder.kernel("gemm", start_us=10, duration_us=100, launch_us=5)
        builder.collective(start_us=110, duration_us=190, launch_us=6, args={"Process Group Description": "mesh_tp"})
        builder.kernel("gemm", start_us=350, duration_us=50, launch_us=7)

    assert _rows(_operations(builder), 0) == [
        ("forward-compute", 0, 110),
        ("tp-all-reduce", 110, 300),
        ("forward-compute", 300, 400),
    ]


def test_hidden_communication_divides_computation_where_it_begins() -> None:
    """A collective (50 to 90 µs) divides a kernel (0 to 200 µs) into two rows with the same sequence number."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="a").step(1, 0, 200)
        builder.kernel("gemm", start_us=0, duration_us=200, launch_us=0)
        builder.collective(start_us=50, duration_us=40, launch_us=1, args={"Process Group Description": "mesh_dp"})

    operations = _operations(builder)

    assert sorted(_rows(operations, 0)) == [
        ("dp-all-reduce", 50, 90),
        ("forward-compute", 0, 50),
        ("forward-compute", 50, 200),
    ]
    assert operations.filter(pl.col("kind") == "forward-compute")["sequence"].unique().to_list() == [0]


def test_kernels_belong_to_the_phase_that_launched_them() -> None:
    """A phase includes its kernel and the idle time before that kernel."""
    builder = TraceBuilder().step(1, 0, 1_000)
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start_us=0, duration_us=100)
    builder.operator("aten::mm", start_us=110, duration_us=20)
    builder.kernel("forward", start_us=300, duration_us=100, launch_us=120)
    builder.operator("autograd::engine::evaluate_function: MmBackward0", start_us=140, duration_us=20, thread=2)
    builder.kernel("backward", start_us=400, duration_us=200, launch_us=150, thread=2)
    builder.annotation("Optimizer.step#SGD.step", start_us=170, duration_us=30)
    builder.kernel("optimizer", start_us=600, duration_us=50, launch_us=180)

    assert _rows(_operations(builder), 0) == [
        ("data-loading", 0, 100),
        ("forward-compute", 100, 400),
        ("backward-compute", 400, 600),
        ("optimizer", 600, 1_000),
    ]


def _gloo(builder: TraceBuilder, name: str, start_us: int, end_us: int, peer: int) -> None:
    """Add the operator that requests a message, and an annotation from the request to the end of the host's wait."""
    args = {"Concrete Inputs": ["", "", str(peer), "0"], "Input Dims": [[[8]], [], [], []]}
    family = "recv_" if name == "recv" else name
    builder.operator(f"c10d::{family}", start_us=start_us, duration_us=2, args=args)
    told = {"Collective name": name, "Process Group Name": "0", "Process Group Description": "mesh_pp"}
    told |= {"Process Group Ranks": "[0, 1]", "Group size": 2, "Input Dims": [[8]]}
    builder.annotation(f"gloo:{name}", start_us=start_us + 1, duration_us=end_us - start_us - 1, args=told)


def pipeline_on_the_host(late_us: int = 0) -> TraceBuilder:
    """Return two stages on the CPU that pass one microbatch forward and back; annotations name the passes.

    Stage 0 sends at 100 µs and notices the end of the send at 900 µs. Stage 1 waits for the message in its first pass,
    computes until 300 µs + `late_us`, and sends the gradient back. Stage 0 waits for the gradient in its backward
    pass.
    """
    builder = TraceBuilder()
    back = 500 + late_us
    builder.rank(0).header(host_name="a", distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    builder.step(1, 0, 1_000 + late_us)
    builder.annotation("PP:0F0", start_us=0, duration_us=100).operator("aten::mm", start_us=0, duration_us=100)
    _gloo(builder, "send", 100, 900 + late_us, 1)
    builder.annotation("PP:0B0", start_us=110, duration_us=back + 200 - 110)
    _gloo(builder, "recv", 110, back + 10, 1)
    builder.operator("aten::mm", start_us=back + 20, duration_us=180)
    builder.rank(1).header(host_name="a", distributedInfo={"backend": "gloo", "rank": 1, "world_size": 2})
    builder.step(1, 0, 1_000 + late_us)
    builder.annotation("PP:1F0", start_us=0, duration_us=300 + late_us)
    _gloo(builder, "recv", 0, 110, 0)
    builder.operator("aten::mm", start_us=120 + late_us, duration_us=180)
    builder.annotation("PP:1B0", start_us=300 + late_us, duration_us=200)
    builder.operator("aten::mm", start_us=300 + late_us, duration_us=200)
    _gloo(builder, "send", back, back + 20, 0)
    return builder


def test_a_message_ends_when_the_first_rank_notices_it() -> None:
    """Stage 1 receives the message at 110 µs, so the send ends then, although stage 0 notices the end only later."""
    operations = _operations(pipeline_on_the_host())

    sends = operations.filter(pl.col("kind") == "forward-send").select("rank", "start_ns", "end_ns", "instance")
    receives = operations.filter(pl.col("kind") == "forward-recv").select("rank", "start_ns", "end_ns", "instance")
    assert sends.select("rank", "start_ns", "end_ns").rows() == [(0, 100, 110)]
    assert receives.select("rank", "start_ns", "end_ns").rows() == [(1, 0, 110)]
    assert sends["instance"].to_list() == receives["instance"].to_list()


def test_an_annotated_pass_may_contain_a_wait() -> None:
    """The annotation of stage 0's backward pass begins at 110 µs, but the pass first waits until 510 µs."""
    operations = _operations(pipeline_on_the_host())

    passes = operations.filter(pl.col("kind").str.ends_with("-compute") & (pl.col("rank") == 0))
    assert passes.select("kind", "start_ns", "end_ns").rows() == [
        ("forward-compute", 0, 100),
        ("forward-compute", 100, 110),
        ("backward-compute", 510, 700),
        ("backward-compute", 700, 1_000),
    ]
    assert passes["microbatch"].unique().to_list() == [0]
    assert operations.select("rank", "dp_rank", "stage").unique().sort("rank").rows() == [(0, 0, 0), (1, 0, 1)]


@pytest.mark.parametrize("late_us", [0, 200])
def test_a_sleep_belongs_to_the_rank_that_sleeps(late_us: int) -> None:
    """Stage 1 sleeps before it computes; the sleep counts as computation of stage 1 and as waiting of stage 0."""
    operations = _operations(pipeline_on_the_host(late_us))
    sums = operations.group_by("rank", "kind").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("us"))
    lengths = {(rank, kind): us for rank, kind, us in sums.iter_rows()}

    assert lengths[1, "forward-compute"] == 190 + late_us
    assert lengths[0, "backward-recv"] == 400 + late_us
