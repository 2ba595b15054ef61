"""Collects the process groups of a job from all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.across_ranks.matching.groups import ProcessGroup, process_group


def known_groups(of_ranks: Mapping[int, OfRank]) -> dict[int, ProcessGroup]:
    """Return {number: group} for the groups in all traces; if no group contains all ranks, add one that does."""
    known = {group.number: group for of_rank in of_ranks.values() for group in of_rank.facts.groups}
    job = _whole_job(of_ranks)
    is_known = any(group.ranks == job.ranks for group in known.values())
    return known if is_known else known | {job.number: job}


def candidate_groups(of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Return the groups to which calls can be assigned, without the ranks that are not in the trace.

    If several groups have the same ranks in the trace, only the first is returned.

    Returns:
        group uint64, rank int32, and present: the number of the group's ranks in the trace, at least 2. One row per
        group and rank.
    """
    groups = reversed(known_groups(of_ranks).values())
    by_ranks = {_present(group.ranks or (), of_ranks): group for group in groups}
    rows = [(group.number, list(ranks), len(ranks)) for ranks, group in by_ranks.items() if len(ranks) > 1]
    table = pl.DataFrame(rows, {"group": pl.UInt64, "rank": pl.List(pl.Int32), "present": pl.Int64}, orient="row")
    return table.explode("rank")


def positions(of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Return the number of each rank within each of its groups.

    Returns:
        group uint64; rank int32; position int32, the rank's number within the group, from 0; and size int64, the
        number of ranks in the group. One row per group and rank.
    """
    listed = [(group.number, list(group.ranks), group.size) for group in known_groups(of_ranks).values() if group.ranks]
    table = pl.DataFrame(listed, {"group": pl.UInt64, "rank": pl.List(pl.Int32), "size": pl.Int64}, orient="row")
    numbered = table.with_columns(pl.int_ranges("size", dtype=pl.Int32).alias("position"))
    return numbered.explode("rank", "position").filter(pl.col("rank").is_in(list(of_ranks)))


def _whole_job(of_ranks: Mapping[int, OfRank]) -> ProcessGroup:
    """Return the group of all ranks of the job or, if their number is unknown, of all ranks in the trace."""
    sizes = [of_rank.facts.world_size for of_rank in of_ranks.values() if of_rank.facts.world_size]
    is_whole = bool(sizes) and max(sizes) > max(of_ranks, default=0)
    return process_group(range(max(sizes)) if is_whole else sorted(of_ranks))


def _present(ranks: Iterable[int], of_ranks: Mapping[int, OfRank]) -> tuple[int, ...]:
    return tuple(sorted(set(ranks) & of_ranks.keys()))
