"""The rules: what to look for on a rank, and what to try where it is found.

A rule is a function that returns its cases on one rank, and one that says in a sentence what to do about all cases of
the job. The limits are those of PyTorch's TensorBoard plugin; `Thresholds` changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from hta.enrich.findings import ranks_text
from hta.errors import InvalidOptionError
from hta.recommendations.facts import (
    DATA_PARALLEL,
    DISTRIBUTED_DATA_PARALLEL,
    EVENTS,
    RankFacts,
    uses_device_library,
)
from hta.units import duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NCCL_CAPABILITY = (3, 5)
_TENSOR_CORE_CAPABILITY = 7
_MOSTLY = 0.5
_MOST_NAMED = 8


@dataclass(frozen=True)
class Thresholds:
    """From which values on a rule advises; all are fractions of 1.

    loading        of the mean step, spent waiting for the data loader
    communication  of the mean step, spent communicating and nothing else
    utilization    of the steps in which a kernel runs; below it a device is said to have room
    eligible       of the kernels' time, launched by operators whose work tensor cores could do
    memory         of the device's memory, allocated at the peak
    """

    loading: float = 0.05
    communication: float = 0.10
    utilization: float = 0.50
    eligible: float = 0.0
    memory: float = 0.90

    def __post_init__(self) -> None:
        """Refuse what is no fraction."""
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                message = f"{name}={value}: a threshold is a fraction from 0 to 1"
                raise InvalidOptionError(message)


class Case(NamedTuple):
    """That a rule applies: on which device, if it is about one, and by which numbers.

    value, limit  the fraction that was measured, and what it may be; None where the rule is about none
    worth_ns      of the mean step, at most to be won; None where that cannot be said
    events        what lies behind it, with the columns of `hta.recommendations.facts.EVENTS`
    """

    device: int | None
    value: float | None
    limit: float | None
    worth_ns: float | None
    events: pl.DataFrame


class Found(NamedTuple):
    """A case and the rank it is about."""

    rank: int
    facts: RankFacts
    case: Case


@dataclass(frozen=True)
class Rule:
    """One rule.

    name      what it is about
    measure   what its value is a share of, or what it looks for
    analysis  the analysis that shows more
    needs     says what is lacking to ask it; None where nothing is
    check     returns its cases on a rank
    say       says what to do about all cases, of which there is at least one
    """

    name: str
    measure: str
    analysis: str
    needs: Callable[[RankFacts], str | None]
    check: Callable[[RankFacts, Thresholds], list[Case]]
    say: Callable[[Sequence[Found]], str]


def _loading(facts: RankFacts, limits: Thresholds) -> list[Case]:
    mean_ns, fraction = facts.step.get("dataloader", (0.0, None))
    if fraction is None or fraction <= limits.loading:
        return []
    return [Case(None, fraction, limits.loading, mean_ns, facts.host.loading)]


def _say_loading(found: Sequence[Found]) -> str:
    return (
        f"{_share_of_step(found)} is spent waiting for the data loader: load in several processes (num_workers), "
        f"pin memory, or prefetch"
    )


def _data_parallel(facts: RankFacts, _: Thresholds) -> list[Case]:
    calls = facts.host.wrappers.filter(pl.col("event") == DATA_PARALLEL)
    if calls.is_empty() or facts.host.used_devices < 2:  # noqa: PLR2004 -- more than one
        return []
    return [Case(None, None, None, None, calls)]


def _say_data_parallel(found: Sequence[Found]) -> str:
    return (
        f"DataParallel drives {found[0].facts.host.used_devices} devices from one process ({_where(found)}): "
        f"DistributedDataParallel, with a process a device, is faster"
    )


def _ddp_backend(facts: RankFacts, _: Thresholds) -> list[Case]:
    calls = facts.host.wrappers.filter(pl.col("event") == DISTRIBUTED_DATA_PARALLEL)
    has_another = bool(facts.host.libraries) or facts.compat is not None  # without any, nothing communicates
    is_able = any(_capability(each) >= _NCCL_CAPABILITY for each in facts.host.properties)
    if calls.is_empty() or uses_device_library(facts.host.libraries) or not (has_another and is_able):
        return []
    mean_ns, fraction = facts.step.get("communication", (None, None))
    return [Case(None, fraction, None, mean_ns, pl.concat([calls, _operations(facts)]))]


def _say_ddp_backend(found: Sequence[Found]) -> str:
    libraries = ", ".join(sorted({name for each in found for name in each.facts.host.libraries})) or "another library"
    return (
        f"DistributedDataParallel communicates by {libraries} although the devices could ({_where(found)}): initialise "
        f"the process group with the backend nccl"
    )


def _communication(facts: RankFacts, limits: Thresholds) -> list[Case]:
    mean_ns, fraction = facts.step.get("communication", (0.0, None))
    if fraction is None or fraction <= limits.communication:
        return []
    return [Case(None, fraction, limits.communication, mean_ns, _operations(facts))]


def _say_communication(found: Sequence[Found]) -> str:
    waiting = _waiting_fraction(found)
    told = f"{_share_of_step(found)} is communication that nothing hides"
    if waiting is not None and waiting > _MOSTLY:
        return (
            f"{told}, and {percent_text(waiting)} of the time in collectives is waiting for other ranks: balance them"
        )
    return (
        f"{told}: accumulate gradients over several batches, send them in a smaller type, or take larger batches; the "
        f"first and the last change what is learnt from a step"
    )


def _waiting_fraction(found: Sequence[Found]) -> float | None:
    means = pl.concat([each.facts.mean_steps for each in found if each.facts.compat is None] or [pl.DataFrame()])
    if means.is_empty():
        return None
    waiting, whole = means.select(pl.col("synchronising_ns", "collective_ns").sum()).row(0)
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


def _say_utilization(found: Sequence[Found]) -> str:
    least = min(found, key=_value)
    devices = sorted({each.case.device for each in found if each.case.device is not None})
    which = f"GPU {devices[0]}" if len(devices) == 1 else f"GPUs {_listed(devices)}"
    runs = "runs" if len(devices) == 1 else "run"
    return (
        f"{which} ({_where(found)}) {runs} kernels in less than {percent_text(least.case.limit)} of the time, rank "
        f"{least.rank} in {percent_text(_value(least))}: a larger batch fills them, if the host is not what they "
        f"wait for"
    )


def _precision(facts: RankFacts, limits: Thresholds) -> list[Case]:
    host, eligible = facts.host, facts.host.eligible
    is_unknown = facts.compat is None and bool(host.unknown)  # of kernels that the names do not tell, nothing is said
    asked = host.properties[:1] if facts.compat else host.properties
    is_able = any((_capability(each) or (0, 0))[0] >= _TENSOR_CORE_CAPABILITY for each in asked)
    if eligible is None or eligible <= limits.eligible or host.used or is_unknown or not is_able:
        return []
    mean_ns = host.eligible_ns / facts.step_count if facts.step_count else None
    worth_ns = None if mean_ns is None else min(mean_ns, facts.step["kernel"][0])
    return [Case(None, eligible, limits.eligible, worth_ns, host.slow_eligible)]


def _say_precision(found: Sequence[Found]) -> str:
    most = max(found, key=_value)
    return (
        f"{percent_text(_value(most))} of the kernels' time on rank {most.rank} is launched by operators that tensor "
        f"cores could speed up, and no kernel uses them ({_where(found)}): autocast to bfloat16 or float16, or allow "
        f"TF32"
    )


def _memory(facts: RankFacts, limits: Thresholds) -> list[Case]:
    rows = _plugin_memory(facts) if facts.compat else facts.memory.filter(pl.col("device_type") != "cpu")
    over = rows.filter(pl.col("peak_bytes") > limits.memory * pl.col("capacity_bytes"))
    cases = [
        Case(row["device_id"], row["peak_bytes"] / row["capacity_bytes"], limits.memory, None, _alive(facts, row))
        for row in over.iter_rows(named=True)
    ]
    return cases[:1] if facts.compat else cases


def _plugin_memory(facts: RankFacts) -> pl.DataFrame:
    """Return the devices with the memory that the plugin took for theirs: the last GPU's for the CPU, by mistake."""
    sizes = [each.get("totalGlobalMem") for each in facts.host.properties]
    numbers = facts.memory["device_id"]
    capacity = [sizes[number] if -len(sizes) <= number < len(sizes) else None for number in numbers]
    return facts.memory.with_columns(pl.Series("capacity_bytes", capacity, pl.Int64))


