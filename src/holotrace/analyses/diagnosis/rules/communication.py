"""Rules about communication that computation does not hide: by axis, small calls, slow links, pipelines, experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, RankCase, Said
from holotrace.analyses.diagnosis.rules.late_ranks import ONE_RANK
from holotrace.enrich.job_graph.causes.roles import CULPRIT
from holotrace.units import percent_text

_SHARE = 0.05
_TRANSFER = "https://docs.pytorch.org/tutorials/beginner/ddp_series_theory.html"

_HIDING = {
    "dp": "Give DDP larger or fewer buckets (bucket_cap_mb), set gradient_as_bucket_view=True, and check that backward still runs "
    "when the last bucket is sent; send gradients in bfloat16 (a communication hook) if the link is the limit.",
    "fsdp": "Prefetch the next unit (set_modules_to_forward_prefetch), wrap larger units, or keep parameters gathered after "
    "forward (reshard_after_forward=False) where memory allows.",
    "tp": "Keep tensor parallelism within a node, use sequence parallelism, and overlap the products with the communication "
    "(torch.distributed.tensor.parallel with async tensor parallelism).",
    "ep": "Overlap the exchange of tokens with the shared experts or another microbatch, and keep experts within a node.",
    "pp": "Send activations on a stream of their own, and give each stage more microbatches to hide the sends behind.",
    "cp": "Overlap each ring exchange with the attention of the block at hand.",
}
_HIDING_OTHER = "Start the communication earlier, or on another stream, so that computation hides it."


def exposed_transfers(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each axis whose data moves while nothing computes."""
    per_step = evidence.results["parallelism"].per_step.drop_nulls("step")
    for (axis,), rows in per_step.group_by("axis", maintain_order=True):
        costs = _mean_costs(evidence, rows, "transfer_ns")
        yield JobCase(costs, _share(evidence, costs), subject=str(axis), words={"axis": axis})


