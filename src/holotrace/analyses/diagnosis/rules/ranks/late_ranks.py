"""Rules about ranks that keep others waiting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.evidence.callers import NAMELESS
from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, Place, RankCase, Said
from holotrace.analyses.diagnosis.rules.known_names import LOCKS, WRITES
from holotrace.analyses.diagnosis.rules.needs import needs_results
from holotrace.analyses.diagnosis.rules.ranks.blame import (
    blamed,
    delays_of,
    explained,
    functions_alone,
    has_same_work,
    longest_if_half,
)
from holotrace.analyses.diagnosis.rules.ranks.experts import WORK
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import steps_of, wait_count
from holotrace.analyses.diagnosis.rules.ranks.uneven_inputs import MORE_CALLS
from holotrace.drawing.names import short_name
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.enrich.job_graph.causes.roles import LEAST_CULPRIT, cause_text
from holotrace.units import number_text, percent_text

_NEARLY = 0.9
"""If a function takes this share of its caller's time, the caller does little else, and the finding names the function."""


def late_ranks(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each rank that makes others wait; other rules report ranks with more tokens or larger inputs."""
    causes = evidence.results["wait_causes"]
    in_steps = causes.per_cause.drop_nulls("step")
    once = evidence.waits_counted_once
    for row in causes.per_rank.filter(pl.col("rank").is_in(blamed(evidence))).iter_rows(named=True):
        of_rank = in_steps.filter(pl.col("cause_rank") == row["rank"])
        mine = delays_of(evidence, row["rank"])
        if mine.is_empty():
            continue
        fraction = row["cost_fraction"] * mine["cost_ns"].sum() / of_rank["cost_ns"].sum()
        cause, how_often = explained(evidence, mine)
        steps = steps_of(causes)
        sums = mine.group_by("waiting_rank").agg(pl.col("cost_ns").sum()).sort("waiting_rank")
        costs = {rank: cost_ns * once.get(rank, 1.0) / steps for rank, cost_ns in sums.iter_rows()}
        alone = functions_alone(evidence, row["rank"])
        function = longest_if_half(alone, max(costs.values()))
        words: dict[str, Any] = {
            "rank": row["rank"],
            "fraction": fraction,
            "cause": cause_text(
                {**cause, "name": cause["name"] and short_name(cause["name"].removeprefix(OF_AUTOGRAD))}
            ),
            "has_devices": any(known.numbers.busy_ns is not None for known in evidence.ranks.values()),
            **how_often,
            **(_of_function(function, _innermost(alone)) if function else {}),
            "lines": [*alone, *filter(None, [cause["frame"]])],
        }
        yield JobCase(
            costs,
            fraction,
            row["rank"],
            wait_count(mine),
            str(row["rank"]),
            Place(
                module=cause["module"],
                source_line=function or cause["frame"],
                at_ns=min(mine["first_ns"].drop_nulls().to_list(), default=None),
            ),
            words,
        )


def _innermost(alone: Mapping[str, int]) -> str | None:
    """Return the innermost function that takes nearly as long as the outermost one, and so explains its time."""
    named = [name for name in alone if not re.search(NAMELESS, name)]
    nearly = [name for name in named if alone[name] >= _NEARLY * max(alone.values())]
    return nearly[-1] if nearly else None


def _of_function(name: str, inner: str | None) -> dict[str, Any]:
    """Return the `words` of a case whose cause is the function `name`, which only the late rank runs.

    `inner` is the function inside `name` that takes most of the time of `name`.
    """
    mostly = f" (mostly {inner})" if inner not in (None, name) else ""
    cause = f"{name}{mostly}, which no other rank runs"
    return {"cause": cause, "kind": "python", "is_spread": False, "is_training": False, "confidence": "high"}


_WAY_OUT = {
    "data_loading": "Give this rank's data loader more workers or cheaper samples, and look at its disk.",
    "allocation": "Set PYTORCH_ALLOC_CONF=expandable_segments:True, so that this rank's allocator calls the driver less often.",
    "copy": "Copy from pinned memory with non_blocking=True, and compare the PCIe link of this rank's GPU with that of its peers.",
    "operator": "Compare the shapes of this operator's inputs with those on other ranks. If the inputs are larger, balance the work (equal "
    "sequence lengths or samples). Otherwise, look for other processes on the cores of this rank.",
    "python": "Move this function out of the step or into a worker process, or run it on all ranks in the same step.",
    "synchronisation": "Remove the additional synchronisations on this rank: it should wait for its device no more often than the other ranks do.",
    "garbage_collection": "Collect garbage on all ranks in the same step (gc.disable(), then gc.collect() every few hundred steps).",
    "computation": "Balance the work between ranks. If the shapes are equal, compare the clocks and temperatures of the devices.",
    "launch_delay": "Give this rank its own GPU, and look for other processes on this GPU (nvidia-smi).",
    "host_idle": "Something outside PyTorch slows this rank down: look for other processes on its cores, and for swapping.",
}
_WRITING = "Write files in the background, for example with torch.distributed.checkpoint.async_save, or let all ranks share the work."
_HOLDING = "Another thread of this rank holds the lock. Make that thread release the lock sooner, or pass the data through a queue."
_UNUSED = r"search_unused_parameters"
_SEARCHING = (
    "Set find_unused_parameters=False if every parameter gets a gradient, or static_graph=True, so that DDP does not search the "
    "autograd graph in each step."
)
_BY_NAME = ((WRITES, _WRITING), (LOCKS, _HOLDING), (_UNUSED, _SEARCHING))
_BALANCE = "Move layers from this rank to the others, until their steps take equally long."
_COMPETING = (
    "Look for other processes on the cores of this rank, Python threads that hold its GIL, and too many threads "
    "(OMP_NUM_THREADS)."
)
_SAME_WORK = (
    "The rank runs as many matrix products and convolutions as the other ranks, with inputs of the same size. Look for other processes on "
    "its cores, and for Python threads that hold its GIL."
)
_LOOK = "Speed up this work on the late rank, or give each rank an equal share of it."


def _say(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    often = f" in {words['late_count']} of {words['steps']} steps" if words["late_count"] < words["steps"] else ""
    return Said(
        f"rank {words['rank']} is late{often} and causes {percent_text(words['fraction'])} of all waiting between ranks, "
        f"{_reason(words)}{words['cause']}{_more_calls(words)}",
        _way_out(words),
    )


def _reason(words: Mapping[str, Any]) -> str:
    """Return the words that come before the cause in the finding."""
    if words["is_spread"]:
        return "for many small reasons, the largest of which is "
    return "because it takes longer to do the same work, mostly for " if has_same_work(words) else "mostly because of "


def _more_calls(words: Mapping[str, Any]) -> str:
    if not _has_more_calls(words):
        return ""
    return f"; it runs {number_text(words['times_as_many'], digits=2)} times as many matrix products and convolutions as the other ranks"


def _has_more_calls(words: Mapping[str, Any]) -> bool:
    return words["kind"] in WORK and (words["times_as_many"] or 0) >= MORE_CALLS


def _way_out(words: Mapping[str, Any]) -> str:
    """Return advice about a late rank, which depends on the cause of the delay and on the rank's inputs."""
    by_name = next((advice for name, advice in _BY_NAME if re.search(name, words["cause"])), None)
    if by_name is not None:
        return by_name
    if _has_more_calls(words):
        return _BALANCE
    is_host = words["kind"] == "launch_delay" and not words["has_devices"]
    if words["is_spread"] or words["is_training"] or is_host:
        return _COMPETING
    return _SAME_WORK if has_same_work(words) else _WAY_OUT.get(words["kind"], _LOOK)


RULES = (
    JobRule(
        "late_rank",
        "a rank that causes much of the waiting of other ranks, with the cause of its delay",
        threshold=LEAST_CULPRIT,
        unit="of all waiting",
        reason="A rank that causes less than a tenth of the waiting is only one of many late ranks. "
        "The rule does not apply if most of the waiting for the rank is due to transfers or to a GPU that starts work late. If "
        "the delay has no clear cause, the rule applies only if chance is an unlikely explanation: if all ranks were equally "
        "fast, the probability that some rank is the latest in so many steps would be below 5 %.",
        source="https://doi.org/10.1145/2934661",
        analyses=("wait_causes",),
        check=late_ranks,
        say=_say,
        precedence=0,
        needs=needs_results("wait_causes"),
    ),
)
