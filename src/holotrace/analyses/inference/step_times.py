"""Compute the times of a rank's steps."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.algorithms.intervals import Int64Array, intervals_of
from holotrace.analyses.inference.parts import bounds, parts_of_steps, waits_for_launches
from holotrace.analyses.inference.step_work import StepWork, layers_of
from holotrace.enrich.device.graph_replays import unknown_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.steps.steps import rows_of_windows
from holotrace.store.trace import RankTrace

_FAMILIES = ("attention", "moe", "draft")


def with_times(rank_trace: RankTrace, steps: pl.DataFrame, known: StepWork) -> pl.DataFrame:
    """Add times, numbers of kernels and bounds to `steps`, which contains at least start_ns, end_ns and until_ns.

    A step begins when its range begins on the host or when all work launched earlier has ended, whichever is later. It ends
    with its range or with its last work, whichever is later.
    """
    work = known.work.filter(pl.col("row") >= 0)
    spans = _spans(steps, work, _earlier_ends(steps, known.work))
    layers = layers_of(known.work) | waits_for_launches(known.work, unknown_work(rank_trace))
    if known.work.is_empty() and steps.height:
        layers = {"unknown_idle_ns": (spans["start_ns"].to_numpy()[:1], spans["end_ns"].to_numpy()[-1:])}
    parts = parts_of_steps(layers, *intervals_of(spans))
    return (
        steps.drop("start_ns", "end_ns")
        .hstack(spans)
        .hstack(parts)
        .with_columns(
            _launch_calls(rank_trace, steps),
            *_sums(steps.height, work),
            *_family_times(steps.height, work),
            _attention_flops(steps.height, work),
            bounds(parts),
        )
    )


def _spans(steps: pl.DataFrame, work: pl.DataFrame, earlier_ends: pl.Series) -> pl.DataFrame:
    """Return start_ns, end_ns, step_ns, gap_before_ns and host_ns."""
    last = work.group_by(pl.col("row").cast(pl.UInt32)).agg(pl.col("end_ns").max().alias("last_ns"))
    ranges = steps.select("start_ns", "end_ns").with_row_index("row").with_columns(earlier_ends)
    joined = ranges.join(last, on="row", how="left", maintain_order="left")
    ends = pl.max_horizontal("end_ns", "last_ns", "earlier_ns").cum_max()
    starts = pl.max_horizontal("start_ns", ends.shift(1), "earlier_ns")
    return joined.select(
        starts,
        ends.alias("end_ns"),
        step_ns=ends - starts,
        gap_before_ns=starts - ends.shift(1),
        host_ns=pl.col("end_ns") - pl.col("start_ns"),
    )


def _earlier_ends(steps: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """Return, for each step, when the last of the work requested before the step ended; null without such work."""
    by_launch = work.sort("asked_ns")
    ends = by_launch["end_ns"].cum_max()
    before = by_launch["asked_ns"].search_sorted(steps["start_ns"], side="left").cast(pl.Int64) - 1
    return gathered(ends, before.to_numpy()).alias("earlier_ns")


def _launch_calls(rank_trace: RankTrace, steps: pl.DataFrame) -> pl.Series:
    """Return, for each step, how long the host spent in calls that launched work."""
    known = launches(rank_trace).drop_nulls("launch_index").unique("launch_index")
    starts, ends = known["launch_start_ns"].to_numpy(), known["launch_end_ns"].to_numpy()
    rows = rows_of_windows(steps.select("start_ns", end_ns="until_ns"), starts)
    return pl.Series("launch_call_ns", _covered(steps.height, rows, starts, ends))


def _sums(count: int, work: pl.DataFrame) -> list[pl.Series]:
    rows = work["row"].to_numpy()
    starts, ends = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    summed = np.zeros(count, np.int64)
    np.add.at(summed, rows, ends - starts)
    return [
        pl.Series("busy_ns", _covered(count, rows, starts, ends)),
        pl.Series("kernel_ns", summed),
        pl.Series("kernel_count", np.bincount(rows, minlength=count).astype(np.int64)),
    ]


def _covered(count: int, rows: Int64Array, starts: Int64Array, ends: Int64Array) -> Int64Array:
    inside = rows >= 0
    return covered_by_number(rows[inside], starts[inside], ends[inside], count)


def _family_times(count: int, work: pl.DataFrame) -> list[pl.Series]:
    """Return the times of attention, mixtures of experts and draft models in each step; null if no step has such work."""
    return [
        pl.Series(f"{family}_ns", _family_time(count, work.filter(f"is_{family}")))
        if work[f"is_{family}"].any()
        else pl.Series(f"{family}_ns", [None] * count, pl.Int64)
        for family in _FAMILIES
    ]


def _family_time(count: int, work: pl.DataFrame) -> Int64Array:
    return _covered(count, *(work[name].to_numpy() for name in ("row", "start_ns", "end_ns")))


def _attention_flops(count: int, work: pl.DataFrame) -> pl.Series:
    """Return the FLOPs of attention in each step; null if the step has no attention or a cost is unknown."""
    calls = work.filter(pl.col("is_attention")).unique(["row", "owner"])
    sums = calls.group_by(pl.col("row").cast(pl.UInt32)).agg(
        pl.when(pl.col("flops").is_not_null().all()).then(pl.col("flops").sum()).alias("attention_flops")
    )
    rows = pl.DataFrame({"row": pl.int_range(count, dtype=pl.UInt32, eager=True)})
    return rows.join(sums, on="row", how="left", maintain_order="left")["attention_flops"]
