"""How each process group is used, from which its axis follows."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.axes import FSDP_ANNOTATION, Use


def uses_of_groups(calls: pl.DataFrame, steps: pl.DataFrame) -> dict[int, Use]:
    """Return {group: how it is used}.

    Args:
        calls: `JobCalls.calls`, with the `module` that asked for each.
        steps: rank, step, start_ns and end_ns.
    """
    known, of_step = calls.drop_nulls("group"), steps.select("rank", "step", first_ns="start_ns", last_ns="end_ns")
    reduced = known.filter(pl.col("collective") == "all_reduce").join(of_step, on=["rank", "step"])
    part = (pl.col("asked_ns") - pl.col("first_ns")) / (pl.col("last_ns") - pl.col("first_ns"))
    firsts = reduced.group_by("group", "rank", "step").agg(part.min().alias("part"))
    parts = dict(firsts.group_by("group").agg(pl.col("part").median()).iter_rows())
    sums = known.group_by("group").agg(
        pl.col("collective").unique().alias("families"),
        ((~pl.col("is_even")) | (pl.col("is_even").is_null() & (pl.col("in_bytes") != pl.col("out_bytes"))))
        .any()
        .alias("has_uneven"),
        pl.col("module").str.contains(FSDP_ANNOTATION).any().alias("is_fsdp"),
    )
    return {
        row["group"]: Use(frozenset(row["families"]), parts.get(row["group"]), row["has_uneven"], bool(row["is_fsdp"]))
        for row in sums.iter_rows(named=True)
    }
