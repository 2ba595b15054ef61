"""Tests of the headline numbers of a job, and of the answer and facts that show them."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.analyses.diagnosis.answer import answer
from holotrace.analyses.diagnosis.compute import plan
from holotrace.analyses.diagnosis.headline_facts import headline_facts, headline_line
from holotrace.execution.executor import IN_PROCESS
from holotrace.store.trace import Trace
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"
TRACES = Path(__file__).parents[2] / "reference" / "traces"
CAPACITY = 80 << 30
H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": CAPACITY}]}
PRODUCT = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
PRODUCT_MS = 1e3 * 2 * 8192**3 / 989.4e12


def training(lengths_ms: tuple[int, ...] = (10, 10, 10, 10), *, peaks: tuple[int, ...] = ()) -> Trace:
    """Return steps with one matrix product of 2 ms each, and a memory event for each total in `peaks` (in bytes)."""
    builder, begin = TraceBuilder().header(**H100), 0
    for number, length in enumerate(lengths_ms):
        builder.step(number, begin, 1_000 * length)
        builder.operator("aten::mm", start_us=begin + 1, duration_us=10, args=PRODUCT)
        builder.kernel("nvjet_a", start_us=begin + 100, duration_us=2_000, launch_us=begin + 2)
        begin += 1_000 * length
    for number, total in enumerate(peaks):
        args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": number, "Total Allocated": total}
        builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=1, tid=1, ts=5 + number, args=args)
    return builder.build()


def test_mfu_is_the_time_of_the_products_at_peak_over_the_step() -> None:
    """At the peak of 989.4 TFLOP/s, the product would take 1.11 ms of a 10 ms step, so MFU is 11.1 %."""
    row = holotrace.diagnosis(training()).headline.row(0, named=True)

    assert row["mfu_fraction"] == pytest.approx(PRODUCT_MS / 10)
    assert row["costed_fraction"] == 1


def test_mfu_counts_only_steady_steps() -> None:
    """A warm-up step of 100 ms does not change the mean step or MFU."""
    row = holotrace.diagnosis(training((100, 10, 10, 10, 10))).headline.row(0, named=True)

    assert (row["step_count"], row["step_ns"]) == (4, 10_000_000)
    assert row["mfu_fraction"] == pytest.approx(PRODUCT_MS / 10)


@pytest.mark.parametrize("name", ["training", "training-checkpointed"])
def test_mfu_is_that_of_the_roofline(name: str) -> None:
    """In recorded jobs, MFU equals the mean MFU of the roofline's steps, weighted by their lengths."""
    trace = holotrace.open_trace(EXAMPLES / name, cache=False)
    row = holotrace.diagnosis(trace).headline.row(0, named=True)
    steps = holotrace.roofline(trace).per_step

    assert row["step_count"] == len(steps)
    weighted = (steps["mfu_fraction"] * steps["step_ns"]).sum() / steps["step_ns"].sum()
    assert row["mfu_fraction"] == pytest.approx(weighted)


def test_mfu_is_unknown_on_an_unknown_device() -> None:
    """If the peak rates of the device are unknown, MFU is null."""
    assert holotrace.diagnosis(small_job()).headline["mfu_fraction"].to_list() == [None]


def test_the_memory_peak_is_the_highest_total_of_a_device() -> None:
    """First 20, then 60, then 40 of 80 GiB are allocated, so the peak is 60 GiB."""
    result = holotrace.diagnosis(training(peaks=(20 << 30, 60 << 30, 40 << 30)))
    row = result.headline.row(0, named=True)

    assert (row["memory_peak_bytes"], row["memory_capacity_bytes"]) == (60 << 30, CAPACITY)
    assert headline_facts(result)[-1] == ("memory peak", "60 GiB", "75.0 % of 80 GiB")


def test_the_facts_name_the_whole_of_each_share() -> None:
    """Fractions are followed by "of the step", and a remark names the rank that the others wait for most."""
    facts = {fact.name: (fact.value, fact.remark) for fact in headline_facts(holotrace.diagnosis(small_job()))}

    assert facts["step"][0].startswith("1 ms")
    assert facts["GPU busy"] == ("70.0 % of the step", "")
    assert facts["waiting for ranks"][1] == "most for rank 1"


@pytest.mark.slow
def test_the_facts_of_a_job_on_cpus_leave_out_devices() -> None:
    """Without device work, the headline shows only the step, the exposed communication and the waiting."""
    line = headline_line(holotrace.diagnosis(holotrace.open_trace(TRACES / "ddp_gloo_4rank", cache=False)))

    assert [part.split(" ")[0] for part in line.split(" · ")] == ["step", "exposed", "waiting"]
    assert line.endswith("of the step (most for rank 3)")


