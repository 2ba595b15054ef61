"""Tests of diagnosis on simulated jobs: each rule finds its mistake, and healthy jobs have no findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

import holotrace
from holotrace.testing.mistakes.devices import A100, V100
from holotrace.testing.mistakes.jobs import TrainingJob
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import PlantedOptions
from matrices import slow_except

BUSY = JobOptions(layers=2, hidden=1024, heads=8, tokens=4096, sequence=512, vocabulary=8_000, steps=4, autocast=False)
"""The device limits the step, which takes 4 ms."""

LIGHT = replace(BUSY, layers=4, hidden=512, tokens=2048, host_factor=0.7)
"""The host is only slightly ahead of the device."""

IMAGES = replace(BUSY, model="images", hidden=128, tokens=64, layers=3, vocabulary=1000)
RANKS = replace(BUSY, ranks=2, steps=3)
EXPERTS = replace(RANKS, ranks=4, model="experts", parallelism="experts", layers=1, link_gb_per_s=300)
PAIRS = replace(
    BUSY, ranks=8, ranks_per_host=2, parallelism="tensor", layers=1, steps=3, link_gb_per_s=30, stacks=False
)
VOLTA = replace(BUSY, gpu=V100, precision="float16")
ON_CPU = replace(BUSY, on_cpu=True, precision="float32", hidden=256, tokens=256, sequence=256)
ACCUMULATING = replace(RANKS, microbatches=3)
MS = 1_000_000

MISTAKES = {
    "data_loading": BUSY.with_mistake("data_loading", 12 * MS),
    "garbage_collection": BUSY.with_mistake("garbage_collection", 12 * MS),
    "slow_function": BUSY.with_mistake("slow_function", 12 * MS),
    "unexplained_idle": replace(BUSY, stacks=False).with_mistake("unexplained_idle", 12 * MS),
    "recompilation": BUSY.with_mistake("recompilation", 12 * MS),
    "scalar_read": LIGHT.with_mistake("scalar_read", 4),
    "data_dependent_shape": LIGHT.with_mistake("data_dependent_shape", 4),
    "blocking_copy": LIGHT.with_mistake("blocking_copy", 4),
    "device_synchronisation": LIGHT.with_mistake("device_synchronisation", 4),
    "stream_synchronisation": LIGHT.with_mistake("stream_synchronisation", 4),
    "pageable_copy": IMAGES.with_mistake("pageable_copy", 20 << 20),
    "copies_in_turn": IMAGES.with_mistake("copies_in_turn", 50 << 20),
    "optimizer_not_fused": BUSY.with_mistake("optimizer_not_fused"),
    "operator_loops": ON_CPU.with_mistake("operator_loops", 3_000),
    "host_copies": ON_CPU.with_mistake("host_copies", 12 * MS),
    "double_precision": replace(ON_CPU, precision="float64"),
    "first_calls": replace(BUSY, annotated=False).with_mistake("first_calls", 2 * MS),
    "data_parallel": BUSY.with_mistake("data_parallel"),
    "graph_breaks": replace(LIGHT, layers=6, compiled=True, stacks=False).with_mistake("graph_breaks", MS // 2),
    "launch_bound": replace(LIGHT, stacks=False, host_factor=2),
    "slow_recording": replace(LIGHT, host_factor=0.4),
    "python_overhead": replace(LIGHT, stacks=False).with_mistake("python_overhead", 40_000),
    "unaligned_products": replace(BUSY, vocabulary=50_257),
    "tf32_off": replace(BUSY, precision="float32"),
    "mixed_precision_off": replace(BUSY, gpu=A100, precision="tf32"),
    "float8_possible": replace(BUSY, hidden=4096, heads=32, tokens=8192),
    "ordinary_cores": replace(VOLTA, mistakes={"ordinary_cores": 1}),
    "slow_products": BUSY.with_mistake("slow_products", 3),
    "unfused_attention": BUSY.with_mistake("unfused_attention"),
    "unfused_chain": BUSY.with_mistake("unfused_chain", 16),
    "casts": BUSY.with_mistake("casts", 8),
    "transposes": BUSY.with_mistake("transposes", 8),
    "channels_first": IMAGES.with_mistake("channels_first"),
    "slow_memory_kernels": BUSY.with_mistake("slow_memory_kernels", 0.08),
    "recomputation": BUSY.with_mistake("recomputation"),
    "small_grid": BUSY.with_mistake("small_grid", MS),
    "streams_in_turn": BUSY.with_mistake("streams_in_turn", MS),
    "tiny_kernels": BUSY.with_mistake("tiny_kernels", 1000),
    "empties_cache": BUSY.with_mistake("empties_cache"),
    "allocator_retries": BUSY.with_mistake("allocator_retries", 0.5),
    "memory_limit": replace(BUSY, memory=True, memory_before=78_000_000_000),
    "fragmentation": replace(BUSY, memory=True, memory_before=45 << 30, unused_reserved=25 << 30),
    "late_starts": BUSY.with_mistake("late_starts", 500_000),
    "host_falls_behind": BUSY.with_mistake("host_falls_behind", 25 * MS),
    "profiler_overhead": BUSY.with_mistake("profiler_overhead", 12 * MS),
    "jitter": replace(RANKS, ranks=4, reads_loss=True).with_mistake("jitter", 3 * MS),
    "late_rank": RANKS.with_mistake("slow_function", 8 * MS, rank=1),
    "slow_link": PAIRS.with_mistake("slow_link", 2, rank=4),
    "uneven_experts": EXPERTS.with_mistake("uneven_experts", 1, rank=2),
    "uneven_work": replace(RANKS, ranks=4, steps=5).with_mistake("uneven_work", 0.4),
    "host_collectives": RANKS.with_mistake("host_collectives", 3),
    "repeated_reductions": replace(ACCUMULATING, link_gb_per_s=25).with_mistake("repeated_reductions"),
    "small_collectives": RANKS.with_mistake("small_collectives", 100),
    "exposed_communication": replace(RANKS, link_gb_per_s=10),
    "exposed_on_one_rank": replace(RANKS, link_gb_per_s=10),
}
"""For each rule, a job with the mistake that the rule looks for."""

HEALTHY = {
    "busy": BUSY,
    "without_stacks": replace(BUSY, stacks=False),
    "without_shapes": replace(BUSY, shapes=False),
    "memory": replace(BUSY, memory=True),
    "ampere": replace(BUSY, gpu=A100),
    "volta": VOLTA,
    "aligned": replace(BUSY, vocabulary=16_384),
    "light": replace(LIGHT, stacks=False, host_factor=0.3),
    "compiled": replace(LIGHT, compiled=True, stacks=False, host_factor=0.3),
    "images": IMAGES,
    "prefetching": IMAGES.with_remedy("prefetched", 50 << 20),
    "parallel_branches": BUSY.with_remedy("parallel_branches", MS),
    "branches_without_room": BUSY.with_remedy("full_branches", MS),
    "good_kernel": BUSY.with_remedy("good_kernel", MS),
    "on_cpu": ON_CPU,
    "without_steps": replace(BUSY, annotated=False),
    "accumulating": replace(ACCUMULATING, link_gb_per_s=600),
    "ranks": replace(RANKS, link_gb_per_s=600),
    "experts": EXPERTS,
    "tensor_parallel": replace(PAIRS, ranks=4, link_gb_per_s=600),
}
"""Jobs without mistakes."""

LONG = {
    *(
        "jitter",
        "late_rank",
        "slow_link",
        "uneven_experts",
        "uneven_work",
        "small_collectives",
        "repeated_reductions",
        "host_collectives",
        "exposed_communication",
    ),
    *("accumulating", "ranks", "experts", "tensor_parallel"),
}
"""These jobs have several ranks and take the longest to simulate; other tests check their rules with smaller jobs."""


@pytest.mark.parametrize("rule", slow_except(MISTAKES, MISTAKES.keys() - LONG))
def test_each_rule_finds_its_mistake(rule, tmp_path):
    """For a simulated job with one mistake, the rule for it reports a finding that is not part of another finding."""
    assert rule in rules_of(MISTAKES[rule], tmp_path, only_first=rule == "exposed_on_one_rank")


def test_an_optimizer_on_the_host_that_is_not_fused_is_found(tmp_path):
    """If an optimizer on a CPU updates the tensors one by one because it is not fused, a finding reports it."""
    assert "optimizer_not_fused" in rules_of(ON_CPU.with_mistake("optimizer_not_fused"), tmp_path)


@pytest.mark.slow
def test_a_rank_that_only_begins_late_has_no_more_work_than_others(tmp_path):
    """One rank starts late and the others wait for it; all ranks do equal work, so this is jitter, not uneven work."""
    large = replace(RANKS, ranks=4, hidden=1536, tokens=8192, layers=3, steps=4, reads_loss=True, sync_events=True)
    found = rules_of(large.with_mistake("jitter", 3 * MS), tmp_path)
    assert "jitter" in found
    assert "uneven_work" not in found


@pytest.mark.slow
def test_few_microbatches_leave_a_bubble(tmp_path):
    """With four stages and four microbatches, the pipeline bubble is 3/7 of the step."""
    options = PlantedOptions(data=1, pipeline=4, microbatches=4, layer_ns=800_000, steps=3)
    findings = holotrace.diagnosis(holotrace.open_trace(PlantedJob(options).write(tmp_path))).per_finding
    assert findings["rule"].to_list() == ["pipeline_bubble"]
    assert findings["stake_fraction"][0] == pytest.approx(3 / 7, abs=0.05)


@pytest.mark.parametrize("name", slow_except(HEALTHY, HEALTHY.keys() - LONG))
def test_a_healthy_job_has_no_findings(name, tmp_path):
    """Jobs without mistakes have no findings, on any device and even if stacks or shapes were not recorded."""
    assert rules_of(HEALTHY[name], tmp_path) == []


def test_streams_that_hand_results_over_at_each_turn_are_not_in_turn_by_mistake(tmp_path):
    """Two streams take turns because each kernel needs the result of the previous kernel.

    No finding reports these necessary turns; the only finding is about the small grids of the kernels.
    """
    assert set(rules_of(BUSY.with_remedy("dependent_branches", MS), tmp_path)) == {"small_grid"}


def rules_of(options, folder, *, only_first=False):
    """Return the rule of each finding about a job, except findings that are part of another finding."""
    path = TrainingJob(options).write(folder)
    trace = holotrace.open_trace(path / "rank0.pt.trace.json.gz" if only_first else path)
    return [row["rule"] for row in holotrace.diagnosis(trace).per_finding.to_dicts() if row["part_of"] is None]
