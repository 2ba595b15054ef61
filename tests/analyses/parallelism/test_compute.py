"""Tests of parallelism: parallelism axes, exposed communication, pipeline bubbles and the load of experts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.distributed.compute import distributed
from holotrace.analyses.parallelism.compute import Parallelism, parallelism
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened

TRACES = Path(__file__).parents[2] / "reference" / "traces"


def _group(description: str) -> dict[str, str]:
    return {"Process Group Description": description}


def data_and_tensor_parallel() -> TraceBuilder:
    """Return a step of 1,000 µs on two ranks that all-reduce in group `mesh_tp` and then in group `mesh_dp`.

    On rank 0, a kernel runs until 200 µs, the first all-reduce from 150 to 300 µs and the second from 250 to 500 µs.
    Rank 1 joins the first all-reduce 100 µs later and the second 50 µs later.
    """
    builder = TraceBuilder()
    for rank, (tensor, data) in enumerate(((150, 250), (250, 300))):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 1_000)
        builder.kernel("gemm", start_us=0, duration_us=200, launch_us=1)
        builder.collective(
            group="1", args=_group("mesh_tp"), start_us=tensor, duration_us=300 - tensor, launch_us=2, stream=20
        )
        builder.collective(
            group="2", args=_group("mesh_dp"), start_us=data, duration_us=500 - data, launch_us=3, stream=21
        )
    return builder


def test_axes_add_up_to_the_exposed_time_of_the_rank() -> None:
    """From 200 to 500 µs, rank 0 communicates without computing: on axis tp until 300 µs, then on axis dp."""
    result = parallelism(data_and_tensor_parallel().build())

    assert result.per_axis.filter(rank=0).to_dicts() == [
        {
            "rank": 0,
            "axis": "tp",
            "call_count": 1,
            "exposed_ns": 100_000,
            "wait_ns": 50_000,
            "transfer_ns": 50_000,
            "unmatched_ns": 0,
        },
        {
            "rank": 0,
            "axis": "dp",
            "call_count": 1,
            "exposed_ns": 200_000,
            "wait_ns": 0,
            "transfer_ns": 200_000,
            "unmatched_ns": 0,
        },
    ]
    assert result.per_step.filter(rank=0)["step"].to_list() == [1, 1]


def test_groups_have_their_axis_and_its_reason() -> None:
    """The axes of both groups are taken from their descriptions, `mesh_tp` and `mesh_dp`."""
    groups = parallelism(data_and_tensor_parallel().build()).per_group

    assert groups.select("process_group", "group_size", "axis", "named_by", "candidates", "collectives").rows() == [
        ("mesh_tp [0, 1]", 2, "tp", "description", ["tp"], ["all_reduce"]),
        ("mesh_dp [0, 1]", 2, "dp", "description", ["dp"], ["all_reduce"]),
    ]


def test_the_fsdp_unit_that_asked_has_its_share() -> None:
    """An all-gather launched inside `FSDP::all_gather (layers.0)` is on axis fsdp, in the row of this annotation."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 100)
        builder.annotation("FSDP::all_gather (layers.0)", start_us=1, duration_us=20)
        builder.operator("c10d::_allgather_base_", start_us=2, duration_us=10)
        builder.collective("_allgather_base", start_us=30, duration_us=40, launch_us=5)

    result = parallelism(builder.build())

    assert result.per_module.select("axis", "module", "collective", "call_count", "exposed_ns").rows() == [
        ("fsdp", "FSDP::all_gather (layers.0)", "all_gather", 2, 80_000)
    ]


def host_call(builder: TraceBuilder, operator: str, *, family: str, start_us: int, size: int) -> None:
    """Add an operator that requests a gloo call; the call starts 10 µs later on thread 7 and takes 20 µs."""
    args = {"Input Dims": [[size]], "Input type": ["float"]}
    dims = [[[size]], []] if family == "all_reduce" else [[size], [size]]
    builder.operator(operator, start_us=start_us, duration_us=2, args={"Input Dims": dims})
    builder.annotation(f"gloo:{family}", start_us=start_us + 10, duration_us=20, thread=7, args=args)


