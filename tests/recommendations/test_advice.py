"""What to try first: each rule on a trace built for it, and all of them on the plugin's answers."""

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
"""By which each of the plugin's sentences is known."""


def device(number: int = 0, **properties: object) -> dict[str, object]:
    """Return what a file says of a device."""
    return {"id": number, **GPU, **properties}


def rules(builder: TraceBuilder, **options: object) -> list[str]:
    """Return which rules apply."""
    return holotrace.advice(builder.build(), **options).recommendations["rule"].to_list()


def loading(waiting_us: int) -> TraceBuilder:
    """Return a step of 100 µs that waits so long for its data loader."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    return (
        TraceBuilder()
        .step(1, 0, 100)
        .annotation(name, start_us=10, duration_us=waiting_us)
        .operator("aten::relu", start_us=50, duration_us=20)
    )


def test_waiting_for_the_data_loader_is_told_with_its_numbers_and_events() -> None:
    """6 of 100 µs are more than 5 %; all 6 could be won."""
    found = holotrace.advice(loading(6).build())
    assert found.evidence.to_dicts() == [
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
    (recommendation,) = found.recommendations.to_dicts()
    assert recommendation["advice"].startswith("6.0 % of the mean step (6 µs) of rank 0 is spent waiting for the data")
    assert recommendation["worth_fraction"] == pytest.approx(0.06)
    assert recommendation["analysis"] == "step_time"
    (event,) = found.events.to_dicts()
    assert event["event"].startswith("enumerate(DataLoader)#")
    assert (event["call_count"], event["total_ns"], event["at_ns"]) == (1, 6_000, 10_000)


def test_the_limit_itself_is_allowed_and_can_be_moved() -> None:
    """5 % is no more than 5 %; with a limit of 4 % it is too much."""
    assert rules(loading(5)) == []
    assert rules(loading(5), thresholds=holotrace.Thresholds(loading=0.04)) == ["data_loading"]


def test_a_threshold_is_a_fraction() -> None:
    """Five per cent are 0.05."""
    with pytest.raises(InvalidOptionError, match=r"loading=5: a threshold is a fraction from 0 to 1"):
        holotrace.Thresholds(loading=5)


def wrapped(name: str, *devices: int) -> TraceBuilder:
    """Return a step of a wrapped model that keeps these devices busy."""
    builder = TraceBuilder().header(deviceProperties=[device(number) for number in devices])
    builder.step(1, 0, 100).annotation(name, start_us=1, duration_us=98)
    for number in devices:
        builder.kernel("relu", start_us=10, duration_us=80, device=number, launch_us=5)
    return builder


def test_data_parallel_on_two_devices_should_be_distributed() -> None:
    """On one device there is nothing to distribute."""
    assert "data_parallel" in rules(wrapped("DataParallel.forward", 0, 1))
    assert "data_parallel" not in rules(wrapped("DataParallel.forward", 0))


def ddp(collective: str, **properties: object) -> TraceBuilder:
    """Return a step of DDP whose host carries out or asks for a collective."""
    builder = TraceBuilder().header(deviceProperties=[device(**properties)])
    builder.step(1, 0, 100).annotation("DistributedDataParallel.forward", start_us=1, duration_us=98)
    return builder.annotation(collective, start_us=10, duration_us=8)


def test_ddp_over_gloo_on_gpus_should_take_nccl() -> None:
    """The device could; whoever takes NCCL, or no device, is left alone."""
    assert rules(ddp("gloo:all_reduce")) == ["ddp_backend"]
    assert rules(ddp("nccl:all_reduce")) == []
    assert rules(ddp("gloo:all_reduce", computeMajor=3, computeMinor=2)) == []


def test_a_capability_is_two_numbers() -> None:
    """3.10 is more than 3.5, though not as a decimal number."""
    assert rules(ddp("gloo:all_reduce", computeMajor=3, computeMinor=10)) == ["ddp_backend"]


def communicating(us: int, ranks: int = 1) -> TraceBuilder:
    """Return ranks with 100 µs of steps, computing for 60 and communicating for so long, the second for 2 µs."""
    builder = TraceBuilder()
    for rank in range(ranks):
        builder.rank(rank).step(1, 0, 100).operator("aten::relu", start_us=0, duration_us=9)
        builder.kernel("relu", start_us=10, duration_us=60, launch_us=1)
        builder.collective("allreduce", start_us=70, duration_us=us if rank == 0 else 2)
    return builder


def test_communication_that_nothing_hides_is_told() -> None:
    """12 of 100 µs are more than 10 %, and the collective is named."""
    found = holotrace.advice(communicating(12).build())
    assert found.recommendations["rule"].to_list() == ["communication"]
    assert found.evidence["value_fraction"].to_list() == [pytest.approx(0.12)]
    assert [event.split()[0] for event in found.events["event"]] == ["all_reduce"]
    assert "accumulate gradients" in found.recommendations["advice"][0]


def test_where_a_rank_is_late_that_comes_first_and_nothing_else_is_blamed() -> None:
    """Rank 0 waits 10 of 12 µs for rank 1: smaller gradients would win nothing."""
    found = holotrace.advice(communicating(12, ranks=2).build())
    assert found.recommendations["rule"].to_list() == ["late_rank", "communication"]
    first, second = found.recommendations["advice"]
    assert first == (
        "rank 1 is late: the others together wait 10 µs for it, 100.0 % of all waiting in its collectives: find what "
        "its host, its data or its device does longer than those of another rank, before anything else"
    )
    assert second == (
        "12.0 % of the mean step (12 µs) of rank 0 is communication that nothing hides, and 83.3 % of the time in "
        "collectives is waiting for other ranks, most of it where rank 1 is late: see to that first, and look again"
    )
    assert found.evidence.row(0, named=True) == {
        "rule": "late_rank",
        "rank": 1,
        "device": None,
        "value_fraction": 1.0,
        "measure": "of all waiting in its collectives",
        "limit_fraction": 0.5,
        "worth_ns": 10_000.0,
    }


def test_a_late_rank_comes_before_what_is_worth_more() -> None:
    """Half of the step goes into loading, a tenth into waiting."""
    builder = communicating(12, ranks=2)
    builder.rank(0).annotation("enumerate(DataLoader)#_It.__next__", start_us=82, duration_us=18)
    assert rules(builder)[0] == "late_rank"


def test_a_rank_that_may_pass_on_a_delay_is_not_called_late() -> None:
    """Rank 1 receives for 50 µs before it comes to the all-reduce as the last one."""
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
    assert not any("rank 1 is late" in each for each in advice)


def test_who_mostly_waits_for_several_ranks_should_balance_them() -> None:
    """Each of four ranks is last once, and all wait for the others."""
    builder = TraceBuilder()
    for rank in range(4):
        builder.rank(rank).step(1, 0, 100).operator("aten::relu", start_us=0, duration_us=9)
        for place in range(4):
            late = 15 if place == rank else 0
            builder.collective(start_us=20 * place + late, duration_us=19 - late, group_ranks=(0, 1, 2, 3))
    (sentence,) = holotrace.advice(builder.build()).recommendations.filter(rule="communication")["advice"]
    assert "of the time in collectives is waiting for other ranks: balance them" in sentence


def test_devices_below_half_are_listed_with_what_else_ran() -> None:
    """Device 1 runs kernels in 30 of 100 µs; at most the other 70 can be won."""
    builder = wrapped("model", 0).kernel("relu", start_us=10, duration_us=30, device=1, launch_us=6)
    found = holotrace.advice(builder.build())
    assert found.evidence.select("rule", "device", "value_fraction", "worth_ns").rows() == [
        ("low_utilization", 1, pytest.approx(0.3), pytest.approx(70_000))
    ]
    assert found.recommendations["advice"][0].startswith("GPU 1 (rank 0) runs kernels in less than 50.0 %")


def idling(*gaps: tuple[int, int]) -> TraceBuilder:
    """Return a step of 100 µs with kernels of 5 µs, each the first time after the last and launched so much before."""
    builder = TraceBuilder().step(1, 0, 100).operator("a", start_us=0, duration_us=5)
    for place, (_, since_launch) in enumerate(((0, 0), *gaps)):
        start = 2 + sum(5 + length for length, _ in gaps[:place])
        builder.kernel("relu", start_us=start, duration_us=5, launch_us=start - since_launch)
    return builder


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        (((40, 1), (40, 1)), "the rest is mostly waiting for the host"),
        (((20, 1),), "the rest is mostly waiting for the host"),  # 68 of 90 idle µs are after the last kernel
        (tuple([(13, 12)] * 5), "the rest is mostly short gaps between kernels"),
        (((84, 80),), "for most of the rest work was launched and held up"),
        (((28, 27), (25, 1), (31, 31)), "a larger batch fills them, if the host is not what they wait for"),
    ],
)
def test_what_fills_a_device_depends_on_what_it_waits_for(gaps: tuple[tuple[int, int], ...], said: str) -> None:
    """A larger batch gives short kernels more to do; it does nothing for a host that is too slow."""
    (sentence,) = holotrace.advice(idling(*gaps).build()).recommendations["advice"]
    assert said in sentence
    assert ("larger batch" in sentence) == (said.startswith("a larger") or "short gaps" in said)


def test_devices_that_wait_for_the_loader_are_not_filled_by_a_larger_batch() -> None:
    """It loads for 70 of 100 µs; the gap between the two kernels is the host's, and that is why."""
    builder = idling((70, 1)).annotation("enumerate(DataLoader)#_It.__next__", start_us=8, duration_us=70)
    found = holotrace.advice(builder.build()).recommendations
    (sentence,) = found.filter(rule="low_utilization")["advice"]
    assert "the rest is mostly waiting for the data loader" in sentence