def _say_memory(found: Sequence[Found]) -> str:
    most = max(found, key=_value)
    return (
        f"device {most.case.device} of rank {most.rank} had {percent_text(_value(most))} of its memory allocated at "
        f"the peak ({_where(found)}): checkpoint activations, shard the optimizer's state, or lower the precision"
    )


def _operations(facts: RankFacts) -> pl.DataFrame:
    if facts.operations.is_empty():
        return pl.DataFrame(schema=EVENTS)
    return facts.operations.select(
        pl.concat_str("collective", "dtype", separator=" ", ignore_nulls=True).alias("event"),
        pl.col("call_count").cast(pl.Int64).alias("calls"),
        pl.col("latency_ns").cast(pl.Int64).alias("total_ns"),
        pl.col("bytes").cast(pl.Int64),
        pl.lit(None, pl.Int64).alias("at_ns"),
    )


def _categories(facts: RankFacts) -> pl.DataFrame:
    """Return what fills the mean step besides kernels, the longest first."""
    rows = [
        {"event": f"{name} (mean of a step)", "calls": None, "total_ns": round(mean_ns), "bytes": None, "at_ns": None}
        for name, (mean_ns, _) in sorted(facts.step.items(), key=lambda each: -each[1][0])
        if name != "kernel" and mean_ns
    ]
    return pl.DataFrame(rows, schema=EVENTS)


