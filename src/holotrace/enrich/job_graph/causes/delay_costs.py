"""Compute how long ranks wait because of each cause, as Scalasca's delay analysis does.

Source: Böhme et al., "Identifying the Root Causes of Wait States in Large-Scale Parallel Applications", ACM Transactions on
Parallel Computing 3(2), 2016, https://doi.org/10.1145/2934661
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.propagation import Shares, pass_on
from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.job_graph.causes.histories import Histories
from holotrace.enrich.job_graph.causes.job_causes import BEFORE_RECORDING, CLOCKS, UNMATCHED, JobCauses, job_causes
from holotrace.enrich.job_graph.causes.time_spent import time_spent
from holotrace.enrich.job_graph.causes.waits import (
    BY_CLOCKS,
    NOT_TOGETHER,
    WITHOUT_COUNTERPART,
    explained,
    waits_between,
)

_Rows = npt.NDArray[np.int64]

_OF_A_CALL = (
    "instance",
    "rank",
    "call",
    "step",
    "collective",
    "start_ns",
    "wait_ns",
    "aligned_start_ns",
    "clock",
    "half_width_ns",
    "transfer_basis",
)


@dataclass(frozen=True, eq=False)
class DelayCosts(EqualByContent):
    """How much waiting each cause is responsible for.

    costs  one row per step, cause and waiting rank; the costs of all rows add up to the job's total wait:

        step           int64   step of the wait; null outside all steps
        cause_rank     int32   null if it is unknown
        waiting_rank   int32
        cause          Enum    `CAUSES`
        name, module, frame  str
        cost_ns        int64
        error_ns       int64   how far cost_ns may be off, because several causes explain the same time or because
                               clocks are inexact
        wait_count     int64   number of operations in which a rank waited directly for this cause, over all steps and
                               waiting ranks
        first_instance int64   the first operation counted in wait_count; null if no rank waited directly for this cause
        first_ns       int64   start of `first_instance` on cause_rank, by the clock of cause_rank

    waits  one row per call that waited: instance, rank, step, wait_ns (0 outside the chosen steps), and passed_on_ns,
           the waiting that this wait caused later in the job
    """

    costs: pl.DataFrame
    waits: pl.DataFrame


def delay_costs(
    calls: pl.DataFrame, histories: Mapping[int, Histories], steps: Sequence[int] | None = None
) -> DelayCosts:
    """Divide the waits of a job among their causes.

    In a communication, rank b waits for rank a, which arrives last. t_a(p) and t_b(p) are the times that the two ranks
    have spent on cause p since the previous communication of all ranks that take part in this one. Then:

        excess(p) = max(0, t_a(p) - t_b(p))
        cost(p)   = wait_b * excess(p) / sum of excess

    If rank a itself has waited for other ranks since that previous communication, each of these waits is also a cause
    p. It is divided among its own causes in the same way, until only causes remain that are not waits.

    Args:
        calls: `JobCalls.calls`, with the column `call` of `with_call_rows`.
        histories: {rank: what the rank did before its calls}.
        steps: if given, divide only the waits in these steps.
    """
    known = calls.select(_OF_A_CALL)
    timed = known.filter(
        pl.all_horizontal(pl.col("instance", "wait_ns").is_not_null()) & pl.col("rank").is_in(list(histories))
    )
    matched = timed.filter(pl.len().over("instance") > 1).sort("instance", "rank")
    waits = waits_between(matched)
    causes = job_causes(histories, calls["collective"])
    spent = time_spent(matched, known, waits, histories, causes)
    return _costs(waits, explained(waits, spent), causes, steps)


def with_call_rows(calls: pl.DataFrame, of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Add the column `call` to the calls of a job: the row of each call in its rank's `OfRank.calls`."""
    rows = [
        known.calls.select(pl.lit(rank, pl.Int32).alias("rank"), "event_index").with_row_index("call")
        for rank, known in of_ranks.items()
    ]
    numbered = pl.concat(rows).cast({"call": pl.Int64})
    return calls.join(numbered, on=["rank", "event_index"], how="left", maintain_order="left")


