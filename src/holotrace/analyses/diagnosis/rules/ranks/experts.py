"""The rule about ranks whose experts get more tokens than the experts of other ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, RankCase, Said
from holotrace.analyses.diagnosis.rules.needs import needs_results
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import mean_costs, steps_of
from holotrace.units import number_text

_UNEVEN = 1.2

WORK = ("computation", "copy", "operator")
"""Causes of waiting that are due to different amounts of work on the ranks."""


def uneven_experts(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the time that other ranks spend waiting for the rank whose experts get the most tokens."""
    most = _most_tokens(evidence)
    if most is None:
        return
    causes = evidence.results["wait_causes"]
    is_for_tokens = (pl.col("cause_rank") == most["rank"]) & pl.col("cause").is_in(WORK)
    caused = causes.per_cause.drop_nulls("step").filter(is_for_tokens).rename({"waiting_rank": "rank"})
    costs = mean_costs(evidence, caused, "cost_ns", step_count=steps_of(causes))
    if costs:
        yield JobCase(costs, most["uneven"], most["rank"], words={"rank": most["rank"], "times": most["uneven"]})


def overloaded(evidence: JobEvidence) -> list[int]:
    """Return the rank with the most tokens in a list; return an empty list if it gets less than 1.2 times the mean."""
    most = _most_tokens(evidence)
    return [most["rank"]] if most is not None and most["uneven"] >= _UNEVEN else []


def _most_tokens(evidence: JobEvidence) -> dict[str, Any] | None:
    """Return the row of the rank whose experts get the most tokens.

    `uneven` is the number of tokens that this rank's experts get, divided by the mean over all ranks.
    """
    if "parallelism" not in evidence.results:
        return None
    experts = evidence.results["parallelism"].per_expert_rank
    tokens = experts.with_columns(pl.coalesce("computed_imbalance", "imbalance").alias("uneven")).drop_nulls("uneven")
    return tokens.row(int(tokens["uneven"].arg_max() or 0), named=True) if len(tokens) else None


def _say(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"the other ranks wait for rank {words['rank']}, whose experts get {number_text(words['times'], digits=2)} times the mean number of tokens",
        "Raise the weight of the load-balancing loss or bias, limit the tokens per expert, or move experts between ranks.",
    )


RULES = (
    JobRule(
        "uneven_experts",
        "ranks whose experts get more tokens than those of other ranks",
        threshold=_UNEVEN,
        unit="times the mean number of tokens per rank",
        reason="With well-balanced routing, ranks stay within 10 to 20 % of the mean.",
        source="https://arxiv.org/abs/2101.03961",
        analyses=("parallelism", "wait_causes"),
        check=uneven_experts,
        say=_say,
        precedence=0,
        needs=needs_results("parallelism", "wait_causes"),
        confidence="medium",
    ),
)
"""The rule about experts."""
