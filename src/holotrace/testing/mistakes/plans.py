"""Draw random pairs of jobs: one with a mistake, and the same job without it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from holotrace.testing.mistakes.devices import A100, H100, V100
from holotrace.testing.mistakes.jobs import step_ns_of
from holotrace.testing.mistakes.options import JobOptions

_DRAWN_SHARES = (0.12, 0.18, 0.3)
"""The minimum cost of a planted mistake, as a fraction of the healthy step, is drawn from these numbers."""

_LEAST_SHARE = 0.06
"""The minimum cost of planted mistakes that can cost only little, as a fraction of the healthy step."""


@dataclass(frozen=True)
class Pair:
    """A job with a mistake, and its healthy twin.

    rule     the rule that describes the mistake
    planted  the job with the mistake
    healthy  the job without the mistake
    """

    rule: str
    planted: JobOptions
    healthy: JobOptions

    @property
    def cost_ns(self) -> float:
        """The cost of the mistake per step: the step time of the planted job minus the step time of the healthy job."""
        return step_ns_of(self.planted) - step_ns_of(self.healthy)


_Plant = Callable[[str, JobOptions, random.Random], Pair]
"""Takes a rule, a job and a random generator; returns the job with and without the mistake that the rule describes."""


def drawn_pair(rule: str, seed: int) -> Pair:
    """Return a random job with the mistake that a rule describes, and the same job without this mistake."""
    dice = random.Random(f"{rule} {seed}")
    return _PAIRS[rule](rule, replace(_drawn_job(dice), seed=seed), dice)


def drawn_healthy(seed: int) -> JobOptions:
    """Return a random job without mistakes."""
    dice = random.Random(f"healthy {seed}")
    return replace(dice.choice(_HEALTHY)(_drawn_job(dice), dice), seed=seed)


def rules() -> tuple[str, ...]:
    """Return the rules whose mistakes can be planted."""
    return tuple(_PAIRS)


def _drawn_job(dice: random.Random) -> JobOptions:
    """Draw a transformer on one device, large enough to keep the device busy."""
    gpu = dice.choice((H100, H100, A100, V100))
    tokens = dice.choice((4096, 8192)) if gpu is not V100 else 2048
    return JobOptions(
        gpu=gpu,
        precision="float16" if gpu is V100 else "bfloat16",
        autocast=dice.random() < 1 / 2,
        layers=dice.choice((3, 4, 6)),
        hidden=dice.choice((1536, 2048, 2560)) if gpu is not V100 else 1024,
        heads=16,
        tokens=tokens,
        sequence=dice.choice((512, 1024)),
        vocabulary=dice.choice((16_000, 32_000, 50_304)),
        steps=dice.choice((4, 5, 6)),
        stacks=dice.random() < 3 / 4,
        memory=dice.random() < 1 / 3,
        sync_events=dice.random() < 1 / 4,
        host_factor=dice.uniform(0.8, 1.2),
    )


def _small(job: JobOptions, dice: random.Random) -> JobOptions:
    """Return a small job in which host and device are about equally busy, so every wait of the host delays the step."""
    return replace(
        job, hidden=dice.choice((768, 1024)), tokens=2048, sequence=512, vocabulary=16_000, layers=8, autocast=False
    )


def _ranks(job: JobOptions, dice: random.Random) -> JobOptions:
    return replace(job, ranks=dice.choice((2, 4)), layers=3, steps=4, memory=False)


def _first_costly(rule: str, jobs: Iterable[tuple[JobOptions, JobOptions]], share: float) -> Pair:
    """Return the first pair whose planted mistake costs at least the fraction `share` of the healthy job's step."""
    for planted, healthy in jobs:
        if step_ns_of(planted) >= (1 + share) * step_ns_of(healthy):
            return Pair(rule, planted, healthy)
    message = f"in all jobs tried, {rule} costs less than {share:.0%} of the healthy job's step"
    raise AssertionError(message)


