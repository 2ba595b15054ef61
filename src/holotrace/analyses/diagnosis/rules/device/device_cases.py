"""Build cases about device work: the time lost, the time that a fix saves, and where to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, intersection, union, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import Case, Place
from holotrace.enrich.critical_path.what_if import Scale
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.source_lines import records_python
from holotrace.schema import LAUNCH_KINDS, EventKind

LEAST_SHARE = 0.03
"""Rules about device work apply if fixing the cause saves at least this share of the step."""

LAYOUT_KERNELS = r"(?i)nchwToNhwc|nhwcToNchw|batched_transpose|AddPadding"
"""Kernels with which cuDNN and MIOpen convert their inputs and results; see "tensor layouts" in
https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html."""

FIXED_NS = 2_000
"""Time that every kernel needs to start and drain; https://developer.nvidia.com/blog/cuda-graphs measures 2 µs."""

_LEAST_VALUE = 0.02
"""A case is replayed only if the fix typically saves at least this fraction of the rank's steady steps.

No rule in this folder reports a smaller saving.
"""

_PAUSE_NS = 200_000
"""A longer pause between two calls ends a span. Even under the profiler, the Python code between two calls in the same
function takes less time."""

_HOST_KINDS = (EventKind.CPU_OP, *LAUNCH_KINDS)

DURATION, FLOOR = pl.col("duration_ns"), pl.col("floor_ns")


