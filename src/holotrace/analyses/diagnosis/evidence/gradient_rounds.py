"""Count how often a rank reduces its gradients before it updates the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import holding, intervals_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.collectives.collectives import communication
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind

_FORWARD = "DistributedDataParallel.forward"
_UPDATE = r"^Optimizer\.step#"
_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)


class GradientRounds(NamedTuple):
    """How often DistributedDataParallel reduces the same gradients before a weight update.

    per_update         mean number of reductions before each weight update
    needless_fraction  0..1: share of the reduction time that is not spent in the last reduction before an update
    """

    per_update: float
    needless_fraction: float


ONE_PER_UPDATE = GradientRounds(1.0, 0.0)
"""The result for a job that reduces its gradients once per update, or never."""


def gradient_rounds(evidence: RankEvidence) -> GradientRounds:
    """Count how often the same gradients are reduced before each weight update.

    A round begins with a forward pass of DistributedDataParallel. A round counts only if it reduces as many
    bytes as the last round before the update. This excludes rounds that only reduce metrics, and rounds of other
    models, whose gradients differ in size.

    If the optimizer itself runs forward passes, as LBFGS does, it needs the gradients of each pass, so
    `ONE_PER_UPDATE` is returned.
    """
    rounds = _rounds(evidence)
    if rounds.is_empty():
        return ONE_PER_UPDATE
    of_update = ["group", "update"]
    last_bytes = pl.col("byte_count").last().over(of_update)
    repeated = rounds.filter(pl.col("byte_count") == last_bytes)
    is_last = pl.col("round") == pl.col("round").max().over(of_update)
    needless_ns = int(repeated.filter(~is_last)["time_ns"].sum())
    most = repeated.group_by("group").agg(pl.len() / pl.col("update").n_unique(), pl.col("byte_count").sum())
    per_update = float(most.sort("byte_count")["len"][-1])
    return GradientRounds(per_update, needless_ns / max(1, int(rounds["time_ns"].sum())))


def _rounds(evidence: RankEvidence) -> pl.DataFrame:
    """Return the total byte_count and time_ns of the all-reduces in each round, sorted by group, update and round."""
    forward, updates = _ranges(evidence, f"^{_FORWARD}$"), _ranges(evidence, _UPDATE)
    begins = forward["start_ns"].to_numpy()
    if forward.is_empty() or updates.is_empty() or (holding(intervals_of(updates), begins) >= 0).any():
        return pl.DataFrame()
    calls = (
        communication(evidence.rank_trace)
        .filter(pl.col("family") == "all_reduce")
        .drop_nulls(["asked_ns", "byte_count"])
    )
    calls = calls.filter(pl.Series(holding(evidence.step_windows, calls["asked_ns"].to_numpy()) >= 0))
    asked = calls["asked_ns"].to_numpy()
    placed = calls.with_columns(
        pl.Series("round", np.searchsorted(begins, asked, side="right")),
        pl.Series("update", np.searchsorted(updates["start_ns"].to_numpy(), asked, side="right")),
        (pl.col("end_ns") - pl.col("start_ns")).alias("time_ns"),
    )
    of_round = placed.filter(pl.col("round") > 0).group_by("group", "update", "round")
    return of_round.agg(pl.col("byte_count", "time_ns").sum()).sort("group", "update", "round")


def _ranges(evidence: RankEvidence, pattern: str) -> pl.DataFrame:
    names = names_matching(evidence.rank_trace, pattern)
    rows = event_ranges(evidence.rank_trace, _KINDS, ["start_ns", "end_ns"], names=names)
    return rows.sort("start_ns")