def _lasting(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Plant longer and longer delays of the host until a delay costs a randomly drawn fraction of the step.

    While the host is far ahead of the device, small delays do not make the step longer.
    """
    job = replace(job, reads_loss=dice.random() < 1 / 2, stacks=True)
    step_ns, share = step_ns_of(job), dice.choice(_DRAWN_SHARES)
    amounts = [share * step_ns * 1.5**power for power in range(16)]
    return _first_costly(rule, ((job.with_mistake(rule, amount), job) for amount in amounts), share)


def _unrecorded(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    pair = _lasting(rule, job, dice)
    return Pair(rule, replace(pair.planted, stacks=False), replace(pair.healthy, stacks=False))


def _waiting(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Make the host wait for the device after some blocks."""
    job = replace(_small(job, dice), gpu=H100, precision="bfloat16", reads_loss=False)
    amounts = (3, 4, 6, 8)
    return _first_costly(rule, ((job.with_mistake(rule, amount), job) for amount in amounts), _LEAST_SHARE)


def _counted(*amounts: float, shares: tuple[float, ...] = _DRAWN_SHARES) -> _Plant:
    """Plant increasing amounts of a mistake until it costs a certain fraction of the step, drawn from `shares`."""

    def plant(rule: str, job: JobOptions, dice: random.Random) -> Pair:
        return _first_costly(rule, ((job.with_mistake(rule, amount), job) for amount in amounts), dice.choice(shares))

    return plant


def _once(rule: str, job: JobOptions, _: random.Random) -> Pair:
    """Plant a mistake whose size cannot be chosen.

    If the mistake costs too little, use a smaller job, in which it costs a larger fraction of the step.
    """
    fewer_tokens = replace(job, tokens=job.tokens // 2, vocabulary=8_000)
    narrower = replace(fewer_tokens, hidden=job.hidden // 2)
    smaller = (job, replace(job, hidden=job.hidden // 2), fewer_tokens, narrower)
    return _first_costly(rule, ((each.with_mistake(rule), each) for each in smaller), _LEAST_SHARE)


def _images(job: JobOptions, dice: random.Random) -> JobOptions:
    gpu = dice.choice((H100, A100))
    width = dice.choice((128, 256))
    return replace(
        job,
        gpu=gpu,
        precision="bfloat16",
        model="images",
        hidden=width,
        tokens=64,
        layers=6,
        autocast=False,
        vocabulary=1000,
    )


def _copied(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Copy large batches from pageable memory, or copy them on the compute stream instead of prefetching them."""
    job = _images(job, dice)
    size = dice.choice((100, 200)) << 20
    healthy = job.with_remedy("prefetched", size)
    if rule == "pageable_copy":
        healthy = replace(job, mistakes={"copies_in_turn": size // 8})
        return Pair(rule, replace(job, mistakes={"pageable_copy": size // 8}), healthy)
    return Pair(rule, job.with_mistake(rule, size), healthy)


def _late(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(_ranks(job, dice), reads_loss=True, stacks=True)
    share = dice.choice(_DRAWN_SHARES)
    cause = dice.choice(("slow_function", "slow_device", "data_loading", "garbage_collection"))
    first = share if cause == "slow_device" else share * step_ns_of(job)
    rank = dice.randrange(job.ranks)
    jobs = ((job.with_mistake(cause, first * 1.3**power, rank=rank), job) for power in range(12))
    return _first_costly(rule, jobs, share)


def _exposed(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Reduce all gradients over a link so slow that the backward pass cannot hide the communication."""
    job = _ranks(job, dice)
    job = replace(job, ranks=2) if rule == "exposed_on_one_rank" else job
    jobs = ((replace(job, link_gb_per_s=speed), replace(job, link_gb_per_s=2000)) for speed in (100, 50, 25, 12, 6))
    return _first_costly(rule, jobs, dice.choice(_DRAWN_SHARES))


def _experts(job: JobOptions, dice: random.Random) -> JobOptions:
    return replace(
        _ranks(job, dice), ranks=4, model="experts", parallelism="experts", layers=3, autocast=False, link_gb_per_s=300
    )


def _uneven_experts(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = _experts(job, dice)
    rank = dice.randrange(job.ranks)
    return _first_costly(rule, ((job.with_mistake(rule, more, rank=rank), job) for more in (0.4, 0.7, 1.0, 1.5)), 0.1)


def _slow_link(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(job, ranks=8, ranks_per_host=2, parallelism="tensor", layers=2, steps=4, memory=False, sequence=512)
    job = replace(job, link_gb_per_s=40 if job.gpu is not V100 else 12, stacks=False)
    slow, first = dice.choice((0.8, 1.5, 3.0)), 2 * dice.randrange(4)
    return Pair(rule, job.with_mistake(rule, slow, rank=first), job)


def _uneven(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(_ranks(job, dice), reads_loss=True, ranks=4, steps=6)
    return _first_costly(rule, ((job.with_mistake(rule, amount), job) for amount in (0.15, 0.3, 0.5)), 0.1)


def _jittering(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(_ranks(job, dice), reads_loss=True, ranks=4, steps=6, stacks=True)
    step_ns = step_ns_of(job)
    return _first_costly(rule, ((job.with_mistake(rule, share * step_ns), job) for share in (0.2, 0.3, 0.5, 1.0)), 0.12)


def _first_steps(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Record a job from its beginning, without marked steps, so the recording includes the loading of each kernel."""
    job = replace(job, annotated=False)
    amounts = (1_200_000 * 1.5**power for power in range(12))
    return _first_costly(rule, ((job.with_mistake(rule, each), job) for each in amounts), dice.choice(_DRAWN_SHARES))


def _one_process(rule: str, job: JobOptions, _: random.Random) -> Pair:
    """Make one process use two devices; the healthy job has one process per device."""
    job = replace(job, layers=3, steps=4, memory=False)
    return Pair(rule, job.with_mistake(rule), replace(job, ranks=2))


def _through_hosts(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Reduce the gradients on the hosts and over the hosts' network; the healthy job reduces them on the devices."""
    job = _ranks(job, dice)
    jobs = ((job.with_mistake(rule, gb_per_s), job) for gb_per_s in (12, 6, 3, 1.5))
    return _first_costly(rule, jobs, dice.choice(_DRAWN_SHARES))


def _in_double(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Compute in float64 in a job without a GPU."""
    job = _on_cpu(job, dice)
    return Pair(rule, replace(job, precision="float64"), job)


def _anomalous(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Format the Python stack in each forward operator, as anomaly detection does, in a job with or without a GPU."""
    job = replace(_on_cpu(job, dice) if dice.random() < 1 / 2 else job, stacks=True)
    amounts = (10_000 * 2**power for power in range(10))
    return _first_costly(
        rule, ((job.with_mistake(rule, amount), job) for amount in amounts), dice.choice(_DRAWN_SHARES)
    )


def _validating(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """In a job without a GPU, end each step with a validation of one to three batches that computes no gradients."""
    job = replace(_on_cpu(job, dice), stacks=dice.random() < 1 / 2)
    return Pair(rule, job.with_mistake(rule, dice.choice((1, 2, 3))), job)


def _dense_gradients(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Train an embedding with dense gradients without a GPU; the gradients of the healthy job are sparse."""
    job = replace(_on_cpu(job, dice), shapes=True)
    tables = (10_000 * 2**power for power in range(8))
    pairs = ((job.with_mistake(rule, rows), job.with_remedy("sparse_gradients", rows)) for rows in tables)
    return _first_costly(rule, pairs, dice.choice(_DRAWN_SHARES))


def _backlog(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Make the host slower than the device, which has a backlog of launched work when the recording begins."""
    job = replace(job, stacks=True, reads_loss=False, memory=False)
    return Pair(rule, job.with_mistake(rule, dice.uniform(1.5, 2.5) * step_ns_of(job)), job)


def _many_collectives(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Reduce many small gradients one by one; the healthy job reduces them in one call."""
    job = replace(_ranks(job, dice), link_latency_ns=dice.choice((25_000, 40_000)))
    merged = job.with_mistake(rule, 1)
    return _first_costly(rule, ((job.with_mistake(rule, count), merged) for count in (50, 100, 200, 400)), 0.1)


def _launch_bound(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Run a small model on a slow CPU; in the healthy job, the CPU takes almost no time, as if it replayed CUDA graphs.

    The two jobs are compared without recording Python functions, because recording them slows the CPU down. If the CPU
    were slow only because of the recording, the job's mistake would be the recording, not a slow CPU.
    """
    job = replace(_small(job, dice), hidden=512, heads=8)
    has_stacks = dice.random() < 1 / 2
    slow, fast = dice.uniform(1.5, 2.5), 0.05
    faster = (replace(each, stacks=False) for each in (job, replace(job, gpu=H100, precision="bfloat16")))
    jobs = ((replace(each, host_factor=slow), replace(each, host_factor=fast)) for each in faster)
    pair = _first_costly(rule, jobs, 0.2)
    return Pair(rule, replace(pair.planted, stacks=has_stacks), replace(pair.healthy, stacks=has_stacks))


def _python_overhead(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(_small(job, dice), gpu=H100, precision="bfloat16", hidden=512, heads=8, stacks=True)
    return _first_costly(rule, ((job.with_mistake(rule, each), job) for each in (10_000, 20_000, 40_000)), 0.3)


def _kernel(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Plant a slow user-written kernel; in the healthy job, the kernel takes a third of the time."""
    step_ns = step_ns_of(job)
    slow_ns = dice.choice(_DRAWN_SHARES) * 1.4 * step_ns / job.layers
    return Pair(rule, job.with_mistake(rule, slow_ns), job.with_remedy("good_kernel", slow_ns / 3))


def _converted(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Convert activations back and forth; the healthy job has no conversion kernels, not even those of autocast."""
    planted = (job.with_mistake(rule, count) for count in (2, 4, 8, 12))
    return _first_costly(
        rule, ((each, each.with_remedy("fused_casts")) for each in planted), dice.choice(_DRAWN_SHARES)
    )


def _strided(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Multiply transposed tensors; in the healthy job, the same kernel reads contiguous tensors."""
    contiguous = job.with_remedy("contiguous", 1)
    jobs = ((job.with_mistake(rule, share), contiguous) for share in (0.2, 0.1, 0.05, 0.03, 0.02))
    return _first_costly(rule, jobs, dice.choice(_DRAWN_SHARES))


def _in_turn(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Make one stream wait for another stream; in the healthy job, both streams compute at the same time."""
    branch_ns = dice.choice(_DRAWN_SHARES) * 1.2 * step_ns_of(job) / job.layers
    return Pair(rule, job.with_mistake(rule, branch_ns), job.with_remedy("parallel_branches", branch_ns))


def _with_branches(job: JobOptions, dice: random.Random) -> JobOptions:
    """Add two branches that would not finish earlier if they overlapped more.

    The branches already overlap on two streams, or each branch fills the device, or they depend on each other.
    """
    kind = dice.choice(("parallel_branches", "full_branches", "dependent_branches"))
    chain_ns = 0.15 * step_ns_of(job) / job.layers
    return job.with_remedy(kind, chain_ns if kind == "dependent_branches" else 300_000)


def _slow_recording(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Record the Python functions of a job whose host would keep up with the device without this recording."""
    job = replace(_small(job, dice), gpu=H100, precision="bfloat16", stacks=True)
    smaller = (replace(job, hidden=hidden, heads=8, host_factor=1) for hidden in (768, 640, 512, 384, 256))
    return _first_costly(rule, ((each, replace(each, stacks=False)) for each in smaller), 0.18)


def _tiny(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Replay CUDA graphs of very short kernels."""
    return _first_costly(
        rule, ((job.with_mistake(rule, count), job) for count in (1000, 2000, 4000)), dice.choice((0.4, 0.6))
    )


def _broken(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(_small(job, dice), hidden=512, heads=8, compiled=True, stacks=dice.random() < 1 / 2, host_factor=0.4)
    return _first_costly(
        rule,
        ((job.with_mistake(rule, each), job) for each in (60_000, 120_000, 250_000, 500_000, 1_000_000, 2_000_000)),
        0.15,
    )


def _without_shapes(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    gpu = dice.choice((H100, A100))
    job = replace(job, gpu=gpu, shapes=False, autocast=False)
    return Pair(rule, replace(job, precision="float32"), replace(job, precision="bfloat16", autocast=True))


def _on_cpu(job: JobOptions, dice: random.Random) -> JobOptions:
    """Return a job that computes on the host: a small model in float32."""
    small = replace(job, on_cpu=True, gpu=H100, precision="float32", autocast=False, memory=False, sync_events=False)
    return replace(small, hidden=dice.choice((256, 512)), heads=8, tokens=512, sequence=256, vocabulary=8_000)


def _looping(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Read a tensor element by element in a job without a GPU."""
    job = _on_cpu(job, dice)
    counts = (100, 300, 1_000, 3_000, 10_000, 30_000)
    return _first_costly(rule, ((job.with_mistake(rule, count), job) for count in counts), dice.choice(_DRAWN_SHARES))


def _copying(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Copy a tensor twice in a job without a GPU."""
    job = _on_cpu(job, dice)
    return Pair(rule, job.with_mistake(rule, dice.choice((0.15, 0.3, 0.6)) * step_ns_of(job)), job)


def _updating(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Update the weights one tensor at a time, on a device or on the host."""
    if dice.random() < 1 / 3:
        job = replace(_on_cpu(job, dice), tokens=256)
        return Pair(rule, job.with_mistake(rule), job)
    return _once(rule, job, dice)


def _accumulating(job: JobOptions, dice: random.Random) -> JobOptions:
    """Return a job that accumulates gradients, and reduces them once per step."""
    return replace(_ranks(job, dice), microbatches=dice.choice((2, 3, 4)))


def _forgetful(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    """Reduce the gradients of each microbatch over a link so slow that computation cannot hide the communication."""
    job = _accumulating(job, dice)
    slower = (replace(job, link_gb_per_s=speed) for speed in (100, 50, 25, 12, 6))
    return _first_costly(rule, ((each.with_mistake(rule), each) for each in slower), dice.choice(_DRAWN_SHARES))


def _vocabulary(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(job, gpu=dice.choice((H100, A100)), precision="bfloat16", layers=3, vocabulary=50_304)
    return Pair(rule, job.with_mistake(rule, dice.choice((-47, -1, 3, 11))), job)


def _precision(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    gpu = dice.choice((H100, A100, V100)) if rule == "mixed_precision_off" else dice.choice((H100, A100))
    job = replace(job, gpu=gpu, autocast=False, tokens=4096, hidden=1024, vocabulary=16_000)
    slow, fast = {"tf32_off": ("float32", "tf32"), "mixed_precision_off": ("tf32", "bfloat16")}[rule]
    if gpu is V100:
        slow, fast = "float32", "float16"
    return Pair(rule, replace(job, precision=slow), replace(job, precision=fast, autocast=fast != "tf32"))


def _large(rule: str, job: JobOptions, _: random.Random) -> Pair:
    job = replace(
        job, gpu=H100, precision="bfloat16", hidden=4096, heads=32, tokens=8192, sequence=1024, layers=3, autocast=False
    )
    return Pair(rule, job, replace(job, precision="float8"))


def _ordinary(rule: str, job: JobOptions, _: random.Random) -> Pair:
    job = replace(job, gpu=V100, precision="float16", hidden=1024, tokens=2048, layers=3)
    return Pair(rule, job.with_mistake(rule), job)


def _channels(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = _images(job, dice)
    return Pair(rule, job.with_mistake(rule), job)


def _full_memory(rule: str, job: JobOptions, dice: random.Random) -> Pair:
    job = replace(job, memory=True, gpu=H100, precision="bfloat16", layers=3)
    capacity = job.gpu.memory_bytes
    if rule == "memory_limit":
        return Pair(rule, replace(job, memory_before=round(dice.uniform(0.9, 0.94) * capacity)), job)
    held = round(dice.uniform(0.5, 0.55) * capacity)
    return Pair(rule, replace(job, memory_before=held, unused_reserved=round(0.33 * capacity)), job)


_PAIRS: dict[str, _Plant] = {
    "data_loading": _lasting,
    "garbage_collection": _lasting,
    "slow_function": _lasting,
    "unexplained_idle": _unrecorded,
    "recompilation": _lasting,
    "scalar_read": _waiting,
    "data_dependent_shape": _waiting,
    "blocking_copy": _waiting,
    "device_synchronisation": _waiting,
    "stream_synchronisation": _waiting,
    "pageable_copy": _copied,
    "copies_in_turn": _copied,
    "operator_loops": _looping,
    "host_copies": _copying,
    "double_precision": _in_double,
    "anomaly_detection": _anomalous,
    "evaluation_in_steps": _validating,
    "dense_embedding_gradients": _dense_gradients,
    "first_calls": _first_steps,
    "data_parallel": _one_process,
    "optimizer_not_fused": _updating,
    "graph_breaks": _broken,
    "launch_bound": _launch_bound,
    "python_overhead": _python_overhead,
    "unaligned_products": _vocabulary,
    "tf32_off": _precision,
    "mixed_precision_off": _precision,
    "tensor_cores_unused": _without_shapes,
    "float8_possible": _large,
    "ordinary_cores": _ordinary,
    "slow_products": _counted(1.2, 2.5),
    "unfused_attention": _once,
    "unfused_chain": _counted(10, 16, 30, 50, 90, 160),
    "casts": _converted,
    "transposes": _counted(4, 8, 16, 32, 64),
    "channels_first": _channels,
    "slow_memory_kernels": _strided,
    "recomputation": _once,
    "small_grid": _kernel,
    "low_occupancy": _kernel,
    "tiny_kernels": _tiny,
    "streams_in_turn": _in_turn,
    "empties_cache": _once,
    "allocator_retries": _counted(0.05, 0.2, 0.5, 1, shares=(_LEAST_SHARE,)),
    "memory_limit": _full_memory,
    "fragmentation": _full_memory,
    "slow_recording": _slow_recording,
    "late_starts": _counted(200_000, 400_000, 800_000, 2_000_000, 5_000_000, 12_000_000),
    "host_falls_behind": _backlog,
    "profiler_overhead": _lasting,
    "late_rank": _late,
    "slow_link": _slow_link,
    "uneven_experts": _uneven_experts,
    "uneven_work": _uneven,
    "jitter": _jittering,
    "repeated_reductions": _forgetful,
    "host_collectives": _through_hosts,
    "small_collectives": _many_collectives,
    "exposed_communication": _exposed,
    "exposed_on_one_rank": _exposed,
}

_HEALTHY: tuple[Callable[[JobOptions, random.Random], JobOptions], ...] = (
    lambda job, _: job,
    lambda job, _: replace(job, reads_loss=True),
    _images,
    _ranks,
    lambda job, dice: replace(_ranks(job, dice), reads_loss=True),
    _experts,
    _with_branches,
    _on_cpu,
    _accumulating,
    lambda job, _: replace(
        job, ranks=4, ranks_per_host=2, parallelism="tensor", layers=2, steps=4, memory=False, sequence=512
    ),
)

_REMEDIES: dict[str, Callable[[JobOptions], JobOptions]] = {
    "slow_recording": lambda job: replace(job, stacks=False),
    "launch_bound": lambda job: replace(job, host_factor=0.05),
    "python_overhead": lambda job: replace(job, host_factor=0.05),
    "scalar_read": lambda job: replace(job, reads_loss=False),
    "casts": lambda job: job.with_remedy("fused_casts"),
    "float8_possible": lambda job: replace(job, precision="float8"),
    "small_grid": lambda job: job.with_remedy("dependent_branches", 0.36 * job.remedies.get("dependent_branches", 0)),
    "exposed_communication": lambda job: replace(job, link_gb_per_s=100_000, link_latency_ns=0),
    "exposed_on_one_rank": lambda job: replace(job, link_gb_per_s=100_000, link_latency_ns=0),
}
"""Remedies for causes that a job can have even if no mistake was planted in it."""


def remedied(job: JobOptions, rule: str) -> JobOptions | None:
    """Return the job without the cause that a rule describes; None if only a planted mistake can be the cause."""
    remedy = _REMEDIES.get(rule)
    return None if remedy is None else remedy(job)