def test_the_plugin_knew_no_causes() -> None:
    """Its sentence stays for its users."""
    found = holotrace.advice(idling((40, 1), (40, 1)).build(), compat="torch_tb_profiler").recommendations
    assert "a larger batch fills them" in found["advice"][0]


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
def test_only_types_that_the_device_knows_are_advised(name: str, major: int, minor: int, types: str | None) -> None:
    """V100 and T4 have tensor cores for float16 alone; matrix cores of AMD begin with CDNA and RDNA 3."""
    call = "hipLaunchKernel" if name.startswith("AMD") else "cudaLaunchKernel"
    properties = [device(name=name, computeMajor=major, computeMinor=minor)]
    builder = multiplying("volta_sgemm_128x64_nn", call).header(deviceProperties=properties)
    found = holotrace.advice(builder.build()).recommendations.filter(rule="mixed_precision")["advice"].to_list()
    assert [sentence.rsplit(": ", 1)[1] for sentence in found] == ([] if types is None else [types])


def test_devices_of_two_kinds_get_what_both_know() -> None:
    """A V100 beside an A100: float16."""
    properties = [device(0), device(1, computeMajor=7)]
    builder = multiplying("volta_sgemm_128x64_nn").header(deviceProperties=properties)
    builder.operator("aten::mm", start_us=90, duration_us=5, thread=2)
    builder.kernel("volta_sgemm_128x64_nn", start_us=95, duration_us=4, device=1, launch_us=91, thread=2)
    (sentence,) = holotrace.advice(builder.build()).recommendations.filter(rule="mixed_precision")["advice"]
    assert sentence.endswith("autocast to float16 with a GradScaler")


