"""Finds the calls of different ranks that are parts of the same operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.matching.batches import IS_BATCH, by_partners
from holotrace.enrich.across_ranks.matching.calls import COLUMNS, OfRank
from holotrace.enrich.across_ranks.matching.inferred_groups import inferred_groups
from holotrace.enrich.across_ranks.matching.job_groups import candidate_groups, known_groups, positions
from holotrace.enrich.across_ranks.matching.numbered import by_number
from holotrace.enrich.across_ranks.matching.rows import matched, rows_of, without
from holotrace.enrich.across_ranks.matching.send_receive import by_order, with_peers
from holotrace.enrich.across_ranks.matching.signatures import by_signature
from holotrace.enrich.across_ranks.matching.unmatched import findings
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

_ADDED = ("in_bytes", "out_bytes", "sent_bytes", "kernel_count")
_LISTS = ("in_splits", "partners")
_GROUP: dict[str, pl.DataType | type[pl.DataType]] = {
    "group": pl.UInt64,
    "ranks": pl.List(pl.Int32),
    "size": pl.Int64,
    "description": pl.String,
}


@dataclass(frozen=True, eq=False)
class Matching(EqualByContent):
    """The calls of all ranks; the calls of one operation share a number (`instance`).

    calls     one row per call, sorted by rank and start_ns; the columns of `OfRank.calls` (except group_peer), and:

              rank          int32
              instance      int64   number of the operation, equal for all calls of the operation; null if not matched
              matched_by    Enum    how the call was matched, see `MatchedBy`; null if not matched
              kernel_count  uint32  kernels merged into this row; more than 1 if calls with the same number were
                                    coalesced

              `group` and `peer` include inferred values.

    groups    one row per process group:

              group        uint64
              ranks        list[int32]  in the order of the group; if unknown, the ranks that use the group
              size         int64
              description  str    null if there is none
              is_inferred  bool   whether calls were assigned to the group by their times and order

    coverage  one row per method of matching, and one for unmatched calls; calls in groups of one rank are excluded:

              matched_by     Enum     null for unmatched calls
              call_count     int64
              call_fraction  float64  of all calls
              byte_fraction  float64  of the input bytes of all calls; null if no size is known
              time_fraction  float64  of the time in all calls

    findings  sentences that report the unmatched calls, and why they could not be matched
    """

    calls: pl.DataFrame
    groups: pl.DataFrame
    coverage: pl.DataFrame
    findings: tuple[str, ...]


def match(of_ranks: Mapping[int, OfRank], *, sends: bool = True) -> Matching:
    """Match the calls of all ranks.

    Args:
        of_ranks: {rank: the result of `holotrace.enrich.across_ranks.matching.calls.of_rank`}.
        sends: whether to match sends with receives too. If False, the findings do not count sends and receives as
            unmatched.
    """
    recorded = rows_of(of_ranks)
    large = _large_groups(of_ranks)
    numbered = by_number(_comparable(recorded, large))
    inferred = inferred_groups(without(recorded, numbered), candidate_groups(of_ranks))
    peers = with_peers(recorded.filter(sends), positions(of_ranks))
    rows = recorded.update(inferred.groups, on="row").update(peers, on="row")
    pairs = matched(by_order(rows.filter(sends)), "send_receive")
    matches = pl.concat([numbered, by_signature(_comparable(rows, large), numbered), pairs, by_partners(rows, large)])
    calls = _one_per_rank(rows.join(matches, on="row", how="left", maintain_order="left"))
    groups = _groups(of_ranks, rows, pl.concat([inferred.groups["group"], peers["group"]]))
    alone = pl.col("group").is_in(groups.filter(pl.col("size") == 1)["group"].implode()).fill_null(value=False)
    unmatched = without(rows.filter(~alone & (~IS_POINT_TO_POINT | sends)), matches)
    sentences = findings(of_ranks, rows.filter(~alone), unmatched, inferred.ambiguous)
    return Matching(calls, groups, _coverage(calls.filter(~alone)), sentences)


def matched_without_numbers(collectives: pl.DataFrame) -> tuple[str, ...]:
    """Report how many collectives were matched although no recorded number identifies them.

    Args:
        collectives: rows of `Matching.calls` without sends and receives.
    """
    matched_by = collectives["matched_by"].drop_nulls()
    inferred, by_time = (~matched_by.is_in(["sequence", "communication_id"])).sum(), (matched_by == "time").sum()
    times = f" ({by_time:,} of them also by their times)" if by_time else ""
    counts = f"{inferred:,} of {len(collectives):,} collectives"
    sentence = f"{counts} were matched by kind and order{times}: no number in the trace identifies them"
    return (sentence,) if inferred else ()


def _large_groups(of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Return `group` and `present`, the number of its ranks in the trace, for each group of more than two ranks."""
    large = [group for group in known_groups(of_ranks).values() if group.size > 2]  # noqa: PLR2004 -- two ends
    rows = [(group.number, len(of_ranks.keys() & set(group.ranks or ()))) for group in large]
    return pl.DataFrame(rows, {"group": pl.UInt64, "present": pl.Int64}, orient="row")


