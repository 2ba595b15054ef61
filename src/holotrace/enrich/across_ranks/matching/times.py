"""Matches each call to the operation that ends nearest to it in time, after roughly aligning the clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from holotrace.enrich.across_ranks.matching.rough_clocks import corrected, operations
from holotrace.enrich.across_ranks.matching.rows import without

_FAR_NS = 2**62


def by_time(rows: pl.DataFrame, known: pl.DataFrame, offsets: pl.DataFrame, alike: Sequence[str]) -> pl.DataFrame:
    """Match each call to the operation that ends nearest to it; ambiguous calls stay unmatched.

    Only operations that overlap the call in time are considered. The distance of an operation is the time between its
    end and the end of the call. A call is unambiguous if the second-nearest operation is more than three times as far
    away as the nearest. If several calls of a rank are nearest to the same operation, only the nearest call is matched.

    Calls are first matched with the operations in `known`. Then, for each kind of call, the rank with the most
    unmatched calls is selected. Each unmatched call of this rank becomes a new operation, and the unmatched calls of
    the other ranks are matched with these new operations.

    Args:
        rows: unmatched calls.
        known: calls that are already matched, with instance.
        offsets: the result of `rough_offsets` for the calls in `rows` and `known`.
        alike: columns that are equal for all calls of one operation.

    Returns:
        row and instance of the newly matched calls.
    """
    if rows.is_empty():
        return rows.select("row", instance="row")
    moved, present = (_with_class(corrected(calls, offsets), alike) for calls in (rows, known))
    to_known = _attached(moved, present)
    rest = without(moved, to_known)
    seeds = _of_largest(rest).with_columns(instance="row")
    to_seeds = _attached(without(rest, seeds), seeds)
    used = seeds.join(to_seeds, on="instance", how="semi").select("row", "instance")
    return pl.concat([to_known, to_seeds, used])


def _attached(rows: pl.DataFrame, present: pl.DataFrame) -> pl.DataFrame:
    """Match calls to the operations in `present`, as in `by_time`; return row and instance of the matched calls."""
    spans = operations(present).join(present.unique("instance").select("instance", "class"), on="instance")
    free = _nearest(rows, spans).join(present, on=["instance", "rank"], how="anti")
    best = free.sort("distance_ns", "row").unique(["instance", "rank"], keep="first", maintain_order=True)
    return best.select("row", "instance")


def _with_class(rows: pl.DataFrame, alike: Sequence[str]) -> pl.DataFrame:
    return rows.with_columns(pl.struct(alike).hash().alias("class"))


def _of_largest(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, for each class of calls, the calls of the rank with the most calls, or of the lowest such rank."""
    counts = rows.group_by("class", "rank").len().sort("len", "rank", descending=[True, False])
    largest = counts.group_by("class", maintain_order=True).first()
    return rows.join(largest, on=["class", "rank"], how="semi", maintain_order="left")


def _nearest(rows: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Find the operation that ends nearest to the end of each call; return row, rank, instance and distance_ns.

    Ambiguous calls are dropped; see `by_time`.
    """
    before, after = (_possible(rows, spans, side) for side in ("backward", "forward"))
    together = pl.concat([before, after]).unique(["row", "instance"]).sort("row", "distance_ns")
    next_ns = pl.col("distance_ns").shift(-1).over("row").fill_null(_FAR_NS).alias("next_ns")
    first = together.with_columns(next_ns).group_by("row", maintain_order=True).first()
    return first.filter(3 * pl.col("distance_ns") < pl.col("next_ns"))


def _possible(rows: pl.DataFrame, spans: pl.DataFrame, side: Literal["backward", "forward"]) -> pl.DataFrame:
    """Return, for each call, the operation whose end is nearest to the call's end, if call and operation overlap.

    If `side` is "backward", only operations that end no later than the call are candidates; if it is "forward", only
    operations that end no earlier than the call.
    """
    offered = spans.select("class", "instance", "last_start_ns", "first_end_ns", "middle_end_ns").sort("middle_end_ns")
    joined = rows.sort("end_ns").join_asof(
        offered, left_on="end_ns", right_on="middle_end_ns", by="class", strategy=side, check_sortedness=False
    )
    enters = pl.max_horizontal("start_ns", "last_start_ns")
    leaves = pl.min_horizontal("end_ns", "first_end_ns")
    possible = joined.drop_nulls("instance").filter(enters <= leaves + pl.col("tolerance_ns"))
    distance = (pl.col("end_ns") - pl.col("middle_end_ns")).abs().alias("distance_ns")
    return possible.select("row", "rank", "instance", distance)
