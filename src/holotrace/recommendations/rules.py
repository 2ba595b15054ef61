"""The rules of the advice: what each one looks for on a rank, and what it recommends.

A rule has two functions: one returns the cases in which the rule applies on a rank, the other says in a sentence what to do
about all cases of the job. The default limits are those of PyTorch's TensorBoard plugin; `Thresholds` changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from holotrace.analyses.stragglers.compute import MOST_CAUSED, late_clause, waited_clause
from holotrace.enrich.collectives.libraries import uses_device_library
from holotrace.enrich.job.findings import ranks_text
from holotrace.errors import InvalidOptionError
from holotrace.recommendations.facts import (
    DATA_PARALLEL,
    DISTRIBUTED_DATA_PARALLEL,
    EVENTS,
    RankFacts,
)
from holotrace.units import duration_text, percent_text

_NCCL_CAPABILITY = (3, 5)
TENSOR_CORE_CAPABILITY = 7
_MOSTLY = 0.5
_MOST_NAMED = 8
_MUCH_WAITING = 0.2
"""Advise fixing a late rank first if more than this fraction of the time in collectives is waiting."""

_OF_IDLE = {
    "dataloader": (
        "the rest is mostly waiting for the data loader: load in several processes (num_workers), and prefetch"
    ),
    "memcpy": "copies take most of the rest: copy less, and asynchronously from pinned memory",
    "host_wait": (
        "the rest is mostly waiting for the host: launch fewer kernels (torch.compile, CUDA graphs, fused optimizers), "
        "and avoid synchronisations such as .item()"
    ),
    "kernel_wait": (
        "the rest is mostly short gaps between kernels: fuse kernels (torch.compile), launch them as a CUDA graph, or "
        "give each of them more work with a larger batch"
    ),
    "other": (
        "for most of the rest, launched work waited, for example for other streams or for work from before the "
        "recording: holotrace critical-path shows what held it up"
    ),
    "": "a larger batch fills them, unless they wait for the host",
}
"""What to try if devices are idle, by what they mostly wait for; the empty key stands for an unknown cause."""

_WITHOUT_TENSOR_CORES = "GTX 16"
"""GeForce GTX 16 has capability 7.5 and no tensor cores: https://en.wikipedia.org/wiki/GeForce_GTX_16_series"""

_WITHOUT_MATRIX_CORES = ("MI25", "MI50", "MI60", "Vega", "Radeon VII", "Pro VII")
"""gfx900 and gfx906 report 9.0 as CDNA does, but lack matrix cores:
https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html"""

_RDNA_WITH_MATRIX_CORES = 11
_CDNA = 9
_AMPERE = 8


@dataclass(frozen=True)
class Thresholds:
    """The limits at which rules begin to apply; all are fractions of 1.

    loading        share of the mean step spent waiting for the data loader
    communication  share of the mean step in communication that no other work hides
    utilization    share of the steps' time in which a kernel runs; the rule applies below this limit
    eligible       share of the kernel time launched by operators whose work tensor cores could do
    memory         share of the device's memory allocated at the peak
    """

    loading: float = 0.05
    communication: float = 0.10
    utilization: float = 0.50
    eligible: float = 0.0
    memory: float = 0.90

    def __post_init__(self) -> None:
        """Refuse values that are not fractions."""
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                message = f"{name}={value}: a threshold is a fraction from 0 to 1"
                raise InvalidOptionError(message)


class Case(NamedTuple):
    """One application of a rule: the device, if it is about one, and the numbers.

    value, limit  the measured fraction, and its limit; None for a rule without one
    worth_ns      the most that can be saved in the mean step; None if unknown
    events        the events behind the case, with the columns of `holotrace.recommendations.facts.EVENTS`
    """

    device: int | None
    value: float | None
    limit: float | None
    worth_ns: float | None
    events: pl.DataFrame


class RankCase(NamedTuple):
    """A case and the rank it is about."""

    rank: int
    facts: RankFacts
    case: Case


@dataclass(frozen=True)
class Rule:
    """One rule of the advice.

    name      its subject
    measure   what its value is a fraction of or, without a value, what it looks for
    analysis  the analysis that shows more
    needs     returns a sentence on the missing input; None if nothing is missing
    check     returns its cases on a rank
    say       says what to do about all cases; there is at least one
    is_first  whether it is listed before all other rules, whatever they are worth
    """

    name: str
    measure: str
    analysis: str
    needs: Callable[[RankFacts], str | None]
    check: Callable[[RankFacts, Thresholds], list[Case]]
    say: Callable[[Sequence[RankCase]], str]
    is_first: bool = False