def _comparable(rows: pl.DataFrame, large_groups: pl.DataFrame) -> pl.DataFrame:
    """Drop the batches of sends and receives that `by_partners` matches.

    `by_partners` matches all batches whose partners are recorded, and all batches in groups of more than two ranks,
    because in such a group the sends and receives of one batch may have different partners.
    """
    is_of_large = pl.col("group").is_in(large_groups["group"].implode()).fill_null(value=False)
    return rows.filter(~(IS_BATCH & (is_of_large | pl.col("partners").is_not_null())))


def _one_per_rank(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge the kernels that a rank runs for one operation into one row, and number the operations by their starts."""
    counted = rows.with_columns(pl.lit(1, pl.UInt32).alias("kernel_count"))
    is_coalesced = pl.col("instance").is_not_null() & (pl.len().over("rank", "instance") > 1)
    coalesced, single = counted.filter(is_coalesced), counted.filter(~is_coalesced)
    merged = coalesced.group_by("rank", "instance", maintain_order=True).agg(
        pl.col("end_ns").max(),
        pl.when(pl.col(_ADDED).is_not_null().all()).then(pl.col(_ADDED).sum()),
        *(pl.lit(None, COLUMNS[name]).alias(name) for name in _LISTS),
        pl.exclude("end_ns", *_LISTS, *_ADDED).sort_by("start_ns").first(),
    )
    together = pl.concat([single, merged.select(single.columns)])
    operations = together.drop_nulls("instance").group_by("instance").agg(pl.col("start_ns").min().alias("first_ns"))
    numbers = operations.sort("first_ns", "instance").select("instance", pl.int_range(pl.len()).alias("number"))
    numbered = together.join(numbers, on="instance", how="left").with_columns(pl.col("number").alias("instance"))
    return numbered.sort("rank", "start_ns", "row").drop("row", "host", "group_peer", "number")


def _groups(of_ranks: Mapping[int, OfRank], rows: pl.DataFrame, inferred: pl.Series) -> pl.DataFrame:
    listed = [
        (number, None if group.ranks is None else list(group.ranks), group.size, group.description or None)
        for number, group in known_groups(of_ranks).items()
    ]
    users = rows.drop_nulls("group").group_by("group").agg(pl.col("rank").unique().sort().alias("users"))
    groups = pl.DataFrame(listed, _GROUP, orient="row").join(users, on="group", how="left", maintain_order="left")
    is_inferred = pl.col("group").is_in(inferred.unique().implode()).alias("is_inferred")
    is_recorded = pl.col("group").is_in(
        [group.number for of_rank in of_ranks.values() for group in of_rank.facts.groups]
    )
    known = groups.filter(is_recorded | pl.col("users").is_not_null())
    return known.select("group", pl.coalesce("ranks", "users"), "size", "description", is_inferred)


def _coverage(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the fractions of the calls, bytes and time that each method of matching covers."""
    amounts = {
        "call": pl.col("kernel_count").cast(pl.Int64),
        "byte": pl.col("in_bytes"),
        "time": pl.col("end_ns") - pl.col("start_ns"),
    }
    sums = calls.group_by("matched_by").agg(amount.sum().alias(name) for name, amount in amounts.items())
    totals = calls.select(amount.sum().alias(name) for name, amount in amounts.items())
    fractions = [
        pl.when(total > 0).then(pl.col(name) / total).alias(f"{name}_fraction")
        for name, total in totals.row(0, named=True).items()
    ]
    return sums.sort("matched_by", nulls_last=True).select("matched_by", pl.col("call").alias("call_count"), *fractions)
