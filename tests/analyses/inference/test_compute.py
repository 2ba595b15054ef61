"""Tests of inference: step times and their parts, what bounds a step, the steady state, and several ranks."""

from __future__ import annotations

import csv
import gzip
import json
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holotrace
from holotrace.analyses.inference.compute import Inference, inference
from holotrace.analyses.inference.parts import PARTS, bounds
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"
H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
PRODUCT = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
VECTORS = {"Input Dims": [[1 << 28], [1 << 28], []], "Input type": ["float", "float", "Scalar"]}


def first_step(builder: TraceBuilder, **options: Any) -> dict[str, Any]:
    """Return the first row of `per_step`."""
    return inference(builder.build(), **options).per_step.row(0, named=True)


def parts(row: dict[str, Any]) -> dict[str, int]:
    """Return the nonzero parts of a step, in µs."""
    return {part: row[part] // 1_000 for part in PARTS if row[part]}


def product_and_sum(sum_us: int = 2_000) -> TraceBuilder:
    """Return a step of 5,000 µs: a product from 100 to 2,100 µs, a sum that starts at 2,150 µs, and a copy of 50 µs."""
    builder = TraceBuilder().header(**H100).annotation("step[DECODE bs=4]", start_us=0, duration_us=5_000)
    builder.operator("aten::mm", start_us=10, duration_us=30, args=PRODUCT)
    builder.kernel("nvjet_tst_128x256_64x4", start_us=100, duration_us=2_000, launch_us=20, launch_duration_us=5)
    builder.operator("aten::add", start_us=50, duration_us=30, args=VECTORS)
    builder.kernel("vectorized_elementwise_kernel", start_us=2_150, duration_us=sum_us, launch_us=60)
    return builder.copy(start_us=2_150 + sum_us, duration_us=50, launch_us=90)


def test_the_parts_of_a_step_add_up() -> None:
    """The device is busy for 4,050 of 5,000 µs; it waits 130 µs for launched work to start and 820 µs for the host."""
    row = first_step(product_and_sum())
    assert parts(row) == {
        "compute_bound_ns": 2_000,
        "memory_bound_ns": 2_000,
        "copying_ns": 50,
        "launch_idle_ns": 130,
        "host_idle_ns": 820,
    }
    assert row["step_ns"] == sum(row[part] for part in PARTS) == 5_000_000
    times = ("host_ns", "launch_call_ns", "busy_ns", "kernel_ns", "kernel_count", "gap_before_ns")
    assert [row[name] for name in times] == [5_000_000, 7_000, 4_050_000, 4_050_000, 3, None]


def test_kernels_at_once_count_for_the_first_part() -> None:
    """Time is compute-bound while the product runs, and memory-bound while the sum runs without the product.

    While only the all-reduce runs, the time is exposed communication.
    """
    builder = TraceBuilder().header(**H100).annotation("decode bs=4", start_us=0, duration_us=5_000)
    builder.operator("aten::mm", start_us=0, duration_us=5, args=PRODUCT)
    builder.kernel("nvjet_tst", start_us=0, duration_us=2_000, launch_us=0)
    builder.operator("aten::add", start_us=10, duration_us=5, args=VECTORS)
    builder.kernel("elementwise", stream=8, start_us=1_000, duration_us=2_000, launch_us=11)
    builder.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", stream=9, start_us=500, duration_us=4_500, launch_us=20)
    assert parts(first_step(builder)) == {
        "compute_bound_ns": 2_000,
        "memory_bound_ns": 1_000,
        "exposed_ns": 2_000,
    }


@st.composite
def recordings(draw: st.DrawFn) -> TraceBuilder:
    """Draw steps of any kind, which may overlap, and kernels launched at any time or without a recorded launch."""
    builder = TraceBuilder().header(**H100)
    names = st.sampled_from(["step[DECODE bs=4]", "step[EXTEND bs=2 toks=7]", "decode", "step[IDLE bs=0]"])
    for _ in range(draw(st.integers(1, 5))):
        start, thread = draw(st.integers(0, 60)), draw(st.integers(1, 2))
        builder.annotation(draw(names), start_us=start, duration_us=draw(st.integers(0, 30)), thread=thread)
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, 90))
        launch = draw(st.none() | st.integers(0, 90))
        name = draw(st.sampled_from(["gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "flash_fwd_kernel"]))
        stream = draw(st.integers(7, 8))
        builder.kernel(name, start_us=start, duration_us=draw(st.integers(0, 30)), stream=stream, launch_us=launch)
    return builder


@pytest.mark.slow
@given(recordings())
def test_parts_always_add_up(builder: TraceBuilder) -> None:
    """For random recordings, the parts add up to the step, no time is negative, and steps do not overlap."""
    steps = inference(builder.build()).per_step
    assert (steps.select(pl.sum_horizontal(*PARTS)).to_series() == steps["step_ns"]).all()
    times = steps.select(pl.col("^.*_ns$").exclude("start_ns", "end_ns"))
    assert all((time.drop_nulls() >= 0).all() for time in times)
    assert (steps["start_ns"].shift(-1).drop_nulls() >= steps["end_ns"].head(-1)).all()
    assert (steps["busy_ns"] <= steps["kernel_ns"]).all()


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        ({"host_idle_ns": 60, "memory_bound_ns": 40}, "host"),
        ({"host_idle_ns": 60, "unknown_bound_ns": 40}, "host"),
        ({"host_idle_ns": 40, "unknown_bound_ns": 60}, "unknown"),
        ({"host_idle_ns": 50, "memory_bound_ns": 40, "unknown_idle_ns": 11}, "unknown"),
        ({"host_idle_ns": 50, "memory_bound_ns": 40, "unknown_idle_ns": 10}, "host"),
        ({"launch_idle_ns": 3, "compute_bound_ns": 2, "exposed_ns": 1}, "launch"),
        ({"exposed_ns": 3, "copying_ns": 2}, "communication"),
        ({"copying_ns": 3}, "copy"),
        ({"unknown_bound_ns": 1}, "unknown"),
        ({}, None),
    ],
)
def test_the_bound_is_certain_or_unknown(times: dict[str, int], bound: str | None) -> None:
    """A step's bound names its longest part; it is unknown if all unknown time could make another part longer."""
    table = pl.DataFrame([{part: times.get(part, 0) for part in PARTS}])
    assert bounds(table).to_list() == [bound]


def test_without_operators_the_roofline_of_kernels_is_unknown() -> None:
    """Kernels of a replayed graph have no operator, so the bound of the step is unknown, and a finding says why."""
    builder = TraceBuilder().header(**H100).annotation("step[DECODE bs=4]", start_us=0, duration_us=20)
    for start in (10, 60):
        builder.kernel("gemm", start_us=start, duration_us=50, launch_us=5, launch_name="cudaGraphLaunch")
    result = inference(builder.build())
    assert result.per_step["bound"].to_list() == ["unknown"]
    assert "it is unknown whether compute or memory bounds the kernels" in result.findings[0]
    assert "graph" in result.findings[0]


def test_an_unknown_device_leaves_the_roofline_unknown() -> None:
    """If the file does not name the device, the bound is unknown; with the option `device`, the bound is known."""
    builder = product_and_sum().header(deviceProperties=[])
    result = inference(builder.build())
    assert result.per_step.select("unknown_bound_ns", "bound").row(0) == (4_000_000, "unknown")
    assert "the file does not name its device; pass the name of a known device as device=" in result.findings[0]
    named = first_step(product_and_sum().header(deviceProperties=[]), device="NVIDIA H100 80GB HBM3")
    assert (named["compute_bound_ns"], named["memory_bound_ns"]) == (2_000_000, 2_000_000)


def test_a_kernel_faster_than_its_lower_bound_is_unknown() -> None:
    """A product that seems faster than the peak rate has an unknown bound, and a finding says why."""
    builder = TraceBuilder().header(**H100).annotation("decode bs=4", start_us=0, duration_us=200)
    builder.operator("aten::mm", start_us=0, duration_us=5, args=PRODUCT)
    builder.kernel("nvjet_tst", start_us=10, duration_us=100, launch_us=1)
    result = inference(builder.build())
    assert result.per_step["unknown_bound_ns"].to_list() == [100_000]
    assert "the measured kernel times are below the computed lower bounds" in result.findings[0]


def test_idle_time_before_work_without_a_launch_is_unknown() -> None:
    """The launch of the second kernel was not recorded, so the idle time before it has an unknown cause."""
    builder = TraceBuilder().annotation("decode bs=4", start_us=0, duration_us=100)
    builder.kernel("gemm", start_us=10, duration_us=20, launch_us=5).kernel("relu", start_us=50, duration_us=50)
    assert parts(first_step(builder)) == {
        "unknown_bound_ns": 70,
        "launch_idle_ns": 5,
        "unknown_idle_ns": 20,
        "host_idle_ns": 5,
    }


def test_idle_time_of_an_incomplete_replay_is_unknown() -> None:
    """Two replays of a graph run two kernels each, but for the third replay, only one kernel was recorded.

    The other kernel may have run unrecorded, so the cause of idle time during the third replay is unknown.
    """
    builder = TraceBuilder()
    for number, start in enumerate((0, 100, 200)):
        builder.annotation("decode bs=4", start_us=start, duration_us=90)
        call = 50 + number
        builder.runtime("cudaGraphLaunch", start_us=start + 2, duration_us=3, correlation=call)
        for place in range(2 if number < 2 else 1):
            args = {"graph id": 7, "graph node id": place + 1}
            builder.kernel("gemm", start_us=start + 10 + 30 * place, duration_us=30, correlation=call, args=args)
    builder.runtime("cudaDeviceSynchronize", start_us=290, duration_us=5)
    steps = inference(builder.build()).per_step
    assert steps.select("launch_idle_ns", "unknown_idle_ns", "host_idle_ns").rows()[:2] == [(8_000, 0, 22_000)] * 2
    assert steps["unknown_idle_ns"][2] > 0
    assert steps["launch_idle_ns"][2] == 0


def test_without_a_device_the_parts_are_unknown() -> None:
    """Without device work, steps are listed, but their bound is unknown."""
    result = inference(TraceBuilder().annotation("step[DECODE bs=4]", start_us=0, duration_us=20).build())
    assert result.per_step.select("step_ns", "unknown_idle_ns", "bound").row(0) == (20_000, 20_000, "unknown")
    assert result.findings == (
        "rank 0: no device work was recorded, so it is unknown what bounds the steps; record with ProfilerActivity.CUDA",
    )


def test_steps_launched_ahead_follow_each_other_on_the_device() -> None:
    """The host launches both steps before the first has finished, so the second step follows without a gap."""
    builder = TraceBuilder()
    for start, kernel in ((0, 10), (20, 60)):
        builder.annotation("step[DECODE bs=4]", start_us=start, duration_us=15)
        builder.kernel("gemm", start_us=kernel, duration_us=50, launch_us=start + 5)
    steps = inference(builder.build()).per_step
    assert steps.select("step_ns", "gap_before_ns", "host_ns", "busy_ns").rows() == [
        (60_000, None, 15_000, 50_000),
        (50_000, 0, 15_000, 50_000),
    ]


def test_the_scheduler_runs_in_the_gap_between_steps() -> None:
    """The gap between two steps counts as 60 µs, although a kernel that belongs to no step runs in the gap."""
    builder = TraceBuilder()
    for start in (0, 100):
        builder.annotation("decode bs=4", start_us=start, duration_us=30)
        builder.kernel("gemm", start_us=start + 20, duration_us=20, launch_us=start + 5)
    builder.kernel("copy", start_us=50, duration_us=20, launch_us=45)
    steps = inference(builder.build()).per_step
    assert steps.select("step_ns", "gap_before_ns", "kernel_count").rows() == [(40_000, None, 1), (40_000, 60_000, 1)]


def test_earlier_work_delays_the_first_step() -> None:
    """The step's range starts at 10 µs, but earlier work keeps the device busy, so the step starts at 50 µs."""
    builder = TraceBuilder().kernel("before", start_us=0, duration_us=50)
    builder.annotation("decode bs=4", start_us=10, duration_us=20)
    builder.kernel("gemm", start_us=50, duration_us=20, launch_us=15)
    row = first_step(builder)
    assert (row["step_ns"], row["busy_ns"], row["kernel_count"]) == (20_000, 20_000, 1)


def test_attention_and_experts_by_operator_or_kernel() -> None:
    """Attention is recognised by its operator, and experts are recognised by their kernel.

    The FLOPs of attention are computed from the lengths in the name of the step.
    """
    name = "execute_3_context_1(sq2sk5sqsq4sqsk10)_generation_1(sq1sk7sqsq1sqsk7)"
    builder = TraceBuilder().annotation(name, start_us=0, duration_us=100)
    shapes = {"Input Dims": [[3, 8, 64], [3, 2, 64], [3, 2, 64], [3, 8, 64]], "Input type": ["c10::BFloat16"] * 4}
    builder.operator("vllm::unified_attention_with_output", start_us=10, duration_us=10, args=shapes)
    builder.kernel("kernel_2d", start_us=20, duration_us=10, launch_us=12)
    builder.kernel("kernel_2d_reduce", start_us=30, duration_us=5, launch_us=14)
    builder.kernel("fused_moe_kernel", start_us=40, duration_us=20, launch_us=30)
    row = first_step(builder)
    dense = 4 * 8 * 64 * (10 + 7)
    assert (row["attention_ns"], row["attention_flops"]) == (15_000, dense - 2 * 8 * 64 * 4)
    assert (row["moe_ns"], row["draft_ns"]) == (20_000, None)


def test_speculation_has_drafted_tokens_and_no_known_output() -> None:
    """The step decodes 12 tokens for 4 requests; 8 of these tokens are drafts.

    The number of accepted drafts was not recorded, so the time per token is unknown.
    """
    builder = TraceBuilder().annotation("execute_context_0(0)_generation_4(12)", start_us=0, duration_us=100)
    builder.annotation("gpu_model_runner: draft", start_us=60, duration_us=20)
    builder.kernel("gemm", start_us=20, duration_us=30, launch_us=10).kernel(
        "gemm", start_us=70, duration_us=9, launch_us=65
    )
    result = inference(builder.build())
    columns = ("draft_token_count", "output_token_count", "draft_ns")
    assert result.per_step.select(columns).row(0) == (8, None, 9_000)
    assert result.per_kind.select("output_token_ns", "draft_fraction").row(0) == (None, 9 / 39)
    assert result.summary["inter_token_ns"].to_list() == [None]
    assert result.findings[0] == (
        "rank 0: 8 of 12 decoded tokens were drafts; the number of accepted drafts was not recorded"
    )


def test_steps_of_the_draft_model_are_apart() -> None:
    """SGLang marks the steps of the draft model in their names, so they have a separate row."""
    builder = TraceBuilder()
    for start, name in ((0, "step[DRAFT_EXTEND bs=4]"), (50, "step[TARGET_VERIFY bs=4]")):
        builder.annotation(name, start_us=start, duration_us=40)
        builder.kernel("gemm", start_us=start + 20, duration_us=10, launch_us=start + 10)
    result = inference(builder.build())
    assert result.per_kind.select("kind", "is_draft", "draft_fraction").rows() == [
        ("decode", False, None),
        (None, True, 1.0),
    ]


def serving(lengths: list[int], batches: list[int] | None = None) -> Inference:
    """Return the result for consecutive decoding steps of these lengths (µs), each with one kernel."""
    builder, start = TraceBuilder(), 0
    for length, batch in zip(lengths, batches or [8] * len(lengths), strict=True):
        builder.annotation(f"step[DECODE bs={batch}]", start_us=start, duration_us=length)
        builder.kernel("gemm", start_us=start + 2, duration_us=length - 2, launch_us=start + 1)
        start += length
    return inference(builder.build())


def test_percentiles_are_measured_times() -> None:
    """For steps of 101, 102, …, 110 µs, the 50th, 90th and 99th percentiles are 105, 109 and 110 µs."""
    row = serving(list(range(101, 111))).per_kind.row(0, named=True)
    assert [row[f"p{percent}_step_ns"] // 1_000 for percent in (50, 90, 99)] == [105, 109, 110]
    assert (row["step_count"], row["apart_count"], row["mean_token_count"]) == (10, 0, 8.0)
    assert row["output_token_ns"] == sum(range(101, 111)) * 1_000 / 80


def test_each_batch_has_its_own_row() -> None:
    """Steps with 4 and with 8 requests have separate rows; the inter-token time is a mean over all steps."""
    result = serving([10, 20, 10, 20], [4, 8, 4, 8])
    assert result.per_batch.select("request_count", "p50_step_ns", "output_token_ns").rows() == [
        (4, 10_000, 2_500.0),
        (8, 20_000, 2_500.0),
    ]
    assert result.per_kind.select("step_count", "p50_step_ns", "p90_step_ns").row(0) == (4, 10_000, 20_000)
    columns = ("inter_token_ns", "output_token_count", "elapsed_ns", "tokens_per_s")
    assert result.summary.select(columns).row(0) == (15_000.0, 24, 60_000, 1e9 * 24 / 60_000)


def test_a_slow_start_is_set_apart() -> None:
    """Two steps of 900 µs before ten steps of 100 µs are warm-up; a later step of 900 µs is steady."""
    result = serving([900, 900, *[100] * 10, 900])
    assert result.per_step["period"].to_list() == ["start"] * 2 + ["steady"] * 11
    assert result.per_step["period_reason"][0] == "900 µs, but the median of similar steps is 100 µs"
    assert result.per_kind.select("step_count", "apart_count", "p50_step_ns").row(0) == (13, 2, 100_000)
    assert (
        "rank 0: 2 steps at the beginning are not steady: 900 µs, but the median of similar steps is 100 µs"
        in result.findings
    )


def test_a_growing_batch_is_set_apart() -> None:
    """The first three steps process fewer than 80 % of the usual 32 requests, so these steps are not steady."""
    result = serving([100] * 12, [8, 16, 24, *[32] * 9])
    assert result.per_step["period"].to_list() == ["start"] * 3 + ["steady"] * 9
    assert result.per_step["period_reason"][1] == (
        "the number of decoding requests is 16, but the median of decoding steps is 32"
    )


def test_a_prompt_before_all_decoding_is_steady() -> None:
    """In offline generation, one prefill precedes all decoding steps; it counts as steady, like these steps."""
    builder = TraceBuilder().annotation("prefill bs=4 tokens=64", start_us=0, duration_us=300)
    for start in range(300, 1_300, 100):
        builder.annotation("decode bs=4", start_us=start, duration_us=100)
    assert set(inference(builder.build()).per_step["period"]) == {"steady"}


def test_few_steps_have_no_start() -> None:
    """With only four steps, a slow first step is not treated as warm-up."""
    assert set(serving([900, 100, 100, 100]).per_step["period"]) == {"steady"}


def test_steps_without_recorded_work_are_cut_off() -> None:
    """The last step has no device work, because the recording ended too early."""
    builder = TraceBuilder()
    for start in (0, 100, 200):
        builder.annotation("decode bs=4", start_us=start, duration_us=90)
        if start < 200:
            builder.kernel("gemm", start_us=start + 20, duration_us=50, launch_us=start + 10)
    result = inference(builder.build())
    assert result.per_step["period"].to_list() == ["steady", "steady", "cut off"]
    assert "rank 0: 1 step at the end is not steady: its device work was not recorded" in result.findings


def two_ranks(late_us: int) -> TraceBuilder:
    """Return two ranks with two steps; in each, an all-reduce ends at 80 µs, and rank 1 joins it `late_us` late."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="a")
        for start in (0, 100):
            begin = start + 20 + rank * late_us
            builder.annotation("step[DECODE bs=4]", start_us=start, duration_us=90)
            builder.collective(start_us=begin, duration_us=start + 80 - begin, launch_us=start + 5)
    return builder


def test_ranks_wait_for_the_late_one() -> None:
    """Rank 1 arrives 30 µs late in each of two steps, so rank 0 waits 60 µs in total and rank 1 does not wait."""
    result = inference(two_ranks(30).build())
    assert result.per_step.select("rank", "inference_step", "wait_ns").rows() == [
        (0, 0, 30_000),
        (0, 1, 30_000),
        (1, 0, 0),
        (1, 1, 0),
    ]
    assert result.summary["wait_ns"].to_list() == [60_000, 0]


def test_waiting_of_a_single_rank_is_unknown() -> None:
    """Without the other rank, the waiting in collectives is unknown (null)."""
    result = inference(two_ranks(30).build().select([0]))
    assert result.per_step["wait_ns"].to_list() == [None, None]
    assert result.per_step["bound"].to_list() == ["communication", "communication"]


def test_one_sentence_without_steps() -> None:
    """For a training job, the answer says why it has no inference steps."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
    builder.operator("autograd::engine::evaluate_function: MmBackward0", start_us=10, duration_us=5)
    result = inference(builder.build())
    assert result.answer == "rank 0: no inference steps: no range is named like a step, and the rank is training"
    assert [table.is_empty() for table in (result.per_step, result.per_kind, result.per_batch, result.summary)] == [
        True
    ] * 4


def test_the_answer_names_the_steps_with_most_time() -> None:
    """The answer is about the kind of step that takes the most total time: its median length, and what bounds it."""
    assert serving([100] * 10).answer == (
        "The median decode step takes 100 µs, but it is unknown what bounds it; steps of this kind take the most time in total."
    )
    assert inference(product_and_sum(sum_us=2_100).build()).answer == (
        "The median decode step takes 5 ms, 42.0 % of it memory-bound kernels; steps of this kind take the most time in total."
    )


def test_wrong_options_are_errors() -> None:
    """An unknown device and an invalid pattern raise InvalidOptionError."""
    trace = TraceBuilder().annotation("decode", start_us=0, duration_us=5).build()
    with pytest.raises(InvalidOptionError, match="the device table does not contain 'H1000'"):
        inference(trace, device="H1000")
    with pytest.raises(InvalidOptionError, match="not a regular expression"):
        inference(trace, patterns=["("])


def test_a_pattern_finds_the_steps_of_another_engine() -> None:
    """A pattern in the option `patterns` matches steps of an engine for which no pattern is built in."""
    builder = TraceBuilder().annotation("tick x7", start_us=0, duration_us=5)
    row = first_step(builder, patterns=[r"tick x(?P<requests>\d+)"])
    assert (row["engine"], row["request_count"], row["kind"]) == ("pattern", 7, None)


# The steps that the tests expect in recorded files. The tests also read these files as plain JSON, without holotrace.

RECORDED = {
    # For each file: prefixes of the steps' names, whether a step lasts until the next step starts; then, for each
    # step: kind, number of requests, number of tokens, number of attention pairs.
    "generation": (("prefill ", "decode "), False, ["prefill"] + ["decode"] * 6, [8] * 7, [2048] + [8] * 6, [None] * 7),
    "generation-graphs": (
        ("prefill ", "decode "),
        False,
        ["prefill"] + ["decode"] * 6,
        [8] * 7,
        [2048] + [8] * 6,
        [None] * 7,
    ),
    "inference/sglang_decode/sglang_Qwen3-8B_decode": (("execute_",), True, ["decode"], [32], [32], [32785]),
    "inference/vllm_prefilldecode_piecewise/graph_execution": (
        ("execute_",),
        True,
        ["mixed"],
        [46],
        [8192],
        [7671310 - (7475785 - 8155) // 2 + 34489],
    ),
}


@pytest.mark.parametrize("where", RECORDED)
def test_recorded_steps_equal_an_independent_count(real_traces: Path, where: str) -> None:
    """The times, kernels and parts of each recorded step equal those of `independent_count`."""
    path = real_traces / f"{where}.json.gz" if "/" in where else EXAMPLES / where / "rank0.pt.trace.json.gz"
    begins, until_next, kinds, requests, tokens, pairs = RECORDED[where]
    steps = inference(holotrace.open_trace(path, cache=False)).per_step
    said = ("kind", "request_count", "token_count", "attention_pair_count")
    assert steps.select(said).rows() == list(zip(kinds, requests, tokens, pairs, strict=True))
    kernels = pl.sum_horizontal("compute_bound_ns", "memory_bound_ns", "unknown_bound_ns").alias("kernels")
    idle = pl.sum_horizontal("launch_idle_ns", "unknown_idle_ns", "host_idle_ns").alias("idle")
    times = ("step_ns", "gap_before_ns", "host_ns", "kernel_count", "kernel_ns", "busy_ns")
    counted = steps.select(*times, kernels, "copying_ns", idle, "launch_idle_ns").rows()
    assert counted == independent_count(path, begins, until_next=until_next)


def independent_count(path: Path, begins: tuple[str, ...], *, until_next: bool) -> list[tuple[int | None, ...]]:
    """Return the times and kernels of each step, computed slowly from the plain JSON."""
    with gzip.open(path, "rt") as file:
        events = [event for event in json.load(file, parse_float=Decimal)["traceEvents"] if event.get("ph") == "X"]
    spans = [(int(event["ts"] * 1_000), int((event["ts"] + event["dur"]) * 1_000), event) for event in events]
    ranges = sorted(
        (start, end)
        for start, end, event in spans
        if event.get("cat") == "user_annotation" and event["name"].startswith(begins)
    )
    launched = {
        event["args"]["correlation"]: start
        for category in ("cuda_driver", "cuda_runtime")
        for start, _, event in spans
        if event.get("cat") == category and "correlation" in event.get("args", {})
    }
    work = sorted(
        (start, end, launched.get(event["args"]["correlation"]), event["cat"] == "kernel")
        for start, end, event in spans
        if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    )
    rows: list[tuple[int | None, ...]] = []
    last_end = None
    for place, (begin, end) in enumerate(ranges):
        following = ranges[place + 1][0] if place + 1 < len(ranges) else max(start for start, *_ in spans) + 1
        until = max(end, following) if until_next else end
        mine = [piece for piece in work if piece[2] is not None and begin <= piece[2] < until]
        earlier = [piece[1] for piece in work if piece[2] is None or piece[2] < begin]
        started = max([begin, *earlier, *([last_end] if last_end else [])])
        ended = max([end, *(piece[1] for piece in mine)])
        states = moments(work, started, ended)
        rows.append(
            (
                ended - started,
                None if last_end is None else started - last_end,
                end - begin,
                len(mine),
                sum(piece[1] - piece[0] for piece in mine),
                sum(
                    moments(mine, min(piece[0] for piece in mine), ended).get(state, 0) for state in ("kernel", "copy")
                ),
                states.get("kernel", 0),
                states.get("copy", 0),
                states.get("launched", 0) + states.get("idle", 0),
                states.get("launched", 0),
            )
        )
        last_end = ended
    return rows


def moments(work: list[tuple[int, int, int | None, bool]], start: int, end: int) -> dict[str, int]:
    """Return the time in each state: a kernel runs, only copies run, work is pending, or the device is idle."""
    times = {time for piece in work for time in piece[:3] if time is not None and start < time < end}
    edges = sorted({start, end, *times})
    total: dict[str, int] = {}
    for left, right in pairwise(edges):
        running = {is_kernel for begin, stop, _, is_kernel in work if begin <= left < stop}
        pending = any(asked is not None and asked <= left < begin for begin, _, asked, _ in work)
        state = "kernel" if True in running else "copy" if running else "launched" if pending else "idle"
        total[state] = total.get(state, 0) + right - left
    return total


def test_attention_of_vllm_equals_tracelens(real_traces: Path, goldens: Path) -> None:
    """The FLOP and time of attention in 24 layers equal those in TraceLens' table of the same trace."""
    folder = "vllm_prefilldecode_piecewise"
    with (goldens / "tracelens" / folder / "InferenceAttention_fwd.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    trace = holotrace.open_trace(real_traces / "inference" / folder / "graph_execution.json.gz", cache=False)
    step = inference(trace).per_step.row(0, named=True)
    assert step["attention_flops"] == round(24 * 1e9 * float(row["GFLOPS_first"]))
    assert step["attention_ns"] / 1_000 == pytest.approx(float(row["Kernel Time (µs)_sum"]), rel=1e-5)


def test_generation_of_transformers_is_found_by_its_module() -> None:
    """The recorded Llama reads 4 prompts of 128 tokens and generates 3 tokens for each; every step is host-bound."""
    result = inference(holotrace.open_trace(EXAMPLES / "generation-llama", cache=False))
    columns = ("engine", "found_by", "kind", "request_count", "token_count", "bound")
    common = ("transformers", "module")
    assert result.per_step.select(columns).rows() == [
        (*common, "prefill", 4, 512, "host"),
        (*common, "decode", 4, 4, "host"),
        (*common, "decode", 4, 4, "host"),
    ]
    assert result.findings[0] == ("rank 0: no range marks the steps, so each call of the model's module begins a step")


def test_the_tables_equal_their_golden_copies(golden: Any) -> None:
    """The tables of the recorded generation equal their golden copies."""
    result = inference(holotrace.open_trace(EXAMPLES / "generation", cache=False))
    golden.check(result.per_step, "inference/generation.per_step")
    golden.check(result.per_kind, "inference/generation.per_kind")
    golden.check(result.per_batch, "inference/generation.per_batch")
    golden.check(result.summary, "inference/generation.summary")


def test_the_capture_of_graphs_shows_what_bounds_their_kernels() -> None:
    """Without the capture trace, the bound of decoding steps is unknown; with the capture trace, it is memory."""
    path = EXAMPLES / "generation-graphs" / "rank0.pt.trace.json.gz"
    alone = inference(holotrace.open_trace(path, cache=False, capture=[]))
    with_capture = inference(holotrace.open_trace(path, cache=False, capture=path.parent / "capture_traces"))
    launched = inference(holotrace.open_trace(EXAMPLES / "generation", cache=False))

    assert set(alone.per_step["bound"][1:]) == {"unknown"}
    assert set(with_capture.per_step["bound"][1:]) == {"memory"}
    assert with_capture.per_step["attention_flops"].to_list() == launched.per_step["attention_flops"].to_list()
    assert any("is attributed to operators" in finding for finding in with_capture.findings)


def test_without_names_the_functions_of_vllm_show_the_same_work(real_traces: Path, tmp_path: Path) -> None:
    """Without a range that names vLLM's step, a Python function marks the step, and the kernel count is the same."""
    path = real_traces / "inference" / "vllm_prefilldecode_piecewise" / "graph_execution.json.gz"
    with gzip.open(path, "rt") as file:
        recording = json.load(file, parse_float=Decimal)
    kept = [event for event in recording["traceEvents"] if event.get("cat") != "user_annotation"]
    copy = tmp_path / "rank0.json"
    copy.write_text(json.dumps({**recording, "traceEvents": kept}, default=float))
    named, found = (
        inference(holotrace.open_trace(source, cache=False, capture=[])).per_step.row(0, named=True)
        for source in (path, copy)
    )
    assert (found["engine"], found["found_by"], found["kind"]) == ("vllm", "python function", None)
    assert [found[name] for name in ("kernel_count", "moe_ns")] == [named[name] for name in ("kernel_count", "moe_ns")]


def test_attention_of_sglang_equals_tracelens(real_traces: Path, goldens: Path) -> None:
    """The FLOP and time of attention in 36 replayed layers equal those in TraceLens' table of the same trace."""
    folder = real_traces / "inference" / "sglang_decode"
    with (goldens / "tracelens" / "sglang_decode" / "InferenceAttention_fwd.csv").open(newline="") as file:
        expected = next(row for row in csv.DictReader(file) if row["name"].startswith("sglang_profiler"))
    path = folder / "sglang_Qwen3-8B_decode.json.gz"
    step = inference(holotrace.open_trace(path, cache=False, capture=folder / "capture_traces")).per_step.row(
        0, named=True
    )
    assert step["attention_flops"] == round(36 * 1e9 * float(expected["GFLOPS_first"]))
    assert step["attention_ns"] / 1_000 == pytest.approx(float(expected["Kernel Time (µs)_sum"]), rel=1e-5)
