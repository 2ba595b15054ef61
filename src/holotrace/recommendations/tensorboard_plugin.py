"""The rules as the TensorBoard plugin applied them, mistakes included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from holotrace.recommendations.facts import RankFacts
from holotrace.recommendations.rules import (
    RULES,
    TENSOR_CORE_CAPABILITY,
    Case,
    RuleSet,
    Thresholds,
    capability,
    ddp_without_nccl,
    memory_cases,
    precision_cases,
    say_idle,
    say_to_communicate_less,
)


def _precision(facts: RankFacts, limits: Thresholds) -> list[Case]:
    """Return the cases of mixed precision if the first device has tensor cores; other devices do not count."""
    is_able = any(capability(first)[0] >= TENSOR_CORE_CAPABILITY for first in facts.host.properties[:1])
    return precision_cases(facts, limits) if is_able else []


def _memory(facts: RankFacts, limits: Thresholds) -> list[Case]:
    """Report at most one device; by mistake, the plugin compares the CPU's peak with the memory of the last GPU."""
    sizes = [properties.get("totalGlobalMem") for properties in facts.host.properties]
    numbers = facts.memory["device"]
    capacity = [sizes[number] if -len(sizes) <= number < len(sizes) else None for number in numbers]
    devices = facts.memory.with_columns(pl.Series("capacity_bytes", capacity, pl.Int64))
    return memory_cases(facts, devices, limits)[:1]


_CHANGED: dict[str, dict[str, Any]] = {
    "ddp_backend": {"check": ddp_without_nccl},
    "communication": {"say": say_to_communicate_less},
    "low_utilization": {"say": say_idle},
    "mixed_precision": {"check": _precision},
    "memory_limit": {"check": _memory},
}

PLUGIN_RULES = RuleSet(
    tuple(replace(rule, **_CHANGED.get(rule.name, {})) for rule in RULES if rule.name != "late_rank"),
    ("step_time", "gpu_summary", "distributed", "memory_timeline"),
)
