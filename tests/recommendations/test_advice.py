"""Each rule of the advice applies to a trace built for it, and all rules agree with the TensorBoard plugin."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from tb_goldens import EACH_CASE, case

GPU = {"name": "GPU", "totalGlobalMem": 1000, "computeMajor": 8, "computeMinor": 0, "numSms": 10}
PLUGINS_WORDS = {
    "data_loading": "input data loading",
    "data_parallel": "instead of DataParallel",
    "ddp_backend": "Nccl backend",
    "communication": "time cost on communication",
    "low_utilization": "low utilization",
    "mixed_precision": "Tensor Cores eligible",
    "memory_limit": "memory capacity",
}
"""Words that identify the plugin's sentence for each rule."""


def device(number: int = 0, **properties: object) -> dict[str, object]:
    """Return the properties of a device in the form of a trace header."""
    return {"id": number, **GPU, **properties}


def rules(builder: TraceBuilder, **options: object) -> list[str]:
    """Return the names of the rules that apply."""
    return holotrace.advice(builder.build(), **options).recommendations["rule"].to_list()


def loading(waiting_us: int) -> TraceBuilder:
    """Return a step of 100 µs with this wait for the data loader."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    return (
        TraceBuilder()
        .step(1, 0, 100)
        .annotation(name, start_us=10, duration_us=waiting_us)
        .operator("aten::relu", start_us=50, duration_us=20)
    )


def test_waiting_for_the_data_loader() -> None:
    """Waiting 6 of 100 µs for the data loader exceeds 5 %, and is worth at most 6 µs."""
    advice = holotrace.advice(loading(6).build())
    assert advice.evidence.to_dicts() == [
        {
            "rule": "data_loading",
            "rank": 0,
            "device": None,
            "value_fraction": pytest.approx(0.06),
            "measure": "of the mean step",
            "limit_fraction": 0.05,
            "worth_ns": 6000.0,
        }
    ]
    (recommendation,) = advice.recommendations.to_dicts()
    assert recommendation["advice"].startswith("6.0 % of the mean step (6 µs) of rank 0 is spent waiting for the data")
    assert recommendation["worth_fraction"] == pytest.approx(0.06)
    assert recommendation["analysis"] == "step_time"
    (event,) = advice.events.to_dicts()
    assert event["event"].startswith("enumerate(DataLoader)#")
    assert (event["call_count"], event["total_ns"], event["at_ns"]) == (1, 6_000, 10_000)


def test_a_rule_applies_beyond_its_limit() -> None:
    """5 % does not exceed the default limit of 5 %, but exceeds 4 %."""
    assert rules(loading(5)) == []
    assert rules(loading(5), thresholds=holotrace.Thresholds(loading=0.04)) == ["data_loading"]


def test_a_threshold_is_a_fraction() -> None:
    """A threshold of 5 instead of 0.05 is an error."""
    with pytest.raises(InvalidOptionError, match=r"loading=5: a threshold is a fraction from 0 to 1"):
        holotrace.Thresholds(loading=5)


def wrapped(name: str, *devices: int) -> TraceBuilder:
    """Return a step of a wrapped model that runs a kernel on each of these devices."""
    builder = TraceBuilder().header(deviceProperties=[device(number) for number in devices])
    builder.step(1, 0, 100).annotation(name, start_us=1, duration_us=98)
    for number in devices:
        builder.kernel("relu", start_us=10, duration_us=80, device=number, launch_us=5)
    return builder


def test_data_parallel_on_two_devices() -> None:
    """DataParallel gives advice on two devices, but not on one."""
    assert "data_parallel" in rules(wrapped("DataParallel.forward", 0, 1))
    assert "data_parallel" not in rules(wrapped("DataParallel.forward", 0))


def ddp(collective: str, **properties: object) -> TraceBuilder:
    """Return a step of DDP with this collective on the host."""
    builder = TraceBuilder().header(deviceProperties=[device(**properties)])
    builder.step(1, 0, 100).annotation("DistributedDataParallel.forward", start_us=1, duration_us=98)
    return builder.annotation(collective, start_us=10, duration_us=8)


def test_ddp_over_gloo_on_gpus_that_support_nccl() -> None:
    """DDP over Gloo gives advice, unless the device does not support NCCL."""
    assert rules(ddp("gloo:all_reduce")) == ["ddp_backend"]
    assert rules(ddp("nccl:all_reduce")) == []
    assert rules(ddp("gloo:all_reduce", computeMajor=3, computeMinor=2)) == []


def test_a_capability_is_two_numbers() -> None:
    """Compute capability 3.10 exceeds 3.5, although 3.10 is less as a decimal number."""
    assert rules(ddp("gloo:all_reduce", computeMajor=3, computeMinor=10)) == ["ddp_backend"]


def communicating(us: int, ranks: int = 1) -> TraceBuilder:
    """Return steps of 100 µs with 60 µs of computation, then communication: `us` on rank 0 and 2 µs on rank 1."""
    builder = TraceBuilder()
    for rank in range(ranks):
        builder.rank(rank).step(1, 0, 100).operator("aten::relu", start_us=0, duration_us=9)
        builder.kernel("relu", start_us=10, duration_us=60, launch_us=1)
        builder.collective("allreduce", start_us=70, duration_us=us if rank == 0 else 2)
    return builder


def test_exposed_communication() -> None:
    """Exposed communication of 12 of 100 µs exceeds 10 %, and the events name the all-reduce."""
    advice = holotrace.advice(communicating(12).build())
    assert advice.recommendations["rule"].to_list() == ["communication"]
    assert advice.evidence["value_fraction"].to_list() == [pytest.approx(0.12)]
    assert [event.split()[0] for event in advice.events["event"]] == ["all_reduce"]
    assert "accumulate gradients" in advice.recommendations["advice"][0]


def test_a_late_rank_comes_first_and_explains_the_communication() -> None:
    """Rank 0 waits 10 of its 12 µs of communication for rank 1, so the advice is to fix rank 1 first."""
    advice = holotrace.advice(communicating(12, ranks=2).build())
    assert advice.recommendations["rule"].to_list() == ["late_rank", "communication"]
    first, second = advice.recommendations["advice"]
    assert first == (
        "rank 1 is late: the other ranks together wait 10 µs for it, 100.0 % of all waiting in its collectives; before "
        "anything else, find what takes longer on its host, in its data loading or on its device than on another rank"
    )
    assert second == (
        "12.0 % of the mean step (12 µs) of rank 0 is communication that nothing hides, and 83.3 % of the time in "
        "collectives is waiting for other ranks, mostly because rank 1 is late: fix that first, and look again"
    )
    assert advice.evidence.row(0, named=True) == {
        "rule": "late_rank",
        "rank": 1,
        "device": None,
        "value_fraction": 1.0,
        "measure": "of all waiting in its collectives",
        "limit_fraction": 0.5,
        "worth_ns": 10_000.0,
    }


def test_a_late_rank_comes_before_what_is_worth_more() -> None:
    """A late rank that costs 10 % of the step comes before data loading that costs 18 %."""
    builder = communicating(12, ranks=2)
    builder.rank(0).annotation("enumerate(DataLoader)#_It.__next__", start_us=82, duration_us=18)
    assert rules(builder)[0] == "late_rank"


def test_a_rank_that_may_pass_on_a_delay_is_not_called_late() -> None:
    """Rank 1 receives for 50 µs before it arrives last, so it may itself wait for another rank."""
    builder = TraceBuilder()
    for rank, start in ((0, 20), (1, 70)):
        builder.rank(rank).step(1, 0, 100).operator("a", start_us=0, duration_us=5)
        builder.kernel("relu", start_us=5, duration_us=10, launch_us=1).collective(
            start_us=start, duration_us=90 - start
        )
    builder.collective("recv", start_us=16, duration_us=50, group="1", stream=21)
    advice = holotrace.advice(builder.build()).recommendations["advice"].to_list()
    assert advice[0].startswith("rank 1 arrives last: ")
    assert "it may itself wait for another rank" in advice[0]
    assert not any("rank 1 is late" in sentence for sentence in advice)


def test_waiting_for_several_ranks_suggests_balance() -> None:
    """If each of four ranks arrives last once, the advice is to balance their work."""
    builder = TraceBuilder()
    for rank in range(4):
        builder.rank(rank).step(1, 0, 100).operator("aten::relu", start_us=0, duration_us=9)
        for order in range(4):
            late = 15 if order == rank else 0
            builder.collective(start_us=20 * order + late, duration_us=19 - late, group_ranks=(0, 1, 2, 3))
    (sentence,) = holotrace.advice(builder.build()).recommendations.filter(rule="communication")["advice"]
    assert "of the time in collectives is waiting for other ranks: balance their work" in sentence


def test_low_utilization_of_one_of_two_devices() -> None:
    """Device 1 runs kernels in 30 of 100 µs, so the advice on it is worth at most 70 µs."""
    builder = wrapped("model", 0).kernel("relu", start_us=10, duration_us=30, device=1, launch_us=6)
    advice = holotrace.advice(builder.build())
    assert advice.evidence.select("rule", "device", "value_fraction", "worth_ns").rows() == [
        ("low_utilization", 1, pytest.approx(0.3), pytest.approx(70_000))
    ]
    assert advice.recommendations["advice"][0].startswith("GPU 1 (rank 0) runs kernels in less than 50.0 %")


def idling(*gaps: tuple[int, int]) -> TraceBuilder:
    """Return a step with kernels of 5 µs; a gap is (length, time from the next kernel's launch to the gap's end)."""
    builder = TraceBuilder().step(1, 0, 100).operator("a", start_us=0, duration_us=5)
    for row, (_, since_launch) in enumerate(((0, 0), *gaps)):
        start = 2 + sum(5 + length for length, _ in gaps[:row])
        builder.kernel("relu", start_us=start, duration_us=5, launch_us=start - since_launch)
    return builder


@pytest.mark.parametrize(
    ("gaps", "cause"),
    [
        (((40, 1), (40, 1)), "the rest is mostly waiting for the host"),
        (((20, 1),), "the rest is mostly waiting for the host"),  # of 90 idle µs, 68 come after the last kernel
        (tuple([(13, 12)] * 5), "the rest is mostly short gaps between kernels"),
        (((84, 80),), "for most of the rest, launched work waited"),
        (((28, 27), (25, 1), (31, 31)), "a larger batch fills them, unless they wait for the host"),
    ],
)
def test_advice_on_low_utilization_depends_on_the_cause(gaps: tuple[tuple[int, int], ...], cause: str) -> None:
    """Advice suggests a larger batch for short gaps, but not if the GPU waits for the host or for started work."""
    (sentence,) = holotrace.advice(idling(*gaps).build()).recommendations["advice"]
    assert cause in sentence
    assert ("larger batch" in sentence) == (cause.startswith("a larger") or "short gaps" in cause)


def test_low_utilization_because_of_the_data_loader() -> None:
    """A host that loads data for 70 of 100 µs launches nothing, and the advice names the data loader."""
    builder = idling((70, 1)).annotation("enumerate(DataLoader)#_It.__next__", start_us=8, duration_us=70)
    recommendations = holotrace.advice(builder.build()).recommendations
    (sentence,) = recommendations.filter(rule="low_utilization")["advice"]
    assert "the rest is mostly waiting for the data loader" in sentence


def test_compat_names_no_cause() -> None:
    """With `compat`, the advice on low utilization is the plugin's, which names no cause."""
    recommendations = holotrace.advice(idling((40, 1), (40, 1)).build(), compat="torch_tb_profiler").recommendations
    assert "a larger batch fills them" in recommendations["advice"][0]