def _late_rank(facts: RankFacts, _: Thresholds) -> list[Case]:
    return [
        Case(None, row["caused_fraction"], MOST_CAUSED, row["longest_wait_ns"], _operations(facts))
        for row in facts.late_ranks
        if row["rank"] == facts.rank
    ]


def _say_late_rank(cases: Sequence[RankCase]) -> str:
    (late, *others) = cases[0].facts.late_ranks
    waited = f"the other ranks together wait {duration_text(late['caused_wait_ns'])} for it"
    share = f"{percent_text(late['caused_fraction'])} of all waiting in its collectives"
    if late["is_cause"] and late["cost_ns"] is not None:
        waited, share = waited_clause(late), "see its causes of waiting"
    others_late = f"; the same holds for {ranks_text(sorted(row['rank'] for row in others))}" if others else ""
    way_out = (
        "find what takes longer on its host, in its data loading or on its device than on another rank"
        if late["is_cause"]
        else "find what it waits for, because it may itself wait for another rank"
    )
    return f"{late_clause(late)}: {waited}, {share}{others_late}; before anything else, {way_out}"


def _loading(facts: RankFacts, limits: Thresholds) -> list[Case]:
    mean_ns, fraction = facts.step.get("dataloader", (0.0, None))
    if fraction is None or fraction <= limits.loading:
        return []
    return [Case(None, fraction, limits.loading, mean_ns, facts.host.loading)]


def _say_loading(cases: Sequence[RankCase]) -> str:
    return (
        f"{_share_of_step(cases)} is spent waiting for the data loader: load in several processes (num_workers), "
        f"pin memory, or prefetch"
    )


def _data_parallel(facts: RankFacts, _: Thresholds) -> list[Case]:
    calls = facts.host.wrappers.filter(pl.col("event") == DATA_PARALLEL)
    if calls.is_empty() or facts.host.used_devices < 2:  # noqa: PLR2004 -- more than one
        return []
    return [Case(None, None, None, None, calls)]


def _say_data_parallel(cases: Sequence[RankCase]) -> str:
    return (
        f"DataParallel drives {cases[0].facts.host.used_devices} devices from one process ({_where(cases)}): "
        f"DistributedDataParallel, with one process per device, is faster"
    )


def _ddp_backend(facts: RankFacts, limits: Thresholds) -> list[Case]:
    return ddp_without_nccl(facts, limits) if facts.host.libraries else []  # without a library, nothing communicates


def ddp_without_nccl(facts: RankFacts, _: Thresholds) -> list[Case]:
    """Return a case if DistributedDataParallel ran, no device library communicates, and a device supports NCCL."""
    calls = facts.host.wrappers.filter(pl.col("event") == DISTRIBUTED_DATA_PARALLEL)
    is_able = any(capability(properties) >= _NCCL_CAPABILITY for properties in facts.host.properties)
    if calls.is_empty() or uses_device_library(facts.host.libraries) or not is_able:
        return []
    mean_ns, fraction = facts.step.get("communication", (None, None))
    return [Case(None, fraction, None, mean_ns, pl.concat([calls, _operations(facts)]))]


def _say_ddp_backend(cases: Sequence[RankCase]) -> str:
    libraries = (
        ", ".join(sorted({name for rank_case in cases for name in rank_case.facts.host.libraries})) or "another library"
    )
    return (
        f"DistributedDataParallel communicates through {libraries}, although the devices support NCCL ({_where(cases)}): "
        f"initialise the process group with the backend nccl"
    )


def _communication(facts: RankFacts, limits: Thresholds) -> list[Case]:
    mean_ns, fraction = facts.step.get("communication", (0.0, None))
    if fraction is None or fraction <= limits.communication:
        return []
    return [Case(None, fraction, limits.communication, mean_ns, _operations(facts))]


