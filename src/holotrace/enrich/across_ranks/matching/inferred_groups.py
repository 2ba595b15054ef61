"""Infers the process groups of calls that do not name them, from the order and times of the calls.

gloo and old versions of NCCL record no groups. All calls of a rank with the same signature (family, element type and
size) are assigned to one group: the largest group whose ranks could have made these calls together.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.enrich.across_ranks.matching.rough_clocks import corrected, operations, rough_offsets
from holotrace.enrich.across_ranks.matching.rows import of_most
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

_LIKE = ("family", "content")
_EVEN_SHARE = 0.5
"""Within a step, most ranks of the right group have the same number of calls. At least this fraction of all calls must
be on ranks that have the most common number of calls."""

_POSSIBLE_SHARE = 0.75
"""An operation is possible if no rank leaves it before another rank enters it. At least this fraction of a group's
operations must be possible."""

_POSSIBLE_SHARE_OF_ONLY = 0.5
"""If no rank of a group belongs to another group, it is enough that this fraction of the group's operations is
possible. The fraction is computed over the operations of all signatures together."""

_FAR_WIDER = 4
_NOISE_NS = 20_000
"""All ranks of the right group leave a collective at about the same time. The spread of a group is the time
between the first and the last end of an operation. A group is too wide if its spread exceeds `_FAR_WIDER` times the
spread of another group of at most the same size, plus `_NOISE_NS`."""

_FAR_LESS_REGULAR = 3
_JITTER_NS = 2_000
_FEWEST_REGULAR = 8
"""Once the last rank has arrived, equal calls take about the same time to transfer their data. The jitter
of a group is how much the transfer times vary. A group is too wide if its jitter exceeds `_FAR_LESS_REGULAR` times the
jitter of another group of at most the same size, plus `_JITTER_NS`. This is checked only for groups with at least 8
calls per rank."""

_FEWEST_UNCLEAR = 4
"""If a smaller group has less jitter, but not so much less that the larger group is too wide, it is unclear which of
the two groups made the calls. This is checked only for groups with at least 4 calls per rank."""

_MEMBER_SHARE = 0.75
"""At least this fraction of the ranks of a group must have made calls with the signature."""


class Inferred(NamedTuple):
    """The result of `inferred_groups`.

    groups     row uint32 and group uint64 of the calls whose group was inferred
    ambiguous  row uint32 of the calls that several groups fit equally well
    """

    groups: pl.DataFrame
    ambiguous: pl.DataFrame


def inferred_groups(rows: pl.DataFrame, candidates: pl.DataFrame) -> Inferred:
    """Infer the groups of the collectives whose group was not recorded.

    Args:
        rows: the rows of `rows_of` that are not matched yet.
        candidates: see `holotrace.enrich.across_ranks.matching.job_groups.candidate_groups`.
    """
    slim = rows.select("row", "rank", "host", "window", *_LIKE, "start_ns", "end_ns", "group")
    unnamed = slim.filter(~IS_POINT_TO_POINT & pl.col("group").is_null()).drop("group")
    if unnamed.is_empty():
        return Inferred(unnamed.select("row", pl.lit(None, pl.UInt64).alias("group")), unnamed.select("row"))
    is_only = pl.col("rank").is_in(_only(candidates).implode()).alias("is_only")
    offered = candidates.with_columns(is_only)
    of_sizes = offered.partition_by("present") if len(offered) else [offered]
    fitting = pl.concat(_fitting(unnamed.join(of_size, on="rank", maintain_order="left")) for of_size in of_sizes)
    chosen = _largest(fitting.join(candidates.select("group", "rank"), on="group"))
    named = unnamed.select("row", "rank", *_LIKE).join(chosen, on=["rank", *_LIKE], maintain_order="left")
    return Inferred(
        named.filter(~pl.col("is_ambiguous")).select("row", "group"),
        named.filter("is_ambiguous").select("row").unique(),
    )


def _largest(fitting: pl.DataFrame) -> pl.DataFrame:
    """For each rank and signature, choose the largest groups that fit and are not too wide.

    Return `rank`, the signature, `group` and `is_ambiguous`.

    A group is too wide if, for each of its ranks, another group with this rank is not larger and fits clearly better. A
    group fits clearly better if its calls end far closer together, or if their transfer times vary far less.

    Args:
        fitting: the result of `_fitting`, repeated for each rank of a group; the added column `rank` is this rank.
    """
    of_rank = ["rank", *_LIKE]
    measures = ["spread_ns", "jitter_ns"]
    others = fitting.join(fitting.select(*of_rank, "present", *measures), on=of_rank, suffix="_of_other").filter(
        pl.col("present_of_other") <= pl.col("present")
    )
    is_smaller = pl.col("present_of_other") < pl.col("present")
    best = others.group_by("group", *of_rank).agg(
        pl.col("spread_ns_of_other").min().alias("best_ns"),
        pl.col("jitter_ns_of_other").min().alias("least_jitter_ns"),
        pl.col("jitter_ns_of_other").filter(is_smaller).min().alias("smaller_jitter_ns"),
    )
    compared = fitting.join(best, on=["group", *of_rank], how="left", maintain_order="left")
    is_wide = pl.col("spread_ns") > _FAR_WIDER * pl.col("best_ns") + _NOISE_NS
    is_irregular = pl.col("jitter_ns") > _FAR_LESS_REGULAR * pl.col("least_jitter_ns") + _JITTER_NS
    is_repeated, is_regular = (
        pl.col("even") >= fewest * pl.col("present") for fewest in (_FEWEST_UNCLEAR, _FEWEST_REGULAR)
    )
    is_worse = (is_wide | (is_irregular & is_regular)).fill_null(value=False)
    narrow = compared.filter(~is_worse.all().over("group", *_LIKE))
    largest = narrow.filter(pl.col("present") == pl.col("present").max().over(of_rank))
    is_tie = pl.len().over(of_rank) > 1
    smaller_fit_as_well = (is_repeated & (pl.col("smaller_jitter_ns") < pl.col("jitter_ns"))).fill_null(value=False)
    is_unclear = is_tie | smaller_fit_as_well.all().over("group", *_LIKE)
    several = _leaving_no_rank_alone(largest).with_columns(is_unclear.alias("is_ambiguous"))
    return several.with_columns(pl.col("is_ambiguous").any().over("group", *_LIKE)).select(
        *of_rank, "group", "is_ambiguous"
    )


def _leaving_no_rank_alone(largest: pl.DataFrame) -> pl.DataFrame:
    """Drop a group if choosing it would leave a rank of another group without any group.

    For example, ranks 0 to 3 made a call, and the groups {0, 1}, {2, 3} and {0, 2} fit. Choosing {0, 2} would rule out
    the other two groups and leave ranks 1 and 3 without a group, so {0, 2} is dropped.

    Args:
        largest: the largest groups that fit; one row for each rank, signature and group.
    """
    of_rank, like = ["rank", *_LIKE], ["group", *_LIKE]
    rows = largest.select("group", *of_rank)
    overlapping = rows.join(rows, on=of_rank, suffix="_of_other").select(*like, "group_of_other").unique()
    competing = overlapping.filter(pl.col("group") != pl.col("group_of_other"))
    taken = (
        competing.join(rows.rename({"group": "group_of_other"}), on=["group_of_other", *_LIKE])
        .group_by("group", *of_rank)
        .agg(pl.len().alias("taken"))
        .join(rows, on=["group", *of_rank], how="anti")
    )
    alone = taken.join(rows.group_by(of_rank).len("offered"), on=of_rank).filter(pl.col("taken") == pl.col("offered"))
    remaining = largest.join(alone, on=like, how="anti", maintain_order="left")
    return pl.concat([remaining, largest.join(remaining, on=of_rank, how="anti", maintain_order="left")])


def _only(candidates: pl.DataFrame) -> pl.Series:
    """Return the ranks that belong to only one group."""
    return candidates.group_by("rank").len().filter(pl.col("len") == 1)["rank"]


def _fitting(offered: pl.DataFrame) -> pl.DataFrame:
    """Return the groups that fit each signature: group, signature, present, even, spread_ns and jitter_ns.

    `even` is the number of calls that remain after `_tested` has dropped, in each step, the ranks whose number of calls
    is not the most common one. `spread_ns` is the median time between the first and the last end of an operation.
    `jitter_ns` is the median deviation of the transfer times from their median.

    Args:
        offered: one row per call and group that the call may belong to. `is_only` is true if this group is the only
            candidate of the call's rank.
    """
    like = ["group", *_LIKE]
    tested = (
        _tested(offered)
        .group_by(like)
        .agg(
            pl.len().alias("even"),
            pl.col("is_possible").sum().alias("possible"),
            pl.col("spread_ns").median().alias("spread_ns"),
            (pl.col("transfer_ns") - pl.col("transfer_ns").median()).abs().median().alias("jitter_ns"),
        )
    )
    calls = offered.group_by(like).agg(
        pl.len().alias("count"),
        pl.col("rank").n_unique().alias("ranks"),
        pl.col("present").first(),
        pl.col("is_only").all(),
    )
    counted = calls.join(tested, on=like, how="left").with_columns(pl.col("even", "possible").fill_null(0))
    return counted.filter(_is_fitting()).select(*like, "present", "even", "spread_ns", "jitter_ns")


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
    """Give the k-th calls of each signature in a step the same `instance`; add is_possible, spread_ns and transfer_ns.

    Only the ranks that have the most common number of calls with the signature in this step are kept.
    """
    keys = ["group", "window", *_LIKE]
    placed = of_most(offered, keys).with_columns(pl.int_range(pl.len()).over(*keys, "rank").alias("place"))
    numbered = placed.with_columns(pl.col("row").min().over(*keys, "place").alias("instance"))
    spans = operations(corrected(numbered, rough_offsets(numbered)))
    spread = (2 * (pl.col("middle_end_ns") - pl.col("first_end_ns"))).alias("spread_ns")
    transfer = (pl.col("first_end_ns") - pl.col("last_start_ns")).alias("transfer_ns")
    return numbered.join(
        spans.select("group", "instance", "is_possible", spread, transfer), on=["group", "instance"], how="left"
    )
