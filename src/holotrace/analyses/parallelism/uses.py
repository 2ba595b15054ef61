"""How each process group is used, from which its axis follows."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from holotrace.analyses.parallelism.one_rank import ParallelRank
from holotrace.enrich.across_ranks.axes import Use

_FSDP = r"^FSDP::"


def uses_of_groups(calls: pl.DataFrame, ranks: Mapping[int, ParallelRank]) -> dict[int, Use]:
    """Return {group: how it is used}.

    Args:
        calls: `JobCalls.calls`.
        ranks: {rank: its steps and who asked for its calls}.
    """
    known = calls.drop_nulls("group").join(_asked(ranks), on=["rank", "event_index"], how="left")
    first = known.filter(pl.col("collective") == "all_reduce").join(_steps(ranks), on=["rank", "step"])
    part = (pl.col("asked_ns") - pl.col("step_start_ns")) / (pl.col("step_end_ns") - pl.col("step_start_ns"))
    firsts = first.group_by("group", "rank", "step").agg(part.min().alias("part"))
    parts = dict(firsts.group_by("group").agg(pl.col("part").median()).iter_rows())
    sums = known.group_by("group").agg(
        pl.col("collective").cast(pl.String).unique().alias("families"),
        pl.col("sent_bytes").is_not_null().any().alias("has_uneven"),
        pl.col("module").str.contains(_FSDP).any().alias("is_fsdp"),
    )
    return {
        row["group"]: Use(frozenset(row["families"]), parts.get(row["group"]), row["has_uneven"], bool(row["is_fsdp"]))
        for row in sums.iter_rows(named=True)
    }


def _asked(ranks: Mapping[int, ParallelRank]) -> pl.DataFrame:
    return pl.concat(
        [known.asked_by.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, known in ranks.items()]
    )


def _steps(ranks: Mapping[int, ParallelRank]) -> pl.DataFrame:
    """Return begin and end of every step of every rank."""
    bounds = ("step", pl.col("start_ns").alias("step_start_ns"), pl.col("end_ns").alias("step_end_ns"))
    return pl.concat(
        [known.steps.select(*bounds, pl.lit(rank, pl.Int32).alias("rank")) for rank, known in ranks.items()]
    )
