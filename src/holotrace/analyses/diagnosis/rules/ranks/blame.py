"""Find the ranks that are to blame for waits of other ranks: their own work delays them, and not just by chance."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rules.ranks.experts import WORK, overloaded
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import steps_of
from holotrace.analyses.diagnosis.rules.ranks.own_work import with_own_share
from holotrace.analyses.diagnosis.rules.ranks.uneven_inputs import (
    MORE_CALLS,
    times_as_many_calls,
    without_larger_inputs,
)
from holotrace.enrich.job_graph.causes.roles import CULPRIT, MOSTLY_PYTHON, NOT_OWN, largest_causes

_RUN_BACKWARD = "<built-in method run_backward>"
_LATE_STEP = 0.25
"""A rank counts as late in a step if its delay in this step costs at least this share of the cost of the rank's
costliest delay.
"""
_ONE_CAUSE = 0.2
"""If the largest cause explains less than this share of a rank's delay, the delay may be due to chance: a process that
shares its cores with others is delayed at many lines of code.
"""
_CHANCE = 0.05
"""Even if all ranks are equally fast, chance can make one of them the latest in many steps. A late
rank is not to blame if the probability that chance makes some rank the latest equally often is at least this value."""


def blamed(evidence: JobEvidence) -> list[int]:
    """Return the culprits whose own work causes at least half of their delays, unless chance may explain the delays.

    Slow transfers, late starts of GPU work and unknown causes (`NOT_OWN`) do not count as a rank's own work.
    """
    causes = evidence.results["wait_causes"]
    culprits = causes.per_rank.filter(pl.col("role") == CULPRIT)["rank"]
    own = pl.col("cost_ns").filter(~pl.col("cause").is_in(NOT_OWN)).sum()
    sums = causes.per_cause.group_by("cause_rank").agg(own.alias("own_ns"), pl.col("cost_ns").sum())
    known = sums.filter(pl.col("cause_rank").is_in(culprits.implode()) & (2 * pl.col("own_ns") >= pl.col("cost_ns")))
    return [rank for rank in sorted(known["cause_rank"]) if not _is_late_by_chance(evidence, rank)]


def delays_of(evidence: JobEvidence, rank: int) -> pl.DataFrame:
    """Return why other ranks wait for this rank, except extra tokens and larger inputs, which other rules report."""
    in_steps = evidence.results["wait_causes"].per_cause.drop_nulls("step").filter(pl.col("cause_rank") == rank)
    own = without_larger_inputs(evidence, in_steps)
    return own.filter(~pl.col("cause").is_in(WORK)) if rank in overloaded(evidence) else own


def explained(evidence: JobEvidence, delays: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the largest cause of a rank's `delays`, and the values that fill the finding's text."""
    own = with_own_share(evidence, delays).with_columns(pl.col("own_ns").round().cast(pl.Int64).alias("cost_ns"))
    cause = largest_causes(own).row(0, named=True)
    times_as_many = times_as_many_calls(evidence, cause["cause_rank"])
    words = {"kind": cause["cause"], "times_as_many": times_as_many}
    words |= _how_often(own, cause, steps_of(evidence.results["wait_causes"]))
    if has_same_work(words):
        words["confidence"] = {"high": "medium"}.get(words["confidence"], "low")
    return cause, words


def _is_late_by_chance(evidence: JobEvidence, rank: int) -> bool:
    """Return whether a rank's delays have no clear cause and may be due to chance.

    If all ranks were equally fast, each of them would be equally likely to be the latest in a step. Chance may explain
    the delays if some rank of such a job would be the latest in as many steps with a probability of at least `_CHANCE`.
    """
    delays = delays_of(evidence, rank)
    if (
        delays.is_empty()
        or longest_if_half(functions_alone(evidence, rank), _cost_per_step(evidence, delays)) is not None
    ):
        return False
    words = explained(evidence, delays)[1]
    latest = _latest_ranks(evidence)
    late, steps = latest.count(rank), len(latest)
    is_unclear = words["is_spread"] or has_same_work(words)
    return is_unclear and late < steps and _chance(late, steps, len(evidence.ranks)) >= _CHANCE


def _cost_per_step(evidence: JobEvidence, delays: pl.DataFrame) -> float:
    """Return how much waiting time per step these delays cause on the most affected rank."""
    costs: list[int] = delays.group_by("waiting_rank").agg(pl.col("cost_ns").sum())["cost_ns"].to_list()
    return max(costs) / steps_of(evidence.results["wait_causes"])