@pytest.mark.parametrize(
    ("name", "major", "minor", "types"),
    [
        ("Tesla P100", 6, 0, None),
        ("Tesla V100-SXM2-32GB", 7, 0, "autocast to float16 with a GradScaler"),
        ("Tesla T4", 7, 5, "autocast to float16 with a GradScaler"),
        ("NVIDIA GeForce GTX 1660", 7, 5, None),
        ("NVIDIA A100", 8, 0, "autocast to bfloat16 or float16, or allow TF32"),
        ("NVIDIA B200", 10, 0, "autocast to bfloat16 or float16, or allow TF32"),
        ("AMD Instinct MI300X", 9, 4, "autocast to bfloat16 or float16"),
        ("AMD Instinct MI50", 9, 0, None),
        ("AMD Radeon RX 6900 XT", 10, 3, None),
        ("AMD Radeon RX 7900 XTX", 11, 0, "autocast to bfloat16 or float16"),
    ],
)
def test_only_types_that_the_device_supports_are_advised(name: str, major: int, minor: int, types: str | None) -> None:
    """V100 and T4 have tensor cores only for float16; AMD has matrix cores from CDNA and RDNA 3 on."""
    call = "hipLaunchKernel" if name.startswith("AMD") else "cudaLaunchKernel"
    properties = [device(name=name, computeMajor=major, computeMinor=minor)]
    builder = multiplying("volta_sgemm_128x64_nn", call).header(deviceProperties=properties)
    sentences = holotrace.advice(builder.build()).recommendations.filter(rule="mixed_precision")["advice"].to_list()
    assert [sentence.rsplit(": ", 1)[1] for sentence in sentences] == ([] if types is None else [types])


