"""The rule about gradients that are reduced for each microbatch although the weights change only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, RankCase, Said
from holotrace.analyses.diagnosis.rules.needs import needs_results
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import mean_costs
from holotrace.units import number_text

_GRADIENTS = ("dp", "unknown")
"""Axes on which gradients are reduced. The axis of a job's only process group is unknown if the group runs only all-reduces,
which may serve other purposes, too."""


def repeated_reductions(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the exposed communication of gradient reductions that are repeated before the weights change."""
    rounds = {rank: of_rank.gradient_rounds for rank, of_rank in evidence.ranks.items()}
    per_update = fmean(of_rank.per_update for of_rank in rounds.values())
    waits = evidence.results["parallelism"].per_step.drop_nulls("step").filter(pl.col("axis").is_in(_GRADIENTS))
    exposed = mean_costs(evidence, waits, "exposed_ns")
    costs = {rank: exposed_ns * rounds[rank].needless_fraction for rank, exposed_ns in exposed.items()}
    yield JobCase(costs, per_update, words={"per_update": per_update})


def _say(cases: Sequence[RankCase]) -> Said:
    times = cases[0].words["per_update"]
    return Said(
        f"DistributedDataParallel reduces the gradients {number_text(times)} times for each update of the weights, although only their sum "
        "is needed",
        "Run forward and backward of all microbatches but the last one within model.no_sync(), so that gradients are only added up.",
    )


RULES = (
    JobRule(
        "repeated_reductions",
        "reductions of the same gradients in several backward passes before one update of the weights",
        threshold=1.5,
        unit="reductions per update",
        reason="One reduction per update is enough; jobs that accumulate gradients in most of their steps reach 1.5 with two microbatches.",
        source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        "#torch.nn.parallel.DistributedDataParallel.no_sync",
        analyses=("parallelism",),
        check=repeated_reductions,
        say=_say,
        precedence=1,
        needs=needs_results("parallelism"),
    ),
)
"""The rule about accumulated gradients."""
