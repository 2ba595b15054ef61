"""On which axis of parallelism does communication cost time?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from holotrace.analyses.parallelism.experts import PER_EXPERT_RANK, expert_findings, per_expert_rank
from holotrace.analyses.parallelism.one_rank import ParallelRank, parallel_rank
from holotrace.analyses.parallelism.pipeline import PER_STAGE, per_stage
from holotrace.enrich.across_ranks.axes import AXES, Axis, axes_of_groups
from holotrace.enrich.across_ranks.exposed import PARTS, divided_among_calls
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.uses import uses_of_groups
from holotrace.enrich.job.rank_tables import of_all_ranks, typed
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import Trace

_PER_AXIS = {
    "rank": pl.Int32,
    "axis": pl.String,
    "call_count": pl.Int64,
    "exposed_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "unmatched_ns": pl.Int64,
}
_PER_STEP = {
    "rank": pl.Int32,
    "step": pl.Int64,
    "axis": pl.String,
    "exposed_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "unmatched_ns": pl.Int64,
}
_PER_MODULE = {
    "axis": pl.String,
    "module": pl.String,
    "collective": pl.String,
    "call_count": pl.Int64,
    "exposed_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "unmatched_ns": pl.Int64,
}
_TIMES = ("exposed_ns", *PARTS)
_ADVICE = "describe the groups with init_device_mesh(mesh_dim_names=...) or new_group(group_desc=...)"
_AXIS: dict[str, pl.DataType | type[pl.DataType]] = {
    "axis": pl.String,
    "named_by": pl.String,
    "candidates": pl.List(pl.String),
}
_PER_GROUP: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_group": pl.String,
    "group_size": pl.Int64,
    "axis": pl.String,
    "named_by": pl.String,
    "candidates": pl.List(pl.String),
    "collectives": pl.List(pl.String),
}


@dataclass(frozen=True, eq=False, repr=False)
class Parallelism(Result):
    """The parallelism axes of a job and, for each axis, the communication that computation does not hide.

    per_axis         one row per rank and axis, sorted by both; the rows of a rank add up to its exposed time:

        rank          int32
        axis          str    pp, tp, cp, ep, fsdp, dp, world, or unknown
        call_count    int64
        exposed_ns    int64  time in which the rank communicates but does not compute; the sum of the three times below
        wait_ns       int64  waiting for other ranks
        transfer_ns   int64  moving data
        unmatched_ns  int64  time in calls that no other rank recorded: waiting or moving data

    per_step         one row per rank, step and axis: rank, step (null outside steps), axis, exposed_ns and its parts

    per_module       exposed time of all ranks, by the module that requested the communication, the longest first:

        axis, module (null if unknown), collective, call_count, exposed_ns and its parts

    per_group        one row for each process group in use and each of its axes:

        process_group  str
        group_size     int64
        axis           str
        named_by       str        what determined the axis: description, equal groups, collectives, or nothing
        candidates     list[str]  possible axes
        collectives    list[str]  collectives that the group runs for this axis

    per_stage        one row per pipeline rank and step:

        rank, step, process_group, stage, stage_count, microbatch_count, step_ns, computation_ns,
        transfer_ns        int64    exposed transfer in sends and receives
        bubble_ns          int64    exposed waiting in sends and receives
        bubble_fraction    float64  bubble_ns / step_ns
        expected_fraction  float64  (p - 1) / (m + p - 1) for a schedule with p equal stages and m microbatches

    per_expert_rank  one row per expert-parallel group and rank, for ranks that recorded split sizes of all-to-alls or
                     the shapes of grouped matrix products:

        process_group       str      null if the experts' group is unknown; in this case, all ranks with grouped
                                     products are compared with each other
        rank                int32
        call_count          int64    all-to-alls with recorded splits
        sent_tokens         int64
        received_tokens     int64
        imbalance           float64  tokens received for this rank's experts, divided by the group's mean
        product_count       int64    grouped matrix products
        computed_tokens     int64    rows of the grouped products; a token counts once for each product that contains it
        expert_count        int64    largest number of experts in one product
        computed_imbalance  float64  computed_tokens divided by the group's mean

    findings         ambiguous axes, experts that get uneven numbers of tokens, and missing data

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.parallelism(small_job()).answer.split("; ")[0]
    '100.0 % of the exposed communication (800 µs over all ranks) is on groups whose axis is unknown'
    """

    per_axis: pl.DataFrame
    per_step: pl.DataFrame
    per_module: pl.DataFrame
    per_group: pl.DataFrame
    per_stage: pl.DataFrame
    per_expert_rank: pl.DataFrame
    findings: tuple[str, ...] = ()


def parallelism(trace: Trace, *, executor: Executor = IN_PROCESS) -> Parallelism:
    """Find the axis of every process group, and divide exposed communication among the axes.

    The description of a group (`mesh_tp`, `DATA_PARALLEL_GROUP`) determines its axis. A group without a description
    gets the axis of the described groups that have the same size and stride. If there are no such groups, the kinds
    of collectives that the group uses suggest its axis. If two axes fit, both are candidates, and the axis is
    `unknown`. A group with several purposes, such as all-to-alls of experts and all-reduces of gradients, has one axis
    for each purpose.

    Time is exposed if the rank communicates but does not compute. Every exposed nanosecond is attributed to exactly
    one call, so the times of the axes add up to the total. While several calls run at once, the time is attributed to
    the first of their axes in this order: pp, tp, cp, ep, fsdp, dp, world, unknown.

    Args:
        trace: the job.
        executor: processes each rank.

    Source: docs/reference/analyses/parallelism.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.parallelism(small_job()).per_axis.select("rank", "exposed_ns", "wait_ns", "transfer_ns").rows()
    [(0, 600000, 400000, 200000), (1, 200000, 0, 200000)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[ParallelRank, Parallelism]:
    """Return the two functions of `parallelism`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(parallel_rank, _combine)


def _combine(ranks: dict[int, ParallelRank]) -> Parallelism:
    job = job_calls({rank: known.communicating for rank, known in ranks.items()})
    asked_by = of_all_ranks({rank: known.asked_by for rank, known in ranks.items()})
    steps = of_all_ranks({rank: known.steps for rank, known in ranks.items()})
    tokens = of_all_ranks({rank: known.tokens for rank, known in ranks.items()})
    products = of_all_ranks({rank: known.products for rank, known in ranks.items()})
    asked = job.calls.join(asked_by, on=["rank", "event_index"], how="left", maintain_order="left")
    axes = axes_of_groups(job.groups, uses_of_groups(asked))
    calls = _with_axis(asked, axes).with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    parts = _parts(calls, ranks)
    by_axis = _by_axis(parts)
    per_group = _per_group(calls)
    experts = per_expert_rank(calls, tokens, products)
    return Parallelism(
        typed(_per_axis(calls, by_axis), _PER_AXIS),
        typed(by_axis, _PER_STEP),
        typed(_per_module(calls, parts), _PER_MODULE),
        typed(per_group, _PER_GROUP),
        typed(_per_stage(calls, by_axis, steps, _pipelines(job.groups, calls)), PER_STAGE),
        typed(experts, PER_EXPERT_RANK),
        (*_findings(per_group), *expert_findings(experts), *job.findings),
    )


def _with_axis(calls: pl.DataFrame, axes: Mapping[int, Axis]) -> pl.DataFrame:
    """Add the columns axis, named_by and candidates to each call."""
    keys = calls.select("group", "collective").drop_nulls().unique(maintain_order=True)
    known = [(group, collective, axes[group].of(collective)) for group, collective in keys.iter_rows() if group in axes]
    rows = [(group, collective, axis.name, axis.named_by, list(axis.candidates)) for group, collective, axis in known]
    table = pl.DataFrame(rows, {"group": pl.UInt64, "collective": pl.String, **_AXIS}, orient="row")
    joined = calls.join(table, on=["group", "collective"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("axis").fill_null("unknown"))


def _parts(calls: pl.DataFrame, ranks: Mapping[int, ParallelRank]) -> pl.DataFrame:
    """Divide the exposed time into wait_ns, transfer_ns and unmatched_ns, for each rank, call (`row`) and step."""
    of_rank = calls.partition_by("rank", as_dict=True)
    divided = [
        divided_among_calls(known.exposed, of_rank.get((rank,), calls.clear()), AXES).with_columns(
            pl.lit(rank, pl.Int32).alias("rank")
        )
        for rank, known in ranks.items()
    ]
    return (
        pl.concat(divided)
        .join(calls.select("row", "axis"), on="row", how="left")
        .with_columns(pl.col("axis").fill_null("unknown"), pl.sum_horizontal(PARTS).alias("exposed_ns"))
    )


def _by_axis(parts: pl.DataFrame) -> pl.DataFrame:
    sums = parts.group_by("rank", "step", "axis").agg(pl.col(*_TIMES).sum())
    return sums.sort("rank", "step", _place(), nulls_last=True)


def _per_axis(calls: pl.DataFrame, by_axis: pl.DataFrame) -> pl.DataFrame:
    counts = calls.group_by("rank", "axis").len("call_count")
    sums = by_axis.group_by("rank", "axis").agg(pl.col(*_TIMES).sum())
    both = counts.join(sums, on=["rank", "axis"], how="full", coalesce=True)
    return both.with_columns(pl.col("call_count", *_TIMES).fill_null(0)).sort("rank", _place())


def _place() -> pl.Expr:
    return pl.col("axis").replace_strict({axis: place for place, axis in enumerate(AXES)}, return_dtype=pl.Int64)


def _per_module(calls: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    keys = ["axis", "module", "collective"]
    per_call = parts.group_by("row").agg(pl.col(*_TIMES).sum())
    joined = calls.select("row", *keys).join(per_call, on="row", how="left").group_by(keys)
    sums = joined.agg(pl.len().alias("call_count"), pl.col(*_TIMES).sum())
    return sums.sort("exposed_ns", *keys, descending=[True, False, False, False], nulls_last=True)


def _per_group(calls: pl.DataFrame) -> pl.DataFrame:
    known = calls.drop_nulls("group").sort("group")
    uses = known.group_by("group", "process_group", *_AXIS).agg(
        pl.col("group_size").max(), pl.col("collective").unique().sort().alias("collectives")
    )
    return uses.sort(_place(), "process_group", pl.col("collectives").list.first())


def _pipelines(groups: pl.DataFrame, calls: pl.DataFrame) -> dict[int, list[int]]:
    """Return, for each pipeline with known ranks, the group and its ranks in order."""
    piped = calls.filter(pl.col("axis") == "pp")["group"].unique()
    known = groups.filter(pl.col("group").is_in(piped.implode()) & pl.col("ranks").is_not_null())
    return dict(known.select("group", "ranks").iter_rows())


def _per_stage(
    calls: pl.DataFrame, by_axis: pl.DataFrame, steps: pl.DataFrame, pipelines: Mapping[int, list[int]]
) -> pl.DataFrame:
    lengths = steps.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("step_ns"))
    names = calls.select("group", "process_group").drop_nulls().unique()
    stages = per_stage(calls, lengths, by_axis, pipelines).join(names, on="group", how="left")
    return stages.sort("process_group", "stage", "step")


def _findings(per_group: pl.DataFrame) -> tuple[str, ...]:
    return (*_several_axes(per_group), *_ambiguous(per_group))


def _several_axes(per_group: pl.DataFrame) -> Iterator[str]:
    """Name the groups with several axes, and the collectives of each axis."""
    purposes = pl.format("{} for {}", pl.col("collectives").list.join(", "), pl.col("candidates").list.join(" or "))
    several = (
        per_group.group_by("group", "process_group", maintain_order=True)
        .agg(purposes.alias("purposes"))
        .filter(pl.col("purposes").list.len() > 1)
    )
    for (purposes_text,), of_kind in several.with_columns(pl.col("purposes").list.join("; ")).group_by(
        "purposes", maintain_order=True
    ):
        names = of_kind["process_group"].to_list()
        yield f"{_listed(names)} serve{'s'[: len(names) == 1]} several axes of parallelism: {purposes_text}"


def _ambiguous(per_group: pl.DataFrame) -> Iterator[str]:
    undecided = per_group.filter(pl.col("candidates").list.len() > 1).with_columns(
        pl.col("candidates").list.join(" or ").alias("may_be"), (pl.col("named_by") == "description").alias("is_named")
    )
    for (may_be, is_named), groups in undecided.group_by("may_be", "is_named", maintain_order=True):
        reason = (
            "the description names all of these axes"
            if is_named
            else f"the collectives fit all of these axes; {_ADVICE}"
        )
        yield f"the axis of {_listed(groups['process_group'].to_list())} may be {may_be}: {reason}"


def _listed(groups: list[str]) -> str:
    """Name the first group, and state how many other groups there are."""
    others = len(groups) - 1
    return f"process group {groups[0]}" + (f" and {others:,} like it" if others else "")