def test_on_a_cpu_communication_is_exposed_while_no_operator_computes() -> None:
    """`aten::mm` hides 200 of 600 µs of communication; 400 µs are exposed, since `wait_tensor` only waits.

    `wait_tensor` runs inside `aten::add`, so `aten::add` does not compute during this time.
    """
    trace = TraceBuilder()
    for begin in (0, 1_000, 2_000):
        trace.step(begin // 1_000, begin, 1_000)
        trace.annotation("gloo:all_reduce", start_us=begin + 100, duration_us=600, thread=9)
        trace.operator("aten::mm", start_us=begin + 100, duration_us=200)
        trace.operator("aten::add", start_us=begin + 300, duration_us=400)
        trace.operator("_c10d_functional::wait_tensor", start_us=begin + 300, duration_us=400)

    assert holotrace.diagnosis(trace.build()).headline["exposed_fraction"].item() == pytest.approx(0.4)


def test_partly_known_costs_are_said() -> None:
    """A kernel with unknown FLOP takes half of the device time, so a remark says that MFU covers 50 % of this time."""
    builder = TraceBuilder().header(**H100).step(1, 0, 10_000)
    builder.operator("aten::mm", start_us=1, duration_us=10, args=PRODUCT)
    builder.kernel("nvjet_a", start_us=100, duration_us=2_000, launch_us=2)
    builder.operator("mine::unknown", start_us=20, duration_us=10)
    builder.kernel("unknown", start_us=2_200, duration_us=2_000, launch_us=21)
    facts = {fact.name: fact.remark for fact in headline_facts(holotrace.diagnosis(builder.build()))}

    assert facts["MFU"] == "covers 50.0 % of the compute time"


def test_without_findings_the_answer_names_what_takes_most_time() -> None:
    """On a CPU, aten::conv2d takes 6 of 8 ms, including the operator inside it."""
    builder = TraceBuilder().operator("aten::conv2d", start_us=0, duration_us=6_000)
    builder.operator("aten::mkldnn_convolution", start_us=10, duration_us=5_900)
    builder.operator("aten::relu", start_us=6_000, duration_us=2_000)
    result = holotrace.diagnosis(builder.build())

    assert answer(result) == (
        "The recording takes 8 ms, and no GPU work was recorded; none of the rules that could be checked applies; "
        "aten::conv2d takes 75.0 % of the time, more than any other operator."
    )


def test_the_answer_names_the_function_that_training_calls() -> None:
    """The main operator runs mostly in `validate`, which takes most of the step, so the answer names `validate`."""
    builder = TraceBuilder()
    for number in range(3):
        begin = 10_000 * number
        builder.step(number, begin, 10_000).python("train.py(3): step", start_us=begin + 1, duration_us=9_990)
        builder.operator("aten::mm", start_us=begin + 2, duration_us=990)
        builder.python("train.py(20): validate", start_us=begin + 1_000, duration_us=8_000)
        builder.python("model.py(8): forward", start_us=begin + 1_010, duration_us=7_900)
        builder.operator("aten::linear", start_us=begin + 1_020, duration_us=7_800)
        builder.operator("aten::mm", start_us=begin + 9_005, duration_us=980)
    result = holotrace.diagnosis(builder.build())

    assert answer(result).endswith("more than any other operator, mostly in train.py(20): validate.")


def test_the_training_loop_may_have_begun_before_the_recording() -> None:
    """`main` contains all steps and calls `validate`, in which the main operator runs."""
    builder = TraceBuilder().python("train.py(3): main", start_us=0, duration_us=30_000)
    for number in range(3):
        begin = 10_000 * number
        builder.step(number, begin, 10_000).python("train.py(20): validate", start_us=begin + 1_000, duration_us=8_000)
        builder.operator("aten::linear", start_us=begin + 1_020, duration_us=7_800)

    assert answer(holotrace.diagnosis(builder.build())).endswith("other operator, mostly in train.py(20): validate.")


def test_on_a_gpu_the_answer_names_a_kernel() -> None:
    """One kernel keeps the GPU busy almost all the time, so the answer names it."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)
    result = holotrace.diagnosis(builder.kernel("gemm", start_us=5, duration_us=9_995, launch_us=1).build())

    assert result.headline.select("main_work", "main_fraction").row(0) == ("gemm", 0.9995)
    assert "gemm takes" in answer(result)


def test_a_rank_alone_has_no_share_of_waiting() -> None:
    """For a single rank, the time spent waiting for other ranks is null, not 0."""
    result = plan().run(training(), IN_PROCESS)

    assert result.headline["waiting_fraction"].to_list() == [None]
    assert "waiting" not in headline_line(result)