def test_fsdp_asks_for_calls_that_the_host_performs() -> None:
    """An all-gather on a gloo thread is on axis fsdp if the operator that requested it is in an FSDP annotation."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 100)
        builder.annotation("FSDP::all_gather (layers.0)", start_us=1, duration_us=5)
        host_call(builder, "c10d::_allgather_base_", family="all_gather", start_us=2, size=8)

    result = parallelism(builder.build())

    assert result.per_module.select("axis", "module", "call_count").rows() == [
        ("fsdp", "FSDP::all_gather (layers.0)", 2)
    ]


def test_gradients_of_ddp_are_data_parallel_beside_other_calls_of_the_group() -> None:
    """A group in which DDP reduces gradients is also used to gather metrics; the reductions are still on axis dp."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 200)
        builder.annotation("DistributedDataParallel.forward", start_us=1, duration_us=20)
        accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
        builder.operator(accumulate, start_us=30, duration_us=10)
        host_call(builder, "c10d::allreduce_", family="all_reduce", start_us=32, size=64)
        host_call(builder, "c10d::_allgather_base_", family="all_gather", start_us=100, size=1)

    result = parallelism(builder.build())

    assert result.per_module.select("axis", "module", "collective").rows() == [
        ("dp", "DistributedDataParallel", "all_reduce"),
        ("unknown", None, "all_gather"),
    ]


def test_groups_that_fit_two_axes_are_said_and_not_guessed() -> None:
    """All-gathers in a group without a description may be on axis fsdp or tp, so the axis is unknown.

    A finding names both candidates.
    """
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 100)
        builder.collective("_allgather_base", args=_group(""), start_us=30, duration_us=40, launch_us=5)

    result = parallelism(builder.build())

    assert result.per_axis["axis"].unique().to_list() == ["unknown"]
    assert result.per_group["candidates"].to_list() == [["fsdp", "tp"]]
    assert "may be fsdp or tp" in result.findings[0]


