"""How much faster would the job be without stragglers, if all ranks, stages and microbatches took equally long?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from holotrace.algorithms.summary import ratio
from holotrace.analyses.straggler_cost.scenarios import WORST_WORKERS, Scenarios
from holotrace.enrich.job.rank_tables import typed
from holotrace.enrich.job_operations.by_time import by_time
from holotrace.enrich.job_operations.dependencies import Dependencies, by_kind
from holotrace.enrich.job_operations.job_operations import job_operations
from holotrace.enrich.job_operations.rank_operations import RankOperations, rank_operations
from holotrace.enrich.job_operations.replay import Int64Array
from holotrace.enrich.job_operations.table import STEP_START, has_known_communication, operations_table
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import Trace
from holotrace.units import counted, duration_text

_PER_STEP = {
    "step": pl.Int64,
    "step_ns": pl.Int64,
    "replayed_ns": pl.Int64,
    "ideal_ns": pl.Int64,
    "slowdown": pl.Float64,
    "replay_error_fraction": pl.Float64,
}
_PER_KIND = {
    "operation_kind": pl.String,
    "operation_count": pl.Int64,
    "slowdown": pl.Float64,
    "mean_cost_ns": pl.Float64,
}
_PER_STAGE = {"stage": pl.Int64, "rank_count": pl.Int64, "slowdown": pl.Float64, "mean_cost_ns": pl.Float64}
_PER_REPLICA = {"dp_rank": pl.Int64, "rank_count": pl.Int64, "slowdown": pl.Float64, "mean_cost_ns": pl.Float64}
_PER_WORKER = {"rank": pl.Int32, "dp_rank": pl.Int64, "stage": pl.Int64, "slowdown": pl.Float64}
_PER_WORKER_STEP = {"rank": pl.Int32, "step": pl.Int64, "slowdown": pl.Float64}

_MERGED = {
    "forward-send": "forward-pp-comm",
    "forward-recv": "forward-pp-comm",
    "backward-send": "backward-pp-comm",
    "backward-recv": "backward-pp-comm",
}
"""S_t is computed for sends and receives together, because they are the two ends of a message."""


@dataclass(frozen=True, eq=False, repr=False)
class StragglerCost(Result):
    """The cost of stragglers, as in "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI'25.

    The job is replayed with the recorded times of all operations (T), with ideal times for all operations (T_ideal), and with
    recorded times for some operations and ideal times for the others. Slowdowns are ratios of mean step times; 1 means no loss.

    slowdown      S = T / T_ideal: how much slower stragglers make the job; null if T_ideal is 0
    worker_share  M_W = (T - T with ideal times for the slowest 3 % of workers) / (T - T_ideal); null if nothing is lost
    stage_share   M_S = (T - T with ideal times for the last stage) / (T - T_ideal); null if nothing is lost, or with a
                  single stage

    per_worker       one row per rank, the slowest first:

        rank, dp_rank, stage
        slowdown         float64  S_w: the slowdown of the rank's replica or of its stage, whichever is smaller

    per_step         one row per step:

        step
        step_ns          int64    recorded, from the first start to the last end over all ranks
        replayed_ns      int64    T: length in a replay without launch delays, and without waiting for ranks that were not
                                  recorded
        ideal_ns         int64    T_ideal
        slowdown         float64  replayed_ns / ideal_ns
        replay_error_fraction  float64  difference between step_ns and the length in a replay that keeps all recorded
                                        durations and each rank's recorded start of the step, as a share of step_ns

    per_kind         one row per kind of operation, the costliest first:

        operation_kind   str      forward-pp-comm and backward-pp-comm include both sends and receives
        operation_count  int64
        slowdown         float64  S_t: T if only these operations keep their recorded times, divided by T_ideal
        mean_cost_ns     float64  how much longer the mean ideal step becomes if these operations keep their recorded times

    per_stage        like per_kind, but one row per pipeline stage: stage, rank_count, slowdown, mean_cost_ns

    per_replica      like per_kind, but one row per replica of the model: dp_rank, rank_count, slowdown, mean_cost_ns

    per_worker_step  S_w of each rank and step: rank, step, slowdown

    findings         missing ranks, unmatched calls and unusual steps

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.straggler_cost(small_job()).answer
    "10.0 % of the job's time is lost to stragglers; the slowest workers cause most of this loss, especially rank 1."
    """

    slowdown: float | None
    worker_share: float | None
    stage_share: float | None
    per_worker: pl.DataFrame
    per_step: pl.DataFrame
    per_kind: pl.DataFrame
    per_stage: pl.DataFrame
    per_replica: pl.DataFrame
    per_worker_step: pl.DataFrame
    findings: tuple[str, ...] = ()


def straggler_cost(job: Trace | pl.DataFrame, *, executor: Executor = IN_PROCESS) -> StragglerCost:
    """Compute how much faster the job would be if all its ranks, stages, microbatches and steps took equally long.

    Args:
        job: a trace, or a table of operations, as returned by `holotrace.read_operations`.
        executor: processes each rank, if `job` is a trace.

    Raises:
        InvalidOperationsError: the table lacks a column or has invalid values.
        MissingDataError: no rank of the trace communicates.

    Source: docs/reference/analyses/straggler_cost.md explains the definitions and compares results with the paper.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> cost = holotrace.straggler_cost(small_job())
    >>> cost.per_worker["rank"][0]
    1
    """
    if isinstance(job, Trace):
        return plan().run(job, executor)
    operations = operations_table(job).with_row_index("row")
    follow = by_time if has_known_communication(operations) else by_kind
    return cost_of(operations, follow(operations))


def plan() -> Plan[RankOperations, StragglerCost]:
    """Return `straggler_cost` of a trace in two parts: one runs on each rank, the other combines the results of the ranks."""
    return Plan(rank_operations, _combine)


def _combine(ranks: dict[int, RankOperations]) -> StragglerCost:
    job = job_operations(ranks)
    if job.table.is_empty():
        return _nothing(job.findings)
    operations = job.table.with_row_index("row")
    dependencies = by_time(operations)
    return cost_of(operations, dependencies, (*job.findings, *_unmatched(operations, dependencies)))


def _unmatched(operations: pl.DataFrame, dependencies: Dependencies) -> tuple[str, ...]:
    """State how much time the ranks spend in communication with ranks that were not recorded."""
    alone = operations.filter(dependencies.is_alone)
    if alone.is_empty() or operations["rank"].n_unique() == 1:
        return ()
    length = duration_text(int(alone["duration_ns"].sum()))
    finding = (
        f"the waiting in {counted(len(alone), 'call')} ({length} over all ranks) is unknown, because no other rank recorded the "
        "counterpart; these calls are assumed to take the median time of their kind"
    )
    return (finding,)


def _nothing(findings: tuple[str, ...]) -> StragglerCost:
    """Return the result of a job without operations."""
    workers, steps, kinds, stages, replicas, squares = (
        pl.DataFrame(schema=schema)
        for schema in (_PER_WORKER, _PER_STEP, _PER_KIND, _PER_STAGE, _PER_REPLICA, _PER_WORKER_STEP)
    )
    return StragglerCost(None, None, None, workers, steps, kinds, stages, replicas, squares, findings)


def cost_of(operations: pl.DataFrame, dependencies: Dependencies, findings: tuple[str, ...] = ()) -> StragglerCost:
    """Return the cost of stragglers in a job that consists of these operations."""
    scenarios = Scenarios(operations, dependencies)
    kinds = operations["kind"].replace(_MERGED).alias("operation_kind").set(operations["kind"] == STEP_START, None)
    by_kinds, by_stage, by_replica = (
        scenarios.by_part(parts) for parts in (kinds, operations["stage"], operations["dp_rank"])
    )
    workers = _workers(operations, by_stage, by_replica)
    per_worker = _per_worker(workers, scenarios)
    return StragglerCost(
        scenarios.slowdown(scenarios.replayed_ns),
        scenarios.share(_of_worst(operations, per_worker)),
        scenarios.share((operations["stage"] == operations["stage"].max()).to_numpy()) if len(by_stage) > 1 else None,
        per_worker,
        _per_step(operations, scenarios),
        _per_kind(kinds, by_kinds, scenarios),
        _per_place(operations, "stage", by_stage, scenarios),
        _per_place(operations, "dp_rank", by_replica, scenarios),
        _per_worker_step(operations, workers, scenarios),
        findings,
    )


_Workers = dict[int, tuple[int, int, list[Int64Array]]]


def _workers(
    operations: pl.DataFrame, by_stage: Mapping[object, Int64Array], by_replica: Mapping[object, Int64Array]
) -> _Workers:
    """Return, for each rank, its dp_rank, its stage, and the step lengths in two replays.

    In the first replay, only the ranks of its replica keep their recorded times; in the second, only the ranks of its
    stage do.
    """
    places = operations.select("rank", "dp_rank", "stage").unique().sort("rank")
    return {
        rank: (dp_rank, stage, [by_replica[dp_rank], by_stage[stage]]) for rank, dp_rank, stage in places.iter_rows()
    }


def _per_worker(workers: _Workers, scenarios: Scenarios) -> pl.DataFrame:
    rows = [
        (rank, dp_rank, stage, min((scenarios.slowdown(steps) for steps in kept), key=lambda score: score or 0))
        for rank, (dp_rank, stage, kept) in workers.items()
    ]
    return pl.DataFrame(rows, _PER_WORKER, orient="row").sort("slowdown", "rank", descending=[True, False])


def _of_worst(operations: pl.DataFrame, per_worker: pl.DataFrame) -> np.ndarray:
    count = int(np.ceil(WORST_WORKERS * len(per_worker)))
    return operations["rank"].is_in(per_worker["rank"].head(count).implode()).to_numpy()


def _per_step(operations: pl.DataFrame, scenarios: Scenarios) -> pl.DataFrame:
    recorded = operations.group_by("step").agg(
        ((pl.col("start_ns") + pl.col("duration_ns")).max() - pl.col("start_ns").min()).alias("step_ns")
    )
    replays = {
        "replayed_ns": scenarios.replayed_ns,
        "ideal_ns": scenarios.ideal_ns,
        "unchanged_ns": scenarios.unchanged_ns,
    }
    steps = recorded.sort("step").hstack(pl.DataFrame(replays))
    slowdown, error = ratio("replayed_ns", "ideal_ns"), (ratio("unchanged_ns", "step_ns") - 1).abs()
    return typed(steps.with_columns(slowdown.alias("slowdown"), error.alias("replay_error_fraction")), _PER_STEP)


def _per_kind(kinds: pl.Series, by_kind: Mapping[object, Int64Array], scenarios: Scenarios) -> pl.DataFrame:
    counts = kinds.drop_nulls().value_counts(name="operation_count")
    table = _with_costs(counts, "operation_kind", by_kind, scenarios)
    return typed(table.sort("mean_cost_ns", "operation_kind", descending=[True, False]), _PER_KIND)


def _per_place(
    operations: pl.DataFrame, place: str, by_place: Mapping[object, Int64Array], scenarios: Scenarios
) -> pl.DataFrame:
    counts = operations.group_by(place).agg(pl.col("rank").n_unique().alias("rank_count"))
    types = _PER_STAGE if place == "stage" else _PER_REPLICA
    return typed(_with_costs(counts, place, by_place, scenarios).sort(place), types)


def _with_costs(
    table: pl.DataFrame, key: str, by_part: Mapping[object, Int64Array], scenarios: Scenarios
) -> pl.DataFrame:
    ideal = scenarios.ideal_ns.mean()
    costs = {
        key: list(by_part),
        "slowdown": [scenarios.slowdown(steps) for steps in by_part.values()],
        "mean_cost_ns": [steps.mean() - ideal for steps in by_part.values()],
    }
    return table.join(
        pl.DataFrame(costs, {key: table.schema[key], "slowdown": pl.Float64, "mean_cost_ns": pl.Float64}), on=key
    )


def _per_worker_step(operations: pl.DataFrame, workers: _Workers, scenarios: Scenarios) -> pl.DataFrame:
    steps = operations["step"].unique().sort().to_numpy()
    least = {rank: reduce(np.minimum, kept) for rank, (_, _, kept) in workers.items()}
    table = pl.concat(
        pl.DataFrame({"step": steps, "kept": kept, "ideal_ns": scenarios.ideal_ns}).with_columns(
            pl.lit(rank, pl.Int32).alias("rank")
        )
        for rank, kept in least.items()
    )
    return typed(table.with_columns(ratio("kept", "ideal_ns").alias("slowdown")), _PER_WORKER_STEP)