def _alive(facts: RankFacts, device: dict[str, Any]) -> pl.DataFrame:
    """Return what was allocated at the peak of a device."""
    is_here = (pl.col("device_type") == device["device_type"]) & (pl.col("device_id") == device["device_id"])
    return (
        facts.at_peak.filter(is_here)
        .head(_MOST_NAMED)
        .select(
            pl.col("operator").alias("event"),
            pl.col("block_count").alias("calls"),
            pl.lit(None, pl.Int64).alias("total_ns"),
            "bytes",
            pl.lit(device["peak_ns"], pl.Int64).alias("at_ns"),
        )
    )


def _capability(properties: dict[str, Any]) -> tuple[int, int]:
    """Return the compute capability as numbers, so that 8.10 is more than 8.9; nothing is less than any."""
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    return (major, minor) if isinstance(major, int) and isinstance(minor, int) else (0, 0)


def _share_of_step(found: Sequence[Found]) -> str:
    most = max(found, key=_value)
    worth = "" if most.case.worth_ns is None else f" ({duration_text(most.case.worth_ns)})"
    others = "" if len(found) == 1 else f", as on {len(found) - 1} other rank{'s' if len(found) > 2 else ''},"  # noqa: PLR2004
    return f"{percent_text(_value(most))} of the mean step{worth} of rank {most.rank}{others}"


def _value(found: Found) -> float:
    return found.case.value or 0.0


def _where(found: Sequence[Found]) -> str:
    return ranks_text(sorted({each.rank for each in found}))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (", …" if len(numbers) > _MOST_NAMED else "")


def _needs_steps(facts: RankFacts) -> str | None:
    return None if facts.step else "nothing was recorded that could be a step: record with ProfilerActivity.CPU"


def _needs_kernels(facts: RankFacts) -> str | None:
    return None if len(facts.devices) else "no kernels were recorded: record with ProfilerActivity.CUDA"


def _needs_memory(facts: RankFacts) -> str | None:
    if facts.memory.is_empty():
        return "no memory events were recorded: record with profile_memory=True"
    on_devices = facts.memory.filter(pl.col("device_type") != "cpu")
    is_unknown = len(on_devices) > 0 and on_devices["capacity_bytes"].null_count() == len(on_devices)
    return "the file does not say how much memory the devices have" if is_unknown else None


def _needs_nothing(_: RankFacts) -> str | None:
    return None


RULES = (
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
"""In the order of the plugin."""