def pipeline_of_two(microbatches: int = 3) -> TraceBuilder:
    """Return a step of 1,000 µs in which rank 0 sends microbatches and rank 1 waits 100 µs for each of them."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 1_000)
        for number in range(microbatches):
            start, args = 200 * number, {**_group("mesh_pp"), "Src Rank": 0, "Dst Rank": 1}
            kind, arrives = ("send", 100) if rank == 0 else ("recv", 0)
            builder.collective(
                kind,
                args=args,
                start_us=start + arrives,
                duration_us=120 - arrives,
                launch_us=start,
                sequence=number + 1,
            )
    return builder


def test_the_bubble_of_a_stage_is_its_waiting_for_neighbours() -> None:
    """Rank 1 waits 3 times 100 µs. With two stages and three microbatches, a bubble of 25 % of the step is expected."""
    stages = parallelism(pipeline_of_two().build()).per_stage

    chosen = ("rank", "stage", "stage_count", "microbatch_count", "transfer_ns", "bubble_ns")
    assert stages.select(chosen).rows() == [(0, 0, 2, 3, 60_000, 0), (1, 1, 2, 3, 60_000, 300_000)]
    assert stages["expected_fraction"].to_list() == [0.25, 0.25]


def test_tokens_of_experts_show_the_imbalance() -> None:
    """Of 8 tokens, rank 0 receives 6 (1.5 times the mean) and rank 1 receives 2 (0.5 times the mean)."""
    builder = TraceBuilder()
    for rank, received in enumerate(((3, 3), (1, 1))):
        splits = {"In split size": "[3, 1]", "Out split size": str(list(received)), **_group("mesh_ep")}
        builder.rank(rank).header(host_name="node-1").step(1, 0, 100)
        builder.collective("all_to_allv", args=splits, start_us=30, duration_us=40, launch_us=5)

    tokens = parallelism(builder.build()).per_expert_rank

    assert tokens.select("rank", "call_count", "sent_tokens", "received_tokens", "imbalance").rows() == [
        (0, 1, 4, 6, 1.5),
        (1, 1, 4, 2, 0.5),
    ]


@pytest.mark.parametrize("first", ["to the experts", "back"])
def test_the_way_back_does_not_hide_the_imbalance(first: str) -> None:
    """Rank 0's experts get 6 of 8 tokens, whether the first all-to-all dispatches tokens or returns them."""
    builder = TraceBuilder()
    for rank, ours in enumerate((6, 2)):
        there = {"In split size": "[2, 2]", "Out split size": str([ours // 2] * 2), **_group("mesh_ep")}
        back = {**there, "In split size": there["Out split size"], "Out split size": there["In split size"]}
        builder.rank(rank).header(host_name="node-1").step(1, 0, 200)
        for number, args in enumerate((there, back) if first == "to the experts" else (back, there)):
            start = 30 + 80 * number
            builder.collective(
                "all_to_allv", args=args, start_us=start, duration_us=40, launch_us=start - 25, sequence=number + 1
            )

    tokens = parallelism(builder.build()).per_expert_rank

    assert tokens.select("rank", "received_tokens", "imbalance").rows() == [(0, 10, 1.5), (1, 6, 0.5)]


def test_a_job_that_does_not_communicate_is_empty() -> None:
    """If no rank communicates, the tables of axes and groups are empty."""
    result = parallelism(TraceBuilder().kernel("gemm", start_us=0, duration_us=5).build())

    assert result.per_axis.is_empty()
    assert result.per_group.is_empty()


def test_time_outside_steps_is_kept() -> None:
    """A collective before the first step has a separate row with a null step."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 100, 100)
        builder.collective(start_us=10, duration_us=40, launch_us=5)

    assert parallelism(builder.build()).per_step.select("rank", "step", "exposed_ns").rows() == [
        (0, None, 40_000),
        (1, None, 40_000),
    ]


@pytest.fixture(scope="module")
def pipeline() -> Parallelism:
    """Return the result for a recorded pipeline with two stages and two replicas; rank 2 is slow."""
    return parallelism(opened(TRACES / "pipeline_gloo_4rank"))


def test_the_axes_of_a_recorded_pipeline(pipeline: Parallelism) -> None:
    """The groups [0, 2] and [1, 3] are pipelines, and the groups [0, 1] and [2, 3] are data-parallel."""
    assert set(pipeline.per_group.select("process_group", "axis").rows()) == {
        ("mesh_pp [0, 2]", "pp"),
        ("mesh_pp [1, 3]", "pp"),
        ("mesh_dp [0, 1]", "dp"),
        ("mesh_dp [2, 3]", "dp"),
    }


def test_rank_0_of_the_recorded_pipeline_waits_for_the_slow_stage_behind_it(pipeline: Parallelism) -> None:
    """Rank 2 sleeps, so rank 0 waits for most of its step, while rank 2 hardly waits."""
    stages = pipeline.per_stage
    bubble = dict(stages.group_by("rank").agg(pl.col("bubble_fraction").mean()).iter_rows())

    assert bubble[0] > 0.5
    assert bubble[2] < 0.1
    assert stages["microbatch_count"].unique().to_list() == [4]
    assert stages["expected_fraction"].unique().to_list() == [0.2]


@pytest.mark.parametrize("name", ["dlrm_8rank", "ddp_gloo_4rank", "pipeline_gloo_4rank", "two_rank_128"])
def test_the_axes_of_recorded_jobs_add_up_to_their_exposed_time(name: str) -> None:
    """In every step of every rank, the axes add up exactly to the exposed time that `distributed` reports."""
    trace = opened(TRACES / name)
    by_axis = parallelism(trace).per_step.drop_nulls("step").group_by("rank", "step").agg(pl.col("exposed_ns").sum())
    expected = distributed(trace).per_step.drop_nulls(["step", "step_ns"]).filter(pl.col("exposed_ns") > 0)

    both = expected.join(by_axis, on=["rank", "step"], how="left")
    assert both["exposed_ns"].to_list() == both["exposed_ns_right"].to_list()


@pytest.mark.slow
def test_the_axes_of_a_recorded_pipeline_without_descriptions(tmp_path: Path) -> None:
    """Without descriptions, collectives reveal the axes: sends along a pipeline mean pp, reduced gradients mean dp."""
    for path in (TRACES / "pipeline_gloo_4rank").iterdir():
        trace = json.loads(gzip.decompress(path.read_bytes()))
        for group in trace["distributedInfo"]["pg_config"]:
            group["pg_desc"] = ""
        (tmp_path / path.name).write_bytes(gzip.compress(json.dumps(trace).encode(), 1))

    groups = parallelism(holotrace.open_trace(tmp_path, cache=False)).per_group

    assert set(groups.select("process_group", "axis", "named_by").rows()) == {
        ("[0, 2]", "pp", "collectives"),
        ("[1, 3]", "pp", "collectives"),
        ("[0, 1]", "dp", "collectives"),
        ("[2, 3]", "dp", "collectives"),
    }


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables of a synthetic job on two hosts equal their golden copies."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, ranks_per_host=2)
    result = parallelism(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_axis, "parallelism/synthetic_job.per_axis")
    golden.check(result.per_step, "parallelism/synthetic_job.per_step")
    golden.check(result.per_module, "parallelism/synthetic_job.per_module")


def test_a_recommender_uses_one_group_for_two_axes() -> None:
    """In one group of 8 ranks, DLRM exchanges embeddings with uneven all-to-alls (ep) and reduces gradients (dp)."""
    result = parallelism(opened(TRACES / "dlrm_8rank"))

    rows = result.per_group.select("process_group", "axis", "candidates", "collectives").rows()
    assert rows == [("[0-7]", "ep", ["ep"], ["all_to_all"]), ("[0-7]", "dp", ["dp"], ["all_reduce"])]
    assert (
        result.findings[0]
        == "process group [0-7] serves several axes of parallelism: all_to_all for ep; all_reduce for dp"
    )
    assert set(result.per_axis["axis"]) == {"ep", "dp"}


def test_an_undecided_purpose_of_a_group_is_ambiguous() -> None:
    """The group's gradient all-reduces are on axis dp; its all-to-alls with equal splits may be on axis ep or cp."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="a").step(1, 0, 1_000)
        builder.collective("all_to_all", start_us=100, duration_us=50, launch_us=90, args={"In split size": "[]"})
        builder.operator("AddmmBackward0", start_us=700, duration_us=100)
        builder.collective("allreduce", start_us=800, duration_us=50, launch_us=790)

    result = parallelism(builder.build())

    assert result.per_group.select("axis", "candidates").rows() == [("dp", ["dp"]), ("unknown", ["ep", "cp"])]
    several, ambiguous = result.findings[:2]
    assert several.endswith("serves several axes of parallelism: all_reduce for dp; all_to_all for ep or cp")
    assert "may be ep or cp" in ambiguous


def _grouped(rank: int, builder: TraceBuilder, left: list[int], name: str = "aten::_grouped_mm") -> None:
    shapes = {
        "Input Dims": [left, [4, 16, 32], [4], [], []],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "int", "", ""],
    }
    builder.rank(rank).operator(name, start_us=10, duration_us=5, args=shapes)


def test_rows_of_grouped_products_show_the_imbalance() -> None:
    """Ranks 0 and 1 compute 100 and 300 rows, which is 0.5 and 1.5 times the mean.

    The table leaves out the product that computes a gradient of the weights.
    """
    builder = TraceBuilder()
    _grouped(0, builder, [100, 16])
    _grouped(1, builder, [300, 16], "aten::_scaled_grouped_mm")
    weights = {"Input Dims": [[16, 300], [300, 32], [4]], "Input type": ["c10::BFloat16", "c10::BFloat16", "int"]}
    builder.operator("aten::_grouped_mm", start_us=20, duration_us=5, args=weights)

    result = parallelism(builder.build())

    columns = ["process_group", "rank", "product_count", "computed_tokens", "expert_count", "computed_imbalance"]
    assert result.per_expert_rank.select(columns).rows() == [(None, 0, 1, 100, 4, 0.5), (None, 1, 1, 300, 4, 1.5)]
    assert "experts get uneven numbers of tokens: rank 1 computes 1.50 times the mean number" in result.findings


def test_products_belong_to_the_group_of_the_experts() -> None:
    """Ranks [0, 1] and [2, 3] are two expert groups; each rank is compared with the mean of its group."""
    builder = TraceBuilder()
    for rank, rows in enumerate((100, 300, 50, 50)):
        group = (0, 1) if rank < 2 else (2, 3)
        _grouped(rank, builder, [rows, 16])
        builder.collective("all_to_allv", group_ranks=group, start_us=0, duration_us=5, args=_group("mesh_ep"))

    experts = parallelism(builder.build()).per_expert_rank

    rows = experts.select("process_group", "rank", "call_count", "received_tokens", "computed_imbalance").rows()
    assert rows == [
        ("mesh_ep [0, 1]", 0, 0, None, 0.5),
        ("mesh_ep [0, 1]", 1, 0, None, 1.5),
        ("mesh_ep [2, 3]", 2, 0, None, 1.0),
        ("mesh_ep [2, 3]", 3, 0, None, 1.0),
    ]


def test_batches_of_equal_size_have_rows_for_each_expert() -> None:
    """A batched product with 4 experts of 25 rows each counts as 100 rows."""
    builder = TraceBuilder()
    _grouped(0, builder, [4, 25, 16])

    experts = parallelism(builder.build()).per_expert_rank

    assert experts.select("computed_tokens", "expert_count").rows() == [(100, 4)]


@pytest.mark.parametrize("dims", ["[]", "[[1]]", '["x", [4, 16, 32]]', "[[100, 16], [4, -1, 32]]", "[[100, 16], null]"])
def test_products_of_unknown_shape_do_not_count(dims) -> None:
    """Products with missing, symbolic or invalid shapes are ignored."""
    builder = TraceBuilder()
    builder.operator("aten::_grouped_mm", start_us=0, duration_us=5, args={"Input Dims": json.loads(dims)})

    assert parallelism(builder.build()).per_expert_rank.is_empty()