def multiplying(kernel: str, call: str = "cudaLaunchKernel") -> TraceBuilder:
    """Return a step in which aten::mm launches a kernel of 60 µs, aten::relu one of 20."""
    builder = TraceBuilder().header(deviceProperties=[device()]).step(1, 0, 100)
    builder.operator("aten::mm", start_us=0, duration_us=8).operator("aten::relu", start_us=10, duration_us=8)
    builder.kernel(kernel, start_us=10, duration_us=60, launch_us=1, launch_name=call)
    return builder.kernel("vectorized_elementwise_kernel", start_us=70, duration_us=20, launch_us=11, launch_name=call)


def test_matrices_without_tensor_cores_should_get_them() -> None:
    """60 of 80 µs of kernels, which is at most what a step can win."""
    found = holotrace.advice(multiplying("volta_sgemm_128x64_nn").build())
    assert found.evidence.select("rule", "value_fraction", "worth_ns").rows() == [("mixed_precision", 0.75, 60_000.0)]
    assert found.events.select("event", "call_count", "total_ns").rows() == [("aten::mm", 1, 60_000)]


def test_a_kernel_that_may_use_tensor_cores_is_no_reason() -> None:
    """One that does use them, and one whose name does not tell."""
    assert rules(multiplying("sm90_xmma_gemm_bf16bf16_bf16f32")) == []
    assert rules(multiplying("triton_tem_fused_mm_0")) == []
    assert rules(multiplying("volta_sgemm_128x64_nn").kernel("mystery", start_us=90, duration_us=9, launch_us=2)) == []


