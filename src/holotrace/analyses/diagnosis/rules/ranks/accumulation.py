"""The rule about jobs that reduce gradients after each microbatch, although one reduction per weight update is enough."""

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
"""Axes on which gradients are reduced. The axis is `unknown` if a job has a single process group that runs only all-reduces: they
usually reduce gradients, but may serve other purposes."""


def repeated_reductions(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the exposed communication of all gradient reductions beyond one per weight update."""
    rounds = {rank: of_rank.gradient_rounds for rank, of_rank in evidence.ranks.items()}
    per_update = fmean(of_rank.per_update for of_rank in rounds.values())
    waits = evidence.results["parallelism"].per_step.drop_nulls("step").filter(pl.col("axis").is_in(_GRADIENTS))
    exposed = mean_costs(evidence, waits, "exposed_ns")
    costs = {rank: exposed_ns * rounds[rank].needless_fraction for rank, exposed_ns in exposed.items()}
    yield JobCase(costs, per_update, words={"per_update": per_update})


def _say(cases: Sequence[RankCase]) -> Said:
    times = cases[0].words["per_update"]
    return Said(
        f"DistributedDataParallel reduces the gradients {number_text(times)} times per weight update, although one reduction of their sum "
        "is enough",
        "Run forward and backward of all microbatches except the last within model.no_sync(), which only accumulates their gradients.",
    )


RULES = (
    JobRule(
        "repeated_reductions",
        "gradients that are reduced in several backward passes before one weight update",
        threshold=1.5,
        unit="reductions per update",
        reason="One reduction per update is enough. A job with two microbatches per update exceeds the threshold of 1.5 "
        "if it reduces gradients after both microbatches in most steps.",
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
