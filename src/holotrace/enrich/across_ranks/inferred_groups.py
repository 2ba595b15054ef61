"""The process groups of calls whose trace does not name them, from their order and times.

gloo and old versions of NCCL record no groups. All calls of a rank that look alike (family, element type and size) are taken
to belong to one group: the largest one whose ranks could have made them together.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.enrich.across_ranks.rough_clocks import corrected, operations, rough_offsets
from holotrace.enrich.across_ranks.rows import IS_POINT_TO_POINT, of_most

_LIKE = ("family", "content")
_EVEN_SHARE = 0.5
"""At least this share of the calls must be on ranks that have equally many of them in a step."""

_POSSIBLE_SHARE = 0.75
"""At least this share of these operations must be possible: no rank leaves before another enters."""

_POSSIBLE_SHARE_OF_ONLY = 0.5
"""Least share of possible operations if the calls can belong to no other group of the job."""

_MEMBER_SHARE = 0.75
"""At least this share of the ranks must have made such calls."""


class Inferred(NamedTuple):
    """The inferred groups of calls.

    groups        row uint32 and group uint64, of the calls whose group was inferred
    is_ambiguous  row uint32, of calls that several groups of equal size fit
    """

    groups: pl.DataFrame
    ambiguous: pl.DataFrame


def inferred_groups(rows: pl.DataFrame, candidates: pl.DataFrame) -> Inferred:
    """Infer the groups of the collectives whose group is not recorded.

    Args:
        rows: unmatched rows of `rows_of`.
        candidates: see `holotrace.enrich.across_ranks.job_groups.candidate_groups`.
    """
    slim = rows.select("row", "rank", "host", "window", *_LIKE, "start_ns", "end_ns", "group")
    rest = slim.filter(~IS_POINT_TO_POINT & pl.col("group").is_null()).drop("group")
    groups, ambiguous = [rows.select("row", "group").clear()], [rows.select("row").clear()]
    is_only = pl.col("rank").is_in(_only(candidates).implode())
    for size in candidates["present"].unique().sort(descending=True):
        if rest.is_empty():
            break
        offered = rest.with_columns(is_only.alias("is_only")).join(
            candidates.filter(pl.col("present") == size), on="rank", maintain_order="left"
        )
        fitting = _fitting(offered)
        several = fitting.with_columns((pl.len().over("row") > 1).alias("is_ambiguous"))
        is_ambiguous = pl.col("is_ambiguous").any().over("group", *_LIKE)
        groups.append(several.filter(~is_ambiguous).select("row", "group"))
        ambiguous.append(several.filter(is_ambiguous).select("row").unique())
        rest = rest.join(fitting, on="row", how="anti", maintain_order="left")
    return Inferred(pl.concat(groups), pl.concat(ambiguous))


def _only(candidates: pl.DataFrame) -> pl.Series:
    """Return the ranks that belong to only one group."""
    return candidates.group_by("rank").len().filter(pl.col("len") == 1)["rank"]


def _fitting(offered: pl.DataFrame) -> pl.DataFrame:
    """Return row, group and signature of the calls whose signature fits a group.

    Args:
        offered: calls, once for each group to which they may belong, with `present` and `is_only`.
    """
    like = ["group", *_LIKE]
    tested = _tested(offered).group_by(like).agg(pl.len().alias("even"), pl.col("is_possible").sum().alias("possible"))
    calls = offered.group_by(like).agg(
        pl.len().alias("count"),
        pl.col("rank").n_unique().alias("ranks"),
        pl.col("present").first(),
        pl.col("is_only").all(),
    )
    counted = calls.join(tested, on=like, how="left").with_columns(pl.col("even", "possible").fill_null(0))
    fitting = counted.filter(_is_fitting())
    return offered.join(fitting, on=like, how="semi", maintain_order="left").select("row", *like)


def _is_fitting() -> pl.Expr:
    fits = (
        (pl.col("ranks") >= _MEMBER_SHARE * pl.col("present"))
        & (pl.col("even") > 0)
        & (pl.col("even") >= _EVEN_SHARE * pl.col("count"))
        & (pl.col("possible") >= _POSSIBLE_SHARE * pl.col("even"))
    )
    of_group = pl.col("possible").sum().over("group") >= _POSSIBLE_SHARE_OF_ONLY * pl.col("even").sum().over("group")
    return fits | (pl.col("is_only") & (pl.col("ranks") > 1) & of_group)


def _tested(offered: pl.DataFrame) -> pl.DataFrame:
    """Return the calls of ranks that have the most common number of them in a step, with `instance` and `is_possible`."""
    keys = ["group", "window", *_LIKE]
    placed = of_most(offered, keys).with_columns(pl.int_range(pl.len()).over(*keys, "rank").alias("place"))
    numbered = placed.with_columns(pl.col("row").min().over(*keys, "place").alias("instance"))
    spans = operations(corrected(numbered, rough_offsets(numbered))).select("group", "instance", "is_possible")
    return numbered.join(spans, on=["group", "instance"], how="left")
