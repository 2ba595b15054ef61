"""The rule about ranks that get longer sequences or larger batches than other ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, RankCase, Said
from holotrace.analyses.diagnosis.rules.needs import needs_results
from holotrace.analyses.diagnosis.rules.ranks.experts import WORK, overloaded
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import mean_costs, steps_of, wait_count
from holotrace.units import number_text

_UNEVEN = 1.2
_MOSTLY = 0.8

MORE_CALLS = 1.2
"""A rank has more work than the other ranks if its number of calls is at least this multiple of theirs."""

_LARGER = {"step": pl.Int64, "cause_rank": pl.Int32, "times": pl.Float64}


def uneven_inputs(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the time that ranks spend waiting for a rank that works on larger inputs."""
    causes = evidence.results["wait_causes"]
    caused = _for_larger_inputs(evidence, causes.per_cause.drop_nulls(["step", "cause_rank"]))
    costs = mean_costs(evidence, caused.rename({"waiting_rank": "rank"}), "cost_ns", step_count=steps_of(causes))
    if not costs:
        return
    of_ranks = caused.group_by("cause_rank").agg(pl.col("cost_ns").sum()).sort("cost_ns", descending=True)
    rank, cost_ns = of_ranks.row(0)
    total_ns = float(caused["cost_ns"].sum())
    is_one = cost_ns >= _MOSTLY * total_ns
    times = float((caused["times"] * caused["cost_ns"]).sum()) / total_ns
    words = {
        "rank": rank if is_one else None,
        "times": times,
        "steps": caused["step"].n_unique(),
        "of": steps_of(causes),
    }
    yield JobCase(costs, times, rank if is_one else None, wait_count(caused), words=words)


def without_larger_inputs(evidence: JobEvidence, per_cause: pl.DataFrame) -> pl.DataFrame:
    """Drop the rows of `per_cause` in which larger inputs explain the waiting."""
    explained = _for_larger_inputs(evidence, per_cause).select("row")
    return per_cause.with_row_index("row").join(explained, on="row", how="anti").drop("row")


def times_as_many_calls(evidence: JobEvidence, rank: int) -> float | None:
    """Return a rank's number of matrix products, convolutions and embeddings as a multiple of the median of its peers.

    None in any of these cases:

    - Shapes were not recorded.
    - The rank has larger inputs than peers that make the same number of calls.
    - The experts of some rank get too many tokens.
    """
    if any(rank == larger for larger in _larger(evidence)["cause_rank"]):
        return None
    counts = {number: [size.call_count for size in of.input_sizes.values()] for number, of in evidence.ranks.items()}
    own, others = counts.pop(rank), [fmean(of_rank) for of_rank in counts.values() if of_rank]
    return fmean(own) / median(others) if own and others and not overloaded(evidence) else None


def _for_larger_inputs(evidence: JobEvidence, per_cause: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `per_cause` in which ranks wait for work on larger inputs; `row` is the number of each row."""
    is_work = pl.col("cause").is_in(WORK)
    return per_cause.with_row_index("row").filter(is_work).join(_larger(evidence), on=["step", "cause_rank"])


def _larger(evidence: JobEvidence) -> pl.DataFrame:
    """Return the steps in which a rank has larger inputs than its median peer; peers make the same number of calls."""
    rows = []
    steps = {step for rank in evidence.ranks.values() for step in rank.input_sizes}
    for step in sorted(steps) if not overloaded(evidence) else ():
        sizes = {rank: of.input_sizes[step] for rank, of in evidence.ranks.items() if step in of.input_sizes}
        for rank, size in sizes.items():
            peers = [
                of.element_count for other, of in sizes.items() if other != rank and of.call_count == size.call_count
            ]
            if peers and size.element_count >= _UNEVEN * median(peers):
                rows.append((step, rank, size.element_count / median(peers)))
    return pl.DataFrame(rows, _LARGER, orient="row")


def _say(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    often = f" in {words['steps']} of {words['of']} steps" if words["steps"] < words["of"] else ""
    larger = f"{number_text(words['times'], digits=2)} times as many elements as the inputs of its peers"
    finding = (
        f"the other ranks wait for rank {words['rank']}, whose inputs have {larger}{often}"
        if words["rank"] is not None
        else f"ranks wait for each other, each time for the rank whose inputs have {larger}{often}"
    )
    return Said(
        finding,
        "Give ranks inputs of equal size in each step: pack sequences, sort samples by length, or balance tokens instead of samples.",
    )


RULES = (
    JobRule(
        "uneven_inputs",
        "ranks whose sequences or batches are larger than those of other ranks",
        threshold=_UNEVEN,
        unit="times the input elements of the median rank",
        reason="A rank's work grows at least in proportion to the size of its inputs. If a rank's inputs are less than a "
        "fifth larger than those of the median rank, other differences between ranks matter just as much.",
        source="https://arxiv.org/abs/2505.05713",
        analyses=("parallelism", "wait_causes"),
        check=uneven_inputs,
        say=_say,
        precedence=0,
        needs=needs_results("wait_causes"),
    ),
)
"""The rule about larger inputs."""