def _say_communication(cases: Sequence[RankCase]) -> str:
    waiting, late = _waiting_fraction(cases), cases[0].facts.late_ranks
    exposed = f"{_share_of_step(cases)} is communication that nothing hides"
    if late and waiting is not None and waiting > _MUCH_WAITING:
        return (
            f"{exposed}, and {percent_text(waiting)} of the time in collectives is waiting for other ranks, mostly "
            f"because {late_clause(late[0])}: fix that first, and look again"
        )
    if waiting is not None and waiting > _MOSTLY:
        return f"{exposed}, and {percent_text(waiting)} of the time in collectives is waiting for other ranks: balance their work"
    return say_to_communicate_less(cases)


def say_to_communicate_less(cases: Sequence[RankCase]) -> str:
    """Say how much of the step is exposed communication, and how to reduce it."""
    return (
        f"{_share_of_step(cases)} is communication that nothing hides: accumulate gradients over several batches, "
        f"communicate them in a smaller type, or use larger batches; the first and the last change the effective batch size"
    )


def _waiting_fraction(cases: Sequence[RankCase]) -> float | None:
    means = pl.concat([of_rank.facts.mean_steps for of_rank in cases])
    if means.is_empty():
        return None
    waiting, whole = means.select(pl.col("mean_synchronising_ns", "mean_collective_ns").sum()).row(0)
    return waiting / whole if whole else None


def _utilization(facts: RankFacts, limits: Thresholds) -> list[Case]:
    return [
        Case(
            row["device"],
            row["utilization_fraction"],
            limits.utilization,
            facts.step_ns * (1 - row["utilization_fraction"]),
            _categories(facts),
        )
        for row in facts.devices.iter_rows(named=True)
        if row["utilization_fraction"] is not None and row["utilization_fraction"] < limits.utilization
    ]


def _say_utilization(cases: Sequence[RankCase]) -> str:
    return say_idle(cases, _cause(cases))


def say_idle(cases: Sequence[RankCase], cause: str = "") -> str:
    """Say which devices are idle and what to try; the cause is a key of `_OF_IDLE`."""
    least = min(cases, key=_value)
    devices = sorted({rank_case.case.device for rank_case in cases if rank_case.case.device is not None})
    which = f"GPU {devices[0]}" if len(devices) == 1 else f"GPUs {_listed(devices)}"
    runs = "runs" if len(devices) == 1 else "run"
    return (
        f"{which} ({_where(cases)}) {runs} kernels in less than {percent_text(least.case.limit)} of the time, "
        f"{percent_text(_value(least))} on rank {least.rank}; {_OF_IDLE[cause]}"
    )


def _cause(cases: Sequence[RankCase]) -> str:
    """Return what the devices mostly wait for, as a key of `_OF_IDLE`; empty if nothing takes more than half of the time.

    While the host loads data or copies, it launches nothing, so these causes come first. Time before the first kernel
    and after the last one has no category; if it is most of the idle time, the gaps between kernels decide, as in the
    verdict.
    """
    idle_ns = sum(rank_case.facts.step_ns * rank_case.facts.step_count * (1 - _value(rank_case)) for rank_case in cases)
    of_ranks = {rank_case.rank: rank_case.facts for rank_case in cases}.values()
    waits = {name: sum(_in_steps(facts, name) for facts in of_ranks) for name in ("dataloader", "memcpy")}
    gaps = dict(
        pl.concat([_gaps(rank_case) for rank_case in cases])
        .group_by("category")
        .agg(pl.col("idle_ns").sum())
        .iter_rows()
    )
    return _most_of({**waits, **gaps}, idle_ns) or _most_of(gaps, sum(gaps.values()))


def _most_of(idle_ns: Mapping[str, float], whole: float) -> str:
    return next((name for name in _OF_IDLE if idle_ns.get(name, 0) > _MOSTLY * whole), "")


def _in_steps(facts: RankFacts, category: str) -> float:
    mean_ns, _ = facts.step.get(category, (0.0, None))
    return mean_ns * facts.step_count


def _gaps(rank_case: RankCase) -> pl.DataFrame:
    """Return the idle time of the device by cause: category and idle_ns."""
    idle = rank_case.facts.idle
    if idle.is_empty():
        return pl.DataFrame(schema={"category": pl.String, "idle_ns": pl.Int64})
    return idle.filter(device=rank_case.case.device).select(pl.col("category").cast(pl.String), "idle_ns")


def _precision(facts: RankFacts, limits: Thresholds) -> list[Case]:
    # Kernels whose names say nothing about tensor cores might use them.
    return precision_cases(facts, limits) if _types(facts) and not facts.host.unknown else []


