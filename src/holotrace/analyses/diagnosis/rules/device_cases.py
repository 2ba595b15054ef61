"""Cases about device work: what explains time, what mending it saves, and where to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, intersection, union
from holotrace.analyses.diagnosis.rank_evidence import RankEvidence, intervals_of
from holotrace.analyses.diagnosis.rule import Case, Place
from holotrace.enrich.critical_path.what_if import Scale
from holotrace.enrich.host.call_stack import call_stacks

LEAST_SHARE = 0.03
"""Rules about device work apply if mending the cause saves this share of the step or more."""

LAYOUT_KERNELS = r"(?i)nchwToNhwc|nhwcToNchw|batched_transpose|AddPadding"
"""Kernels by which cuDNN and MIOpen convert their inputs and results; https://docs.nvidia.com/deeplearning/performance/
dl-performance-convolutional/index.html (tensor layouts)."""

_BRIDGED_NS = 20_000
"""Python runs this long between two operators under the profiler."""

DURATION, FLOOR = pl.col("duration_ns"), pl.col("floor_ns")


def attained(share: float) -> pl.Expr:
    """Return what work saves if it reaches this share of the peak; 0 if its lower bound is unknown."""
    return (DURATION - FLOOR / share).clip(lower_bound=0).fill_null(0.0)


def case_of(
    evidence: RankEvidence,
    rows: pl.DataFrame,
    *,
    subject: str = "",
    words: Mapping[str, Any] | None = None,
    waits: Intervals | None = None,
) -> Case:
    """Return the case of these rows of `RankEvidence.costed`.

    Args:
        evidence: the rank.
        rows: at least one row, with `saved_ns`: what mending the cause saves of its time.
        subject: tells several cases of one rule apart.
        words: what the sentences need besides; `kernel`, `operator`, `count` per step and `shape` are there already.
        waits: time without device work that the cause also explains, all of which mending it saves.
    """
    busy = intervals_of(rows)
    explained = busy if waits is None else union(*concatenated([busy, waits]))
    length = max(1, covered_length(*explained))
    saved = rows["saved_ns"].sum() / max(1, rows["duration_ns"].sum()) * covered_length(*busy)
    fraction = min(1.0, (saved + (0 if waits is None else covered_length(*waits))) / length)
    first = rows.row(int(rows["saved_ns"].arg_max() or 0), named=True)
    told = {
        "kernel": first["kernel"],
        "operator": first["operator"],
        "count": rows.height / evidence.step_count,
        **(words or {}),
    }
    value = length * fraction / evidence.time_ns if evidence.time_ns else 0.0
    changed = _events(evidence, rows, with_host=waits is not None)
    change = Scale(pl.col("event_index").is_in(changed.implode()), 1 - fraction)
    return Case(explained, value, fraction, rows.height, subject, place_of(evidence, first), change, told)


def place_of(evidence: RankEvidence, row: Mapping[str, Any]) -> Place:
    """Return the place of a row of `RankEvidence.costed`, with what the host did when it launched the row."""
    activity = evidence.activity_at(row["launch_start_ns"])
    return Place(
        activity.get("module"),
        row["operator"],
        row["kernel"],
        activity.get("frame"),
        row["event_index"],
        row["start_ns"],
    )


def idle_while_called(evidence: RankEvidence, rows: pl.DataFrame) -> Intervals:
    """Return when no device works and the host runs the operators of these rows, or little Python between them."""
    stacks = call_stacks(evidence.rank_trace)
    called = stacks[rows["row"].filter(rows["row"] >= 0).unique().cast(pl.UInt32)]
    starts, ends = union(called["start_ns"].to_numpy(), called["end_ns"].to_numpy() + _BRIDGED_NS)
    return intersection((starts, np.maximum(starts, ends - _BRIDGED_NS)), evidence.idle)


def _events(evidence: RankEvidence, rows: pl.DataFrame, *, with_host: bool) -> pl.Series:
    """Return the events that a change makes shorter: the work and, if the host also gains, its launches and operators."""
    events = rows["event_index"]
    if not with_host:
        return events
    called = call_stacks(evidence.rank_trace)["event_index"][rows["row"].filter(rows["row"] >= 0).cast(pl.UInt32)]
    return pl.concat([events, rows["launch_index"].drop_nulls(), called]).unique()