def _costs(waits: pl.DataFrame, targets: pl.DataFrame, causes: JobCauses, steps: Sequence[int] | None) -> DelayCosts:
    ends = targets.filter(pl.col("upstream").is_null()).select("cause_rank", "cause").unique()
    ends = ends.sort("cause_rank", "cause").with_row_index("end").cast({"end": pl.Int64})
    rows = targets.join(ends, on=["cause_rank", "cause"], how="left", nulls_equal=True).with_columns(
        pl.when(pl.col("upstream").is_null()).then(-1 - pl.col("end")).otherwise("upstream").alias("target")
    )
    rows = _in_order(rows)
    waiting = waits.drop_nulls("wait").sort("wait")
    first = np.searchsorted(rows["wait"].to_numpy(), np.arange(len(waiting) + 1)).astype(np.int64)
    shares = Shares(first, rows["target"].to_numpy(), rows["weight"].to_numpy())
    labels = (
        waiting.select("step", "rank").unique(maintain_order=True).with_row_index("label").cast({"label": pl.Int64})
    )
    start = waiting.join(labels, on=["step", "rank"], how="left", nulls_equal=True, maintain_order="left")
    chosen = start if steps is None else start.filter(pl.col("step").is_in(list(steps)))
    arrived = pass_on(shares, *(chosen[name].to_numpy() for name in ("wait", "label", "wait_ns")))
    found = pl.DataFrame({"label": arrived.label, "end": -1 - arrived.target, "cost_ns": arrived.amount})
    known = _errors(rows, shares, chosen, arrived.received, found)
    costs = (
        found.join(labels.rename({"rank": "waiting_rank"}), on="label")
        .join(ends.join(_evidence(rows, waiting), on="end", how="left").join(known, on="end", how="left"), on="end")
        .with_columns(
            _named_row(causes), (pl.col("cost_ns") * pl.col("error_share")).round().cast(pl.Int64).alias("error_ns")
        )
        .join(
            causes.table.rename({"cause": "kind"}).with_row_index("row").cast({"row": pl.Int64}), on="row", how="left"
        )
    )
    named = costs.select(
        "step",
        "cause_rank",
        "waiting_rank",
        pl.col("kind").alias("cause"),
        "name",
        "module",
        "frame",
        "cost_ns",
        "error_ns",
        "wait_count",
        "first_instance",
        "first_ns",
    )
    is_chosen = pl.col("wait").is_in(chosen["wait"].implode())
    passed = waiting.select(
        "instance",
        "rank",
        "step",
        pl.when(is_chosen).then("wait_ns").otherwise(0).alias("wait_ns"),
        pl.Series("passed_on_ns", arrived.received),
    )
    order = ["cost_ns", "step", "cause_rank", "waiting_rank", "cause", "name", "module", "frame"]
    ordered = named.sort(order, descending=[True, *[False] * (len(order) - 1)], nulls_last=True)
    return DelayCosts(ordered, passed)


def _errors(
    rows: pl.DataFrame, shares: Shares, chosen: pl.DataFrame, received: _Rows, found: pl.DataFrame
) -> pl.DataFrame:
    """Return how far the cost of each final cause may be off, as a fraction of this cost.

    A cause is final if it is not itself a wait. Each wait passes its error on to its causes, just as it passes on its
    cost.
    """
    reached = received.copy()
    np.add.at(reached, chosen["wait"].to_numpy(), chosen["wait_ns"].to_numpy())
    totals = pl.col("weight").sum().over("wait")
    off = rows.with_columns(
        (pl.Series("reached", reached[rows["wait"].to_numpy()]) * pl.col("error") / totals)
        .round()
        .cast(pl.Int64)
        .alias("off")
    ).filter(pl.col("off") > 0)
    led = off.drop_nulls("upstream")
    passed = pass_on(shares, led["upstream"].to_numpy(), np.zeros(len(led), np.int64), led["off"].to_numpy())
    direct = off.filter(pl.col("upstream").is_null()).select("end", "off")
    indirect = pl.DataFrame({"end": -1 - passed.target, "off": passed.amount})
    errors = pl.concat([direct, indirect]).group_by("end").agg(pl.col("off").sum())
    costs = found.group_by("end").agg(pl.col("cost_ns").sum().alias("total"))
    share = (pl.col("off").fill_null(0) / pl.col("total")).alias("error_share")
    return costs.join(errors, on="end", how="left").select("end", share)


def _named_row(causes: JobCauses) -> pl.Expr:
    row_of = causes.row_of_unknown()
    names = {NOT_TOGETHER: BEFORE_RECORDING, BY_CLOCKS: CLOCKS, WITHOUT_COUNTERPART: UNMATCHED}
    return pl.col("cause").replace({code: row_of[name] for code, name in names.items()}).alias("row")


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort by wait and target, with one combined key, because sorting by two columns takes five times as long."""
    wait, target = rows["wait"].to_numpy(), rows["target"].to_numpy()
    return rows[np.argsort(wait * (int(np.ptp(target)) + 1) + target, kind="stable")] if len(rows) else rows


def _evidence(rows: pl.DataFrame, waiting: pl.DataFrame) -> pl.DataFrame:
    direct = rows.filter(pl.col("end").is_not_null()).join(waiting.select("wait", "instance", "late_ns"), on="wait")
    return direct.group_by("end").agg(
        pl.col("instance").n_unique().cast(pl.Int64).alias("wait_count"),
        pl.col("instance").min().alias("first_instance"),
        pl.col("late_ns").get(pl.col("instance").arg_min()).alias("first_ns"),
    )