def precision_cases(facts: RankFacts, limits: Thresholds) -> list[Case]:
    """Return a case if operators that tensor cores could speed up take time, and no kernel uses these cores."""
    host, eligible = facts.host, facts.host.eligible
    if eligible is None or eligible <= limits.eligible or host.used:
        return []
    mean_ns = host.eligible_ns / facts.step_count if facts.step_count else None
    worth_ns = None if mean_ns is None else min(mean_ns, facts.step["kernel"][0])
    return [Case(None, eligible, limits.eligible, worth_ns, host.slow_eligible)]


def _say_precision(cases: Sequence[RankCase]) -> str:
    most = max(cases, key=_value)
    return (
        f"{percent_text(_value(most))} of the kernel time on rank {most.rank} comes from operators that tensor cores could "
        f"speed up, but no kernel uses them ({_where(cases)}): {_as_types(cases)}"
    )


def _as_types(cases: Sequence[RankCase]) -> str:
    """Name the types that the tensor cores of all these devices support."""
    common = set.intersection(*({*_types(rank_case.facts)} for rank_case in cases))
    if "TF32" in common:
        return "autocast to bfloat16 or float16, or allow TF32"
    return "autocast to bfloat16 or float16" if "bfloat16" in common else "autocast to float16 with a GradScaler"


def _types(facts: RankFacts) -> tuple[str, ...]:
    """Return the low-precision types that the tensor or matrix cores of all devices of the rank support."""
    if facts.devices.is_empty():
        return ()
    known = [
        _amd_types(*row) if facts.host.is_rocm else _nvidia_types(*row)
        for row in facts.devices.select("device_name", "compute_capability").iter_rows()
    ]
    return tuple(name for name in known[0] if all(name in types for types in known))


def _nvidia_types(name: str | None, capability: str | None) -> tuple[str, ...]:
    """Return the types that NVIDIA lists for the device.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#features-and-technical-specifications
    """
    major = _major(capability)
    if major < TENSOR_CORE_CAPABILITY or _WITHOUT_TENSOR_CORES in (name or ""):
        return ()
    return ("float16", "bfloat16", "TF32") if major >= _AMPERE else ("float16",)


def _amd_types(name: str | None, capability: str | None) -> tuple[str, ...]:
    """Return the types in https://rocm.docs.amd.com/en/latest/reference/precision-support.html."""
    major = _major(capability)
    is_vega = any(vega in (name or "") for vega in _WITHOUT_MATRIX_CORES)
    has_matrix_cores = major >= _RDNA_WITH_MATRIX_CORES or (major == _CDNA and not is_vega)
    return ("float16", "bfloat16") if has_matrix_cores else ()


def _major(capability: str | None) -> int:
    return int(capability.partition(".")[0]) if capability else 0


def _memory(facts: RankFacts, limits: Thresholds) -> list[Case]:
    return memory_cases(facts, facts.memory.filter(pl.col("device_type") != "cpu"), limits)


def memory_cases(facts: RankFacts, devices: pl.DataFrame, limits: Thresholds) -> list[Case]:
    """Return a case for each device whose peak exceeds the limit."""
    over = devices.filter(pl.col("peak_bytes") > limits.memory * pl.col("capacity_bytes"))
    return [
        Case(row["device"], row["peak_bytes"] / row["capacity_bytes"], limits.memory, None, _alive(facts, row))
        for row in over.iter_rows(named=True)
    ]


def _say_memory(cases: Sequence[RankCase]) -> str:
    most = max(cases, key=_value)
    return (
        f"device {most.case.device} of rank {most.rank} had {percent_text(_value(most))} of its memory allocated at "
        f"the peak ({_where(cases)}): checkpoint activations, shard the optimizer's state, or lower the precision"
    )


def _operations(facts: RankFacts) -> pl.DataFrame:
    if facts.operations.is_empty():
        return pl.DataFrame(schema=EVENTS)
    return facts.operations.select(
        pl.concat_str("collective", "dtype", separator=" ", ignore_nulls=True).alias("event"),
        pl.col("call_count").cast(pl.Int64),
        pl.col("collective_ns").cast(pl.Int64).alias("total_ns"),
        pl.col("bytes").cast(pl.Int64),
        pl.lit(None, pl.Int64).alias("at_ns"),
    )