def _latest_ranks(evidence: JobEvidence) -> list[int]:
    """Return, for each step in which ranks wait, the rank for which they wait longest."""
    known = evidence.results["wait_causes"].per_cause.drop_nulls(["step", "cause_rank"])
    sums = known.group_by("step", "cause_rank").agg(pl.col("cost_ns").sum())
    latest = sums.sort("cost_ns", "cause_rank", descending=[True, False]).unique("step", keep="first")
    return list(latest["cause_rank"])


def _chance(late: int, steps: int, ranks: int) -> float:
    """Return an upper bound on the probability that any rank is the latest in at least `late` steps by chance.

    All ranks are assumed to be equally likely to be the latest in a step.
    """
    ways = sum(comb(steps, count) * (ranks - 1) ** (steps - count) for count in range(late, steps + 1))
    likelihood: float = ranks * ways / ranks**steps
    return min(1.0, likelihood)


def longest_if_half(alone: Mapping[str, int], cost_ns: float) -> str | None:
    """Return the function in `alone` that takes the most time per step, if this is at least half of `cost_ns`."""
    return next((name for name, time_ns in alone.items() if 2 * time_ns >= cost_ns), None)


def functions_alone(evidence: JobEvidence, rank: int) -> dict[str, int]:
    """Return the functions that only this rank runs, with their time per step, the longest first.

    The result is empty unless Python functions were recorded on every other rank.
    """
    others = [set(known.user_functions) for other, known in evidence.ranks.items() if other != rank]
    if not all(others):
        return {}
    own = evidence.ranks[rank].user_functions.items()
    alone = [(name, time_ns) for name, time_ns in own if not any(name in other for other in others)]
    return dict(sorted(alone, key=lambda known: -known[1]))


def _how_often(mine: pl.DataFrame, cause: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the number of steps in which a rank is late, and how certain the cause is.

    If no cause dominates, or if the rank is late in only a few steps, the delays may be random, so the confidence is
    lower.
    """
    per_step = mine.group_by("step").agg(pl.col("cost_ns").sum())["cost_ns"]
    late_count = int((per_step >= _LATE_STEP * float(per_step.max() or 0)).sum())  # type: ignore[arg-type]
    own = mine.filter(~pl.col("cause").is_in(NOT_OWN))
    of_name = own.filter(pl.col("name").eq_missing(pl.lit(cause["name"], pl.String)))["cost_ns"].sum()
    is_spread = (
        float(max(of_name, _in_function(own, cause), cause["cost_ns"])) < _ONE_CAUSE * float(own["cost_ns"].sum())
        and cause["cause"] != "computation"
    )
    is_rare = 2 * late_count <= steps and steps > 1
    return {
        "late_count": late_count,
        "steps": steps,
        "is_spread": is_spread,
        "is_training": is_part_of_training(own, cause),
        "confidence": "low" if is_spread else "medium" if is_rare else "high",
    }


def is_part_of_training(causes: pl.DataFrame, cause: Mapping[str, Any]) -> bool:
    """Return whether every step needs this Python code.

    Every step needs the code that runs the backward pass. A function that spends much of its time in operators is part
    of the training, so every step also needs the Python code that this function runs between the operators.
    """
    if cause["cause"] != "python":
        return False
    return cause["name"] == _RUN_BACKWARD or (cause["name"] == cause["frame"] and not _in_function(causes, cause))


def _in_function(own: pl.DataFrame, cause: Mapping[str, Any]) -> float:
    """Return the cost of Python code in the function in which a cause occurs, which is the cause's `frame`.

    The result is 0 if the cause is not Python code. It is also 0 if Python code costs less than three times as much as
    all other causes in this function together, which is typical of training code: it spends much of its time in
    operators.
    """
    if cause["cause"] != "python" or cause["frame"] is None:
        return 0.0
    kinds = own.filter(pl.col("frame") == cause["frame"]).group_by("cause").agg(pl.col("cost_ns").sum())
    costs = dict(kinds.with_columns(pl.col("cause").cast(pl.String)).iter_rows())
    python_ns = float(costs.pop("python", 0))
    return python_ns if python_ns >= MOSTLY_PYTHON * sum(costs.values()) else 0.0


def has_same_work(words: Mapping[str, Any]) -> bool:
    """Return whether operators make the rank late, although it does the same work as its peers.

    The work is the same if the rank makes about as many calls of matrix products, convolutions and embeddings as its
    peers, and its inputs are not larger.
    """
    return words["kind"] == "operator" and 1 / MORE_CALLS <= (words["times_as_many"] or 0) < MORE_CALLS