def test_different_devices_get_a_type_that_both_support() -> None:
    """A job on a V100 and an A100 gets the advice to use float16, which both support."""
    properties = [device(0), device(1, computeMajor=7)]
    builder = multiplying("volta_sgemm_128x64_nn").header(deviceProperties=properties)
    builder.operator("aten::mm", start_us=90, duration_us=5, thread=2)
    builder.kernel("volta_sgemm_128x64_nn", start_us=95, duration_us=4, device=1, launch_us=91, thread=2)
    (sentence,) = holotrace.advice(builder.build()).recommendations.filter(rule="mixed_precision")["advice"]
    assert sentence.endswith("autocast to float16 with a GradScaler")


def multiplying(kernel: str, call: str = "cudaLaunchKernel") -> TraceBuilder:
    """Return a step in which aten::mm launches a kernel of 60 µs, and aten::relu one of 20 µs."""
    builder = TraceBuilder().header(deviceProperties=[device()]).step(1, 0, 100)
    builder.operator("aten::mm", start_us=0, duration_us=8).operator("aten::relu", start_us=10, duration_us=8)
    builder.kernel(kernel, start_us=10, duration_us=60, launch_us=1, launch_name=call)
    return builder.kernel("vectorized_elementwise_kernel", start_us=70, duration_us=20, launch_us=11, launch_name=call)