def attained(share: float | pl.Expr, best: float | pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the columns `saved_ns` and `most_ns` that `case_of` reads.

    `saved_ns` is the typical saving: the time saved if kernels reach the fraction `share` of the peak. `most_ns` is the
    largest possible saving: the time saved if kernels reach the fraction `best` of the peak. If the lower bound of a
    kernel's time is unknown, both savings are 0.
    """
    typical_ns, most_ns = ((DURATION - FLOOR / part).clip(lower_bound=0).fill_null(0.0) for part in (share, best))
    return typical_ns.alias("saved_ns"), most_ns.alias("most_ns")


def share_of(part: pl.Series, whole: pl.Series) -> float:
    """Return the sum of `part` over the sum of `whole`; 0 if `whole` sums to 0."""
    total = float(whole.sum())
    return float(part.sum()) / total if total else 0.0


def matches(names: pl.Series, pattern: str) -> pl.Series:
    """Return whether each name contains the pattern (false for null); each distinct name is searched only once."""
    distinct = names.drop_nulls().unique()
    found = distinct.filter(distinct.str.contains(pattern))
    return names.is_in(found.implode()).fill_null(value=False)


def case_of(
    evidence: RankEvidence,
    rows: pl.DataFrame,
    *,
    subject: str = "",
    words: Mapping[str, Any] | None = None,
    waits: Intervals | None = None,
) -> Case:
    """Build a case from these rows of `RankEvidence.costed`.

    A profiler that records Python functions makes the host up to twice as slow. A replay of such a recording may show
    that faster device work saves nothing, although it would save time without the profiler. Such recordings are
    therefore not replayed.

    Args:
        evidence: what is known about the rank.
        rows: at least one row, each with `saved_ns`, the time that fixing the cause saves. If the rows also have
            `most_ns`, the largest possible saving, then `saved_ns` is the typical saving, which decides whether the
            rule applies.
        subject: a name that distinguishes this case from other cases of the same rule.
        words: values to insert into the sentences, in addition to `kernel`, `operator` and `count` (rows per step).
        waits: time without device work that the cause also explains; fixing the cause saves all of it.
    """
    busy = union_of(rows)
    explained = busy if waits is None else union(*concatenated([busy, waits]))
    length = max(1, covered_length(*explained))
    waits_ns = 0 if waits is None else covered_length(*waits)
    is_at_most = "most_ns" in rows.columns
    typical, fraction = (
        min(1.0, (share_of(rows[column], rows["duration_ns"]) * covered_length(*busy) + waits_ns) / length)
        for column in ("saved_ns", "most_ns" if is_at_most else "saved_ns")
    )
    first = rows.row(int(rows["saved_ns"].arg_max() or 0), named=True)
    told = {
        "kernel": first["kernel"],
        "operator": first["operator"],
        "count": rows.height / evidence.step_count,
        **(words or {}),
    }
    value = length * typical / evidence.time_ns if evidence.time_ns else 0.0
    is_replayed = value >= _LEAST_VALUE and not records_python(evidence.rank_trace)
    change = _change(evidence, rows, 1 - fraction, with_host=waits is not None) if is_replayed else None
    place = place_of(evidence, first)
    return Case(explained, value, fraction, rows.height, subject, place, change, told, is_at_most=is_at_most)


def place_of(evidence: RankEvidence, row: Mapping[str, Any]) -> Place:
    """Return the kernel in a row of `RankEvidence.costed`, and the operator, module and line that launched it."""
    activity = evidence.activity_at(row["launch_start_ns"])
    return Place(
        activity.get("module"),
        row["operator"],
        row["kernel"],
        activity.get("frame"),
        row["event_index"],
        row["start_ns"],
    )


def gaps_before(evidence: RankEvidence, rows: pl.DataFrame) -> Intervals:
    """Return the idle gaps of at most 2 µs right before these kernels; the device needs such gaps between kernels."""
    begins, ends = evidence.idle
    chosen = (ends - begins <= FIXED_NS) & np.isin(ends, rows["start_ns"].to_numpy())
    return begins[chosen], ends[chosen]


def idle_while_called(evidence: RankEvidence, rows: pl.DataFrame) -> Intervals:
    """Return the intervals in which all devices are idle while the host makes only the calls in `rows`."""
    spans = host_spans(evidence, rows)
    return intersection(union_of(spans), evidence.idle)


def host_spans(evidence: RankEvidence, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the spans in which a thread makes only the calls in `rows`, with pauses of at most 0.2 ms.

    Returns:
        track_id, start_ns and end_ns, sorted by start.
    """
    stacks, all_rows = call_stacks(evidence.rank_trace), evidence.costed["row"]
    calls = stacks[all_rows.filter(all_rows >= 0).unique().cast(pl.UInt32)]
    chosen = stacks["event_index"][rows["row"].filter(rows["row"] >= 0).unique().cast(pl.UInt32)]
    in_order = calls.sort("track_id", "start_ns").with_columns(
        pl.col("event_index").is_in(chosen.implode()).alias("fits")
    )
    pauses = (pl.col("start_ns") - pl.col("end_ns").shift() > _PAUSE_NS).fill_null(value=False).cum_sum()
    runs = in_order.with_columns(run=pl.struct("track_id", "fits", pauses.alias("pause")).rle_id()).filter("fits")
    spans = runs.group_by("run").agg(pl.col("track_id").first(), pl.col("start_ns").min(), pl.col("end_ns").max())
    return spans.sort("start_ns").drop("run")


def _change(evidence: RankEvidence, rows: pl.DataFrame, factor: float, *, with_host: bool) -> Scale:
    events = rows["event_index"]
    if with_host:
        events = pl.concat([events, _host_events(evidence, rows)])
    return Scale(pl.col("event_index").is_in(events.implode()), factor)


def _host_events(evidence: RankEvidence, rows: pl.DataFrame) -> pl.Series:
    """Return the operators and launch calls inside the spans that `host_spans` returns for `rows`."""
    spans = host_spans(evidence, rows).rename({"end_ns": "last_ns"})
    ranges = event_ranges(evidence.rank_trace, _HOST_KINDS, ["event_index", "track_id", "start_ns", "end_ns"])
    inside = ranges.sort("start_ns").join_asof(spans, on="start_ns", by="track_id", check_sortedness=False)
    return inside.filter(pl.col("end_ns") <= pl.col("last_ns"))["event_index"]
