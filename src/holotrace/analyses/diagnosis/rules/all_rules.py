"""All rules, in the order in which the documentation lists them."""

from __future__ import annotations

from holotrace.analyses.diagnosis.rule import JobRule, Rule
from holotrace.analyses.diagnosis.rules import (
    attention,
    communication,
    fusion,
    host_time,
    kernels,
    late_ranks,
    launches,
    memory,
    products,
    streams,
    synchronisations,
)

RULES: tuple[Rule, ...] = (
    *host_time.RULES,
    *synchronisations.RULES,
    *launches.RULES,
    *products.RULES,
    *attention.RULES,
    *fusion.RULES,
    *kernels.RULES,
    *streams.RULES,
    *memory.RULES,
)
"""The rules about one rank."""

JOB_RULES: tuple[JobRule, ...] = (*late_ranks.RULES, *communication.RULES)
"""The rules about the communication between ranks."""