def test_matrix_products_without_tensor_cores() -> None:
    """Matrix products without tensor cores take 60 of 80 µs of kernel time and are worth at most 60 µs."""
    advice = holotrace.advice(multiplying("volta_sgemm_128x64_nn").build())
    assert advice.evidence.select("rule", "value_fraction", "worth_ns").rows() == [("mixed_precision", 0.75, 60_000.0)]
    assert advice.events.select("event", "call_count", "total_ns").rows() == [("aten::mm", 1, 60_000)]


def test_kernels_that_use_or_may_use_tensor_cores() -> None:
    """The advice on mixed precision is absent if a kernel uses tensor cores, or if its name leaves that open."""
    assert rules(multiplying("sm90_xmma_gemm_bf16bf16_bf16f32")) == []
    assert rules(multiplying("triton_tem_fused_mm_0")) == []
    assert rules(multiplying("volta_sgemm_128x64_nn").kernel("mystery", start_us=90, duration_us=9, launch_us=2)) == []


def test_an_unknown_kernel_of_an_operator_without_products_is_ignored() -> None:
    """An unknown kernel of aten::relu does not affect the advice on matrix products."""
    builder = multiplying("volta_sgemm_128x64_nn").kernel("mystery", start_us=90, duration_us=9, launch_us=12)
    assert rules(builder) == ["mixed_precision"]