def test_an_unknown_kernel_of_an_operator_without_products_changes_nothing() -> None:
    """What aten::relu launches is not asked about."""
    builder = multiplying("volta_sgemm_128x64_nn").kernel("mystery", start_us=90, duration_us=9, launch_us=12)
    assert rules(builder) == ["mixed_precision"]


def filling(total: int, kind: int = 1) -> TraceBuilder:
    """Return a step that allocates so many of the 1000 bytes of a device, or of the host."""
    args = {"Addr": 1, "Bytes": total, "Total Allocated": total, "Device Type": kind, "Device Id": 0 if kind else -1}
    builder = TraceBuilder().header(deviceProperties=[device()]).step(1, 0, 100)
    builder.operator("aten::empty", start_us=10, duration_us=10)
    builder.event(ph="i", cat="cpu_instant_event", name="[memory]", pid=100, tid=1, ts=15, s="t", args=args)
    return builder.kernel("relu", start_us=20, duration_us=80, launch_us=12)


def test_a_device_that_is_nearly_full_is_told_with_who_filled_it() -> None:
    """950 of 1000 bytes."""
    found = holotrace.advice(filling(950).build())
    assert found.evidence.select("rule", "device", "value_fraction").rows() == [("memory_limit", 0, 0.95)]
    assert found.events["bytes"].to_list() == [950]
    assert rules(filling(900)) == []


def test_the_hosts_memory_is_not_measured_by_the_devices() -> None:
    """The plugin took the CPU's 5000 bytes for those of the last GPU."""
    assert rules(filling(5000, kind=0)) == []
    assert rules(filling(5000, kind=0), compat="torch_tb_profiler") == ["memory_limit"]


def test_what_could_not_be_asked_names_the_option() -> None:
    """Operators alone: no kernels, no memory."""
    trace = TraceBuilder().operator("aten::a", start_us=0, duration_us=5).build()
    no_kernels, no_memory = holotrace.advice(trace).findings
    assert no_kernels == (
        "rank 0: low_utilization and mixed_precision could not be asked: no kernels were recorded: record with "
        "ProfilerActivity.CUDA"
    )
    assert no_memory == (
        "rank 0: memory_limit could not be asked: no memory events were recorded: record with profile_memory=True"
    )


def test_most_to_win_comes_first() -> None:
    """What nothing can be said about comes last."""
    builder = loading(40).header(deviceProperties=[device(0), device(1)])
    for number in (0, 1):
        builder.kernel("relu", start_us=60, duration_us=10, device=number, launch_us=52)
    builder.annotation("DataParallel.forward", start_us=50, duration_us=30, thread=2)
    assert rules(builder) == ["low_utilization", "data_loading", "data_parallel"]


@pytest.mark.parametrize("name", EACH_CASE)
def test_compat_gives_the_plugins_rules_with_its_numbers(name: str, goldens: Path, real_traces: Path) -> None:
    """Which rules apply, per cent of the step or of the kernels, and the GPUs named."""
    one = case(name, goldens, real_traces)
    (answer,) = [(one.view("overview") or {}).get("recommendations") or "<ul></ul>"]
    theirs = {
        rule: re.sub(r"<[^>]*>", "", sentence)
        for sentence in re.findall(r"<li>(.*?)</li>", answer)
        for rule, words in PLUGINS_WORDS.items()
        if words in sentence
    }
    found = holotrace.advice(one.trace, compat="torch_tb_profiler").evidence
    if name.endswith("gpu_only_trace"):  # its step lasted -2**64 + 1 µs there, so nothing ran in it
        assert (list(theirs), found.height) == (["low_utilization"], 0)
        return
    assert set(found["rule"]) == set(theirs)
    for rule, sentence in theirs.items():
        rows = found.filter(pl.col("rule") == rule)
        if rule == "low_utilization":
            assert rows["device"].to_list() == [int(number) for number in re.findall(r"\d+", sentence)]
        elif rule not in {"data_parallel", "ddp_backend"}:
            decimals = 0 if rule == "mixed_precision" else 1
            assert f"{100 * rows['value_fraction'].item():.{decimals}f}%" in sentence
