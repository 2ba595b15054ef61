"""Tests of the kernels analysis: kernel times by name, and by operator and launch shape."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.analyses.kernels.compute import joined_over_ranks, kernels
from holotrace.analyses.kernels.tables import kernels_by_name
from holotrace.errors import MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from tb_goldens import EACH_CASE, case


def launched(blocks: int) -> dict[str, object]:
    """Return the args of a launch of `blocks` blocks on ten SMs."""
    return {
        "grid": [blocks, 1, 1],
        "block": [32, 2, 1],
        "registers per thread": 40,
        "shared memory": 512,
        "blocks per SM": blocks / 10,
        "est. achieved occupancy %": 5 * blocks,
    }


def job() -> TraceBuilder:
    """Return three launches of a gemm, a relu without a known launch, and a copy.

    aten::mm launches the gemm twice, and aten::linear launches it once.
    """
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=20)
    builder.operator("aten::linear", start_us=20, duration_us=20)
    for start, duration, launch, blocks in ((10, 10, 1, 2), (30, 30, 2, 4), (60, 5, 21, 4)):
        builder.kernel(
            "ampere_fp16_s16816gemm", start_us=start, duration_us=duration, launch_us=launch, args=launched(blocks)
        )
    return builder.kernel("relu", start_us=70, duration_us=7).copy(start_us=80, duration_us=9)


def test_kernels_by_name() -> None:
    """Weighted by time, gemm has (0.2·10 + 0.4·30 + 0.4·5) / 45 blocks per SM; the launch shape of relu is unknown."""
    result = kernels(job().build())

    assert result.per_kernel.to_dicts() == [
        {
            "rank": 0,
            "name": "ampere_fp16_s16816gemm",
            "uses_tensor_cores": True,
            "call_count": 3,
            "total_ns": 45_000,
            "mean_ns": 15_000.0,
            "min_ns": 5_000,
            "max_ns": 30_000,
            "mean_blocks_per_sm": pytest.approx(16 / 45),
            "blocks_per_sm_known_fraction": 1.0,
            "mean_occupancy_fraction": pytest.approx((0.1 * 10 + 0.2 * 30 + 0.2 * 5) / 45),
            "occupancy_known_fraction": 1.0,
            "source_line": None,
        },
        {
            "rank": 0,
            "name": "relu",
            "uses_tensor_cores": False,
            "call_count": 1,
            "total_ns": 7_000,
            "mean_ns": 7_000.0,
            "min_ns": 7_000,
            "max_ns": 7_000,
            "mean_blocks_per_sm": None,
            "blocks_per_sm_known_fraction": 0.0,
            "mean_occupancy_fraction": None,
            "occupancy_known_fraction": 0.0,
            "source_line": None,
        },
    ]
    assert result.findings == ("rank 0: 1 of 4 kernels have no known operator",)


def test_kernels_by_operator_and_launch() -> None:
    """Calls of a kernel from different operators or with different grids have separate rows."""
    per_launch_shape = kernels(job().build()).per_launch_shape

    columns = ("name", "operator", "grid", "block", "registers_per_thread", "shared_memory_bytes")
    assert per_launch_shape.select(*columns, "is_operator_eligible", "call_count", "total_ns").rows() == [
        ("ampere_fp16_s16816gemm", "aten::mm", "[4, 1, 1]", "[32, 2, 1]", 40, 512, True, 1, 30_000),
        ("ampere_fp16_s16816gemm", "aten::mm", "[2, 1, 1]", "[32, 2, 1]", 40, 512, True, 1, 10_000),
        ("relu", None, None, None, None, None, False, 1, 7_000),
        ("ampere_fp16_s16816gemm", "aten::linear", "[4, 1, 1]", "[32, 2, 1]", 40, 512, True, 1, 5_000),
    ]


def test_kernels_name_the_line_that_launched_most_of_their_time() -> None:
    """Two functions launch the same kernel, which takes 10 and 15 µs; the row names the function of the longer call."""
    builder = TraceBuilder().python("a.py(1): f", start_us=0, duration_us=50)
    builder.kernel("gemm", start_us=100, duration_us=10, launch_us=10)
    builder.python("a.py(9): g", start_us=60, duration_us=30)
    builder.kernel("gemm", start_us=120, duration_us=15, launch_us=70)
    result = kernels(builder.build())

    assert result.per_kernel["source_line"].to_list() == ["a.py(9): g"]
    assert kernels_by_name(result)["source_line"].to_list() == ["a.py(9): g"]
    assert "source_line" not in kernels_by_name(kernels(job().build())).columns


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = kernels(job().build())
    measures = {
        "uses_tensor_cores": pl.Boolean,
        "call_count": pl.Int64,
        "total_ns": pl.Int64,
        "mean_ns": pl.Float64,
        "min_ns": pl.Int64,
        "max_ns": pl.Int64,
        "mean_blocks_per_sm": pl.Float64,
        "blocks_per_sm_known_fraction": pl.Float64,
        "mean_occupancy_fraction": pl.Float64,
        "occupancy_known_fraction": pl.Float64,
        "source_line": pl.String,
    }
    assert result.per_kernel.schema == {"rank": pl.Int32, "name": pl.String, **measures}
    texts = dict.fromkeys(("name", "operator", "grid", "block"), pl.String)
    numbers = dict.fromkeys(("registers_per_thread", "shared_memory_bytes"), pl.Int64)
    launch = {"rank": pl.Int32, **texts, **numbers, "is_operator_eligible": pl.Boolean}
    assert result.per_launch_shape.schema == {**launch, **measures}


def test_infinite_and_negative_values_are_unknown() -> None:
    """The means ignore infinite blocks per SM and negative occupancies, which some profilers write."""
    args = {"blocks per SM": float("inf"), "est. achieved occupancy %": -1}
    builder = TraceBuilder().kernel("k", start_us=0, duration_us=10, args=args)
    builder.kernel("k", start_us=20, duration_us=30, args={"blocks per SM": 2, "est. achieved occupancy %": 50})

    row = kernels(builder.build()).per_kernel.row(0, named=True)
    assert (row["mean_blocks_per_sm"], row["mean_occupancy_fraction"]) == (2.0, 0.5)


def test_means_are_of_the_known_calls_and_say_their_share() -> None:
    """The means include only the kernels whose launch shapes are known.

    These kernels take 10 of 40 µs on rank 0 and all 10 µs on rank 1.
    """
    builder = TraceBuilder().kernel("k", start_us=0, duration_us=10, args={"blocks per SM": 2})
    builder.kernel("k", start_us=20, duration_us=30)
    builder.rank(1).kernel("k", start_us=0, duration_us=10, args={"blocks per SM": 4})

    result = kernels(builder.build())

    columns = (
        "mean_blocks_per_sm",
        "blocks_per_sm_known_fraction",
        "mean_occupancy_fraction",
        "occupancy_known_fraction",
    )
    assert result.per_kernel.select(columns).rows() == [(2.0, 0.25, None, 0.0), (4.0, 1.0, None, 0.0)]
    assert joined_over_ranks(result).select(columns).rows() == [(3.0, 0.4, None, 0.0)]


def test_ranks_stay_apart_and_a_rank_without_work_is_a_finding() -> None:
    """On each rank, the largest sum comes first and equal sums are sorted by name; rank 2 has no kernels."""
    builder = TraceBuilder()
    for rank, name, duration in ((1, "b", 5), (1, "a", 5), (0, "b", 1), (0, "a", 2)):
        builder.rank(rank).kernel(name, start_us=0, duration_us=duration)
    builder.rank(2).operator("a", start_us=0, duration_us=1)

    result = kernels(builder.build())

    assert result.per_kernel.select("rank", "name").rows() == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert result.findings[0].startswith("rank 2 has no GPU kernels")


def test_copies_are_not_kernels() -> None:
    """If the trace has only a copy, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match=r"^kernels: rank 0 has no GPU kernels"):
        kernels(TraceBuilder().copy(start_us=0, duration_us=1).build())