def filling(total: int, kind: int = 1) -> TraceBuilder:
    """Return a step that allocates `total` bytes, of the device's 1000 or on the host."""
    args = {"Addr": 1, "Bytes": total, "Total Allocated": total, "Device Type": kind, "Device Id": 0 if kind else -1}
    builder = TraceBuilder().header(deviceProperties=[device()]).step(1, 0, 100)
    builder.operator("aten::empty", start_us=10, duration_us=10)
    builder.event(ph="i", cat="cpu_instant_event", name="[memory]", pid=100, tid=1, ts=15, s="t", args=args)
    return builder.kernel("relu", start_us=20, duration_us=80, launch_us=12)


def test_a_device_that_is_nearly_full() -> None:
    """Allocating 950 of 1000 bytes exceeds the limit of 90 %; 900 do not."""
    advice = holotrace.advice(filling(950).build())
    assert advice.evidence.select("rule", "device", "value_fraction").rows() == [("memory_limit", 0, 0.95)]
    assert advice.events["bytes"].to_list() == [950]
    assert rules(filling(900)) == []


def test_host_memory_is_not_compared_with_device_memory() -> None:
    """5000 bytes on the host give no advice on GPU memory, except with `compat`, like the plugin."""
    assert rules(filling(5000, kind=0)) == []
    assert rules(filling(5000, kind=0), compat="torch_tb_profiler") == ["memory_limit"]


def test_a_rule_without_input_names_the_option_to_record_it() -> None:
    """Without kernels and memory events, findings name the unchecked rules and the profiler option to set."""
    trace = TraceBuilder().operator("aten::a", start_us=0, duration_us=5).build()
    no_kernels, no_memory = holotrace.advice(trace).findings
    assert no_kernels == (
        "rank 0: cannot check low_utilization and mixed_precision: no kernels were recorded; record with "
        "ProfilerActivity.CUDA"
    )
    assert no_memory == (
        "rank 0: cannot check memory_limit: no memory events were recorded; record with profile_memory=True"
    )


def test_advice_is_sorted_by_possible_savings() -> None:
    """Advice is sorted by the time it may save; rules with unknown savings come last."""
    builder = loading(40).header(deviceProperties=[device(0), device(1)])
    for number in (0, 1):
        builder.kernel("relu", start_us=60, duration_us=10, device=number, launch_us=52)
    builder.annotation("DataParallel.forward", start_us=50, duration_us=30, thread=2)
    assert rules(builder) == ["low_utilization", "data_loading", "data_parallel"]


@pytest.mark.parametrize("name", EACH_CASE)
def test_compat_gives_the_plugins_rules_with_its_numbers(name: str, goldens: Path, real_traces: Path) -> None:
    """With `compat`, the rules, percentages and GPUs are those of the plugin."""
    one = case(name, goldens, real_traces)
    (answer,) = [(one.view("overview") or {}).get("recommendations") or "<ul></ul>"]
    theirs = {
        rule: re.sub(r"<[^>]*>", "", sentence)
        for sentence in re.findall(r"<li>(.*?)</li>", answer)
        for rule, words in PLUGINS_WORDS.items()
        if words in sentence
    }
    evidence = holotrace.advice(one.trace, compat="torch_tb_profiler").evidence
    if name.endswith("gpu_only_trace"):  # the plugin's step lasts -2**64 + 1 µs, so no kernel is in it
        assert (list(theirs), evidence.height) == (["low_utilization"], 0)
        return
    assert set(evidence["rule"]) == set(theirs)
    for rule, sentence in theirs.items():
        rows = evidence.filter(pl.col("rule") == rule)
        if rule == "low_utilization":
            assert rows["device"].to_list() == [int(number) for number in re.findall(r"\d+", sentence)]
        elif rule not in {"data_parallel", "ddp_backend"}:
            decimals = 0 if rule == "mixed_precision" else 1
            assert f"{100 * rows['value_fraction'].item():.{decimals}f}%" in sentence