def unknown_exposure(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the exposed communication of ranks without a partner, of which nobody knows how much is waiting."""
    costs = evidence.exposed_ns
    yield JobCase(costs, _share(evidence, costs), words={"ranks": len(costs)})


def pipeline_bubbles(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the time in which stages of a pipeline wait for each other."""
    stages = evidence.results["parallelism"].per_stage
    if stages.is_empty():
        return
    costs = _mean_costs(evidence, stages, "bubble_ns")
    measured, expected = (
        fmean(stages[name].drop_nulls().to_list() or [0.0]) for name in ("bubble_fraction", "expected_fraction")
    )
    words = {
        "measured": measured,
        "expected": expected,
        "stages": stages["stage_count"].max(),
        "microbatches": stages["microbatch_count"].max(),
    }
    yield JobCase(costs, measured, words=words)


def uneven_experts(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case if some ranks get many more tokens for their experts than others."""
    experts = evidence.results["parallelism"].per_expert_rank
    tokens = experts.with_columns(pl.coalesce("computed_imbalance", "imbalance").alias("uneven")).drop_nulls("uneven")
    if tokens.is_empty():
        return
    most = tokens.sort("uneven", descending=True).row(0, named=True)
    causes = evidence.results["wait_causes"]
    caused = causes.per_cause.drop_nulls("step").filter(pl.col("cause_rank") == most["rank"])
    costs = _mean_costs(evidence, caused.rename({"waiting_rank": "rank"}), "cost_ns", step_count=_steps_of(causes))
    if costs:
        yield JobCase(costs, most["uneven"], most["rank"], words={"rank": most["rank"], "times": most["uneven"]})


def small_calls(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each kind of collective whose small calls follow each other."""
    table = evidence.results["collectives"].per_collective.filter(pl.col("mergeable_count") > 0)
    for (name,), rows in table.group_by("collective", maintain_order=True):
        saved = int(rows["mergeable_ns"].sum())
        costs = {rank: saved / count for rank, count in evidence.step_count.items()}
        count = int(rows["mergeable_count"].sum())
        yield JobCase(
            costs, _share(evidence, costs), count=count, subject=str(name), words={"name": name, "count": count}
        )


def slow_parts(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each host, link or group whose transfers take longer than those of its peers."""
    for row in evidence.results["collectives"].slow.iter_rows(named=True):
        excess_ns = (row["median_transfer_ns"] - row["peer_transfer_ns"]) * row["instance_count"]
        costs = {rank: excess_ns / count for rank, count in evidence.step_count.items()}
        yield JobCase(costs, row["slowdown"], count=row["instance_count"], subject=str(row["part"]), words=row)


def uneven_work(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the waiting that no single rank causes: each is late in turn."""
    causes = evidence.results["wait_causes"]
    culprits = causes.per_rank.filter(pl.col("role") == CULPRIT)["rank"]
    rest = causes.per_cause.drop_nulls(["step", "cause_rank"]).filter(~pl.col("cause_rank").is_in(culprits.implode()))
    if rest.is_empty():
        return
    most = (
        rest.group_by("cause", "name", maintain_order=True)
        .agg(pl.col("cost_ns").sum())
        .sort("cost_ns", descending=True)
    )
    costs = _mean_costs(evidence, rest.rename({"waiting_rank": "rank"}), "cost_ns", step_count=_steps_of(causes))
    name = most["name"][0] or most["cause"][0]
    yield JobCase(
        costs,
        _share(evidence, costs),
        count=int(rest["wait_count"].sum()),
        words={"name": name, "culprits": len(culprits)},
    )


def _steps_of(causes: Any) -> int:  # noqa: ANN401 -- the result of wait_causes
    return max(1, int(causes.per_cause["step"].drop_nulls().n_unique()))


def _mean_costs(
    evidence: JobEvidence, rows: pl.DataFrame, column: str, *, step_count: int | None = None
) -> dict[int, float]:
    """Return the sum of a column per step of each rank that has rows."""
    sums = rows.group_by("rank").agg(pl.col(column).sum(), pl.col("step").n_unique().alias("steps")).sort("rank")
    return {rank: total / (step_count or steps) for rank, total, steps in sums.iter_rows() if rank in evidence.ranks}


def _share(evidence: JobEvidence, costs: dict[int, float]) -> float:
    mean_ns = sum(costs.values()) / len(evidence.ranks)
    return mean_ns / evidence.step_ns if evidence.step_ns else 0.0


def _say_transfer(cases: Sequence[RankCase]) -> Said:
    axis = cases[0].words["axis"]
    of = f"of the axis {axis}" if axis in _HIDING else "of an unknown axis"
    return Said(f"communication {of} moves data while nothing computes", _HIDING.get(axis, _HIDING_OTHER))


def _say_unknown(_: Sequence[RankCase]) -> Said:
    return Said(
        "communication that no computation hides, in calls that no other rank recorded",
        "Record all ranks and open them together: then holotrace says how much of it is waiting, and for whom.",
    )


def _say_bubble(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    schedule = (
        f"the schedule with {words['stages']} stages and {words['microbatches']} microbatches explains "
        f"{percent_text(words['expected'])}"
    )
    more = (
        "Balance the stages: move layers from the slowest one."
        if words["measured"] > 2 * words["expected"]
        else "Use more microbatches, or an interleaved or zero-bubble schedule."
    )
    return Said(
        f"stages of the pipeline wait for each other {percent_text(words['measured'])} of the step; {schedule}", more
    )


def _say_experts(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"the experts of rank {words['rank']} get {words['times']:.2g} times as many tokens as the mean, and the other ranks wait",
        "Raise the weight of the load-balancing loss or bias, set a capacity per expert, or move experts between ranks.",
    )


def _say_small(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['count']:,} small {words['name']} calls follow each other, and latency is most of their time",
        "Send them as one: larger buckets (bucket_cap_mb), coalesced or flattened tensors.",
    )


def _say_slow(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"transfers of {words['kind']} {words['part']} take {words['slowdown']:.2g} times as long as those of its peers "
        f"({words['collective']})",
        "Compare its network card, cable, PCIe link and congestion with those of its peers; run nccl-tests on it alone.",
    )


def _say_uneven(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    rest = "further waiting between ranks" if words["culprits"] else "waiting between ranks"
    return Said(
        f"{rest}, for which no single rank is to blame: each is late in turn, most often because of {words['name']}",
        "Give ranks equal work in each step (pack sequences to equal lengths, shuffle by cost), and keep jitter of hosts low.",
    )


def _needs(*names: str) -> Callable[[JobEvidence], str | None]:
    """Return a function that says why a rule cannot be checked if one of these results is missing."""

    def needs(evidence: JobEvidence) -> str | None:
        if len(evidence.ranks) == 1:
            return ONE_RANK
        return None if all(name in evidence.results for name in names) else "no communication was recorded"

    return needs


def _needs_one_rank(evidence: JobEvidence) -> str | None:
    return None if len(evidence.ranks) == 1 else ""


RULES = (
    JobRule(
        "slow_link",
        "hosts, links and groups whose transfers take longer than those of their peers",
        threshold=1.25,
        unit="times as long",
        reason="Below a quarter, equal links differ by chance.",
        source="docs/reference/analyses/collectives.md",
        analyses=("collectives",),
        check=slow_parts,
        say=_say_slow,
        precedence=0,
        needs=_needs("collectives"),
        confidence="medium",
    ),
    JobRule(
        "uneven_experts",
        "ranks whose experts get more tokens than others",
        threshold=1.2,
        unit="of the mean rank",
        reason="Routers that balance well stay within 10 to 20 % of the mean.",
        source="https://arxiv.org/abs/2101.03961",
        analyses=("parallelism", "wait_causes"),
        check=uneven_experts,
        say=_say_experts,
        precedence=1,
        needs=_needs("parallelism", "wait_causes"),
        confidence="medium",
    ),
    JobRule(
        "pipeline_bubble",
        "waiting between the stages of a pipeline, beside what its schedule explains",
        threshold=0.10,
        unit="of the step",
        reason="Good schedules lose less than a tenth.",
        source="https://arxiv.org/abs/2104.04473",
        analyses=("parallelism",),
        check=pipeline_bubbles,
        say=_say_bubble,
        precedence=1,
        needs=_needs("parallelism"),
    ),
    JobRule(
        "uneven_work",
        "waiting between ranks that no single rank causes",
        threshold=_SHARE,
        unit="of the step",
        reason="Ranks always differ by a few percent.",
        source="docs/reference/analyses/wait_causes.md",
        analyses=("wait_causes",),
        check=uneven_work,
        say=_say_uneven,
        precedence=2,
        needs=_needs("wait_causes"),
        confidence="medium",
    ),
    JobRule(
        "small_collectives",
        "small calls that follow each other and could be one",
        threshold=0.02,
        unit="of the step",
        reason="Merging calls costs code; below 2 % of the step it is not worth it.",
        source="docs/reference/analyses/collectives.md",
        analyses=("collectives",),
        check=small_calls,
        say=_say_small,
        precedence=1,
        needs=_needs("collectives"),
        confidence="medium",
    ),
    JobRule(
        "exposed_communication",
        "data that moves between ranks while nothing computes, by axis of parallelism",
        threshold=_SHARE,
        unit="of the step",
        reason="The last bucket of gradients can never be hidden; 5 % of a step are more than that.",
        source=_TRANSFER,
        analyses=("parallelism",),
        check=exposed_transfers,
        say=_say_transfer,
        precedence=2,
        needs=_needs("parallelism"),
    ),
    JobRule(
        "exposed_on_one_rank",
        "communication that nothing hides, if only one rank was opened",
        threshold=_SHARE,
        unit="of the step",
        reason="As for several ranks.",
        source=_TRANSFER,
        analyses=(),
        check=unknown_exposure,
        say=_say_unknown,
        precedence=2,
        needs=_needs_one_rank,
        confidence="low",
    ),
)