@pytest.mark.parametrize("name", EACH_CASE)
def test_both_tables_add_up(name: str, goldens, real_traces) -> None:
    """For every trace, both tables have the same number of calls and the same total time."""
    try:
        result = kernels(case(name, goldens, real_traces).trace)
    except MissingDataError:
        return
    sums = [
        table.select(pl.col("call_count", "total_ns").sum()).row(0)
        for table in (result.per_kernel, result.per_launch_shape)
    ]
    assert sums[0] == sums[1]


@pytest.mark.parametrize(
    "name",
    [
        "hta_df_index_resolver/worker0@default",
        "hta_trace_diff_control/worker0@default",
        "param_dlrm_8rank/worker0_step_12@1",
    ],
)
def test_kernels_of_old_traces_have_an_operator(name: str, goldens, real_traces) -> None:
    """At least 99 % of the kernels get an operator; the plugin finds none, because old traces store ids differently."""
    per_launch_shape = kernels(case(f"tb/{name}", goldens, real_traces).trace).per_launch_shape

    known = per_launch_shape.filter(pl.col("operator").is_not_null())["call_count"].sum()
    assert known >= 0.99 * per_launch_shape["call_count"].sum()


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """Two worker processes give the same table as a single process."""
    write_job(tmp_path, ranks=2, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert kernels(trace, executor=executor).per_launch_shape.equals(kernels(trace).per_launch_shape)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=1, layers=2, seed=1)
    result = kernels(open_trace(tmp_path, cache=False))
    golden.check(result.per_kernel, "kernels/synthetic_job.per_kernel")
    golden.check(result.per_launch_shape, "kernels/synthetic_job.per_launch_shape")
