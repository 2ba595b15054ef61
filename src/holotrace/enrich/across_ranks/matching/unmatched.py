"""Reports calls that could not be matched, and signs that the ranks are not from the same job or recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from holotrace.enrich.across_ranks.matching.batches import IS_BATCH
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT
from holotrace.enrich.job.findings import ranks_text

_MOST_FAMILIES = 3

_REASONS = {
    "alone": "belong to groups with only one rank in the trace; add the files of the other ranks",
    "ambiguous": "name no group, and several groups of the job fit them equally well",
    "no_group": "name no group, and no group of the job fits their order and times",
    "not_recorded": "send to or receive from ranks that the trace lacks; add their files",
    "no_peer": "do not name the rank at the other end",
    "unclear_batch": "are batches of sends and receives whose counterparts on other ranks are missing or ambiguous",
    "no_partners": "are batches of sends and receives that do not name their partners, and the ranks of their group "
    "do not all have the same number of such batches at the same times",
    "no_end": "have no clear counterpart on the other rank",
    "no_counterpart": "have no clear counterpart on the other ranks of their group",
}
"""Reasons why calls are not matched, the most certain reasons first."""


def findings(
    of_ranks: Mapping[int, OfRank], rows: pl.DataFrame, unmatched: pl.DataFrame, ambiguous: pl.DataFrame
) -> tuple[str, ...]:
    """Report the calls that could not be matched, and why.

    Args:
        of_ranks: the recorded calls and groups of each rank.
        rows: the calls of all ranks, with inferred groups and peers, but without calls in groups of one rank.
        unmatched: the calls to explain.
        ambiguous: the rows of calls that several groups fit equally well (column row).
    """
    about_the_ranks = tuple(_about_the_ranks(of_ranks, rows))
    if len(of_ranks) <= 1 or unmatched.is_empty():
        return about_the_ranks
    return (*about_the_ranks, *_about_the_calls(rows, unmatched, ambiguous))


def _about_the_ranks(of_ranks: Mapping[int, OfRank], rows: pl.DataFrame) -> Iterator[str]:
    if len(of_ranks) == 1:
        yield f"the trace has only {ranks_text(list(of_ranks))}, so its calls cannot be matched with those of other ranks"
    yield from _different_sizes(of_ranks)
    if silent := sorted(of_ranks.keys() - set(rows["rank"].unique())):
        yield f"{ranks_text(silent)}: no communication was recorded"
    for ranks in _same_recordings(rows):
        yield f"{ranks_text(ranks)} have the same calls at the same times: their files may be copies of one recording"
    yield from _numbered_apart(rows)
    if _has_no_common_step(rows):
        yield "no two ranks recorded the same step, so their calls cannot be matched by order"


def _different_sizes(of_ranks: Mapping[int, OfRank]) -> Iterator[str]:
    by_size: dict[int, list[int]] = {}
    for rank, of_rank in sorted(of_ranks.items()):
        if of_rank.facts.world_size:
            by_size.setdefault(of_rank.facts.world_size, []).append(rank)
    if len(by_size) > 1:
        sizes = ", ".join(f"{size:,} ({ranks_text(ranks)})" for size, ranks in sorted(by_size.items()))
        yield f"the ranks belong to jobs of different sizes: {sizes}"


def _same_recordings(rows: pl.DataFrame) -> Iterable[list[int]]:
    total = pl.struct("start_ns", "end_ns", "family").hash().sum().alias("total")
    per_rank = rows.group_by("rank").agg(total, pl.len().alias("count"))
    same = per_rank.group_by("total", "count").agg(pl.col("rank").sort()).filter(pl.col("rank").list.len() > 1)
    return sorted(ranks.to_list() for ranks in same["rank"])


def _numbered_apart(rows: pl.DataFrame) -> Iterator[str]:
    """Report two ranks of a group that have no sequence number in common: they recorded different operations."""
    spans = (
        rows.filter(pl.col("group").is_not_null() & ~IS_POINT_TO_POINT)
        .drop_nulls("sequence")
        .group_by("group", "rank")
        .agg(pl.col("sequence").min().alias("first"), pl.col("sequence").max().alias("last"), pl.len().alias("count"))
        .sort("group", "first", "rank")
    )
    beside = spans.with_columns(pl.col("rank", "first", "last").shift().over("group").name.prefix("other_"))
    apart = beside.filter((pl.col("other_last") < pl.col("first")).fill_null(value=False)).sort("rank")
    for row in apart.head(1).iter_rows(named=True):
        yield (
            f"ranks {row['other_rank']} and {row['rank']} share a process group, but have no sequence number in common "
            f"({row['other_first']:,}-{row['other_last']:,} and {row['first']:,}-{row['last']:,}): they were recorded at different "
            "times, or in different jobs"
        )


def _has_no_common_step(rows: pl.DataFrame) -> bool:
    ranks = rows.drop_nulls("window").group_by("window").agg(pl.col("rank").n_unique())["rank"]
    return rows["rank"].n_unique() > 1 and len(ranks) > 0 and (ranks == 1).all()


def _about_the_calls(rows: pl.DataFrame, unmatched: pl.DataFrame, ambiguous: pl.DataFrame) -> Iterator[str]:
    users = rows.drop_nulls("group").group_by("group").agg(pl.col("rank").n_unique().alias("users"))
    explained = unmatched.join(users, on="group", how="left").with_columns(
        pl.col("row").is_in(ambiguous["row"].implode()).alias("is_ambiguous"),
        pl.col("peer").is_in(rows["rank"].unique().implode()).alias("has_peer"),
    )
    reasons = explained.select("family", _reason().alias("reason"))
    is_none_matched = len(unmatched) == len(rows) and not _has_no_common_step(rows)
    if is_none_matched and (reasons["reason"] == "no_counterpart").all():
        yield "no call of any rank fits a call of another rank, so the files may belong to different jobs"
    for reason, sentence in _REASONS.items():
        concerned = reasons.filter(pl.col("reason") == reason)
        if len(concerned):
            yield f"{len(concerned):,} of {len(rows):,} calls ({_families(concerned)}) {sentence}"


def _reason() -> pl.Expr:
    of_pairs = (
        pl.when(pl.col("peer").is_null())
        .then(pl.lit("no_peer"))
        .when("has_peer")
        .then(pl.lit("no_end"))
        .otherwise(pl.lit("not_recorded"))
    )
    return (
        pl.when(IS_POINT_TO_POINT)
        .then(of_pairs)
        .when("is_ambiguous")
        .then(pl.lit("ambiguous"))
        .when(pl.col("group").is_null())
        .then(pl.lit("no_group"))
        .when(pl.col("users") == 1)
        .then(pl.lit("alone"))
        .when(IS_BATCH)
        .then(pl.when(pl.col("partners").is_null()).then(pl.lit("no_partners")).otherwise(pl.lit("unclear_batch")))
        .otherwise(pl.lit("no_counterpart"))
    )


def _families(calls: pl.DataFrame) -> str:
    """Return the most frequent families, as `36 all_reduce, 2 barrier`."""
    counts = calls.group_by("family").len().sort("len", "family", descending=[True, False])
    named = [f"{count:,} {family}" for family, count in counts.head(_MOST_FAMILIES).iter_rows()]
    return ", ".join([*named, "…"] if len(counts) > _MOST_FAMILIES else named)
