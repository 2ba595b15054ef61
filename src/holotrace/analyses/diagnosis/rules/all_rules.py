"""All rules, in the order in which the documentation lists them."""

from __future__ import annotations

from holotrace.analyses.diagnosis.rule import JobRule, Rule
from holotrace.analyses.diagnosis.rules import recomputation
from holotrace.analyses.diagnosis.rules.device import (
    attention,
    compute_streams,
    fusion,
    kernels,
    memory,
    products,
    streams,
)
from holotrace.analyses.diagnosis.rules.host import (
    anomaly_detection,
    embeddings,
    evaluation,
    first_calls,
    host_operators,
    host_time,
    launches,
    operator_loops,
    queues,
    synchronisations,
)
from holotrace.analyses.diagnosis.rules.ranks import (
    accumulation,
    communication,
    experts,
    late_ranks,
    process_setup,
    uneven_inputs,
)

RULES: tuple[Rule, ...] = (
    *host_time.RULES,
    *anomaly_detection.RULES,
    *synchronisations.RULES,
    *first_calls.RULES,
    *launches.RULES,
    *operator_loops.RULES,
    *host_operators.RULES,
    *embeddings.RULES,
    *evaluation.RULES,
    *queues.RULES,
    *products.RULES,
    *attention.RULES,
    *fusion.RULES,
    *recomputation.RULES,
    *kernels.RULES,
    *compute_streams.RULES,
    *streams.RULES,
    *memory.RULES,
    *process_setup.RANK_RULES,
)
"""The rules that examine each rank separately."""

JOB_RULES: tuple[JobRule, ...] = (
    *late_ranks.RULES,
    *experts.RULES,
    *uneven_inputs.RULES,
    *process_setup.JOB_RULES,
    *accumulation.RULES,
    *communication.RULES,
)
"""The rules about the communication between ranks."""