def _categories(facts: RankFacts) -> pl.DataFrame:
    """Return the categories of the mean step other than kernels, the longest first."""
    rows = [
        {
            "event": f"{name} (mean of a step)",
            "call_count": None,
            "total_ns": round(mean_ns),
            "bytes": None,
            "at_ns": None,
        }
        for name, (mean_ns, _) in sorted(facts.step.items(), key=lambda row: -row[1][0])
        if name != "kernel" and mean_ns
    ]
    return pl.DataFrame(rows, schema=EVENTS)


def _alive(facts: RankFacts, device: dict[str, Any]) -> pl.DataFrame:
    """Return what was allocated when the memory of a device peaked."""
    is_here = (pl.col("device_type") == device["device_type"]) & (pl.col("device") == device["device"])
    return (
        facts.at_peak.filter(is_here)
        .head(_MOST_NAMED)
        .select(
            pl.col("operator").alias("event"),
            pl.col("block_count").alias("call_count"),
            pl.lit(None, pl.Int64).alias("total_ns"),
            "bytes",
            pl.lit(device["peak_ns"], pl.Int64).alias("at_ns"),
        )
    )


def capability(properties: dict[str, Any]) -> tuple[int, int]:
    """Return the compute capability as numbers, so that 8.10 is more than 8.9; (0, 0) if unknown."""
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    return (major, minor) if isinstance(major, int) and isinstance(minor, int) else (0, 0)


def _share_of_step(cases: Sequence[RankCase]) -> str:
    most = max(cases, key=_value)
    worth = "" if most.case.worth_ns is None else f" ({duration_text(most.case.worth_ns)})"
    highest = "" if len(cases) == 1 else f", the highest of {len(cases)} ranks,"
    return f"{percent_text(_value(most))} of the mean step{worth} of rank {most.rank}{highest}"


def _value(rank_case: RankCase) -> float:
    return rank_case.case.value or 0.0


def _where(cases: Sequence[RankCase]) -> str:
    return ranks_text(sorted({rank_case.rank for rank_case in cases}))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (", …" if len(numbers) > _MOST_NAMED else "")


def _needs_steps(facts: RankFacts) -> str | None:
    return None if facts.step else "no operators or steps were recorded; record with ProfilerActivity.CPU"


def _needs_kernels(facts: RankFacts) -> str | None:
    return None if len(facts.devices) else "no kernels were recorded; record with ProfilerActivity.CUDA"


def _needs_memory(facts: RankFacts) -> str | None:
    if facts.memory.is_empty():
        return "no memory events were recorded; record with profile_memory=True"
    on_devices = facts.memory.filter(pl.col("device_type") != "cpu")
    is_unknown = len(on_devices) > 0 and on_devices["capacity_bytes"].null_count() == len(on_devices)
    return "the file does not say how much memory the devices have" if is_unknown else None


def _needs_nothing(_: RankFacts) -> str | None:
    return None


RULES = (
    Rule(
        "late_rank",
        "of all waiting in its collectives",
        "stragglers",
        _needs_nothing,
        _late_rank,
        _say_late_rank,
        is_first=True,
    ),
    Rule("data_loading", "of the mean step", "step_time", _needs_steps, _loading, _say_loading),
    Rule(
        "data_parallel",
        "several devices, one process",
        "gpu_summary",
        _needs_nothing,
        _data_parallel,
        _say_data_parallel,
    ),
    Rule("ddp_backend", "of the mean step", "distributed", _needs_nothing, _ddp_backend, _say_ddp_backend),
    Rule("communication", "of the mean step", "distributed", _needs_steps, _communication, _say_communication),
    Rule("low_utilization", "of the steps", "gpu_summary", _needs_kernels, _utilization, _say_utilization),
    Rule("mixed_precision", "of the kernels' time", "operators", _needs_kernels, _precision, _say_precision),
    Rule("memory_limit", "of the device's memory", "memory_timeline", _needs_memory, _memory, _say_memory),
)
"""Our own rule about late ranks, then the plugin's rules in the plugin's order."""


class RuleSet(NamedTuple):
    """Rules, and the analyses whose results they use; the rules also work if some results are missing."""

    rules: Sequence[Rule]
    analyses: tuple[str, ...]


OUR_RULES = RuleSet(RULES, ("step_time", "gpu_summary", "distributed", "memory_timeline", "stragglers", "idle_time"))
