"""Compare how long each rank waits in a step with its typical wait, and find the cause whose cost grew most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from holotrace.enrich.job.rank_tables import typed

JITTER: dict[str, pl.DataType | type[pl.DataType]] = {
    "rank": pl.Int32,
    "step": pl.Int64,
    "wait_ns": pl.Int64,
    "typical_wait_ns": pl.Int64,
    "wait_excess_ns": pl.Int64,
    "cause_rank": pl.Int32,
    "cause": pl.String,
    "name": pl.String,
    "module": pl.String,
    "frame": pl.String,
    "cost_excess_ns": pl.Int64,
}
"""Columns of `WaitCauses.jitter`."""

_OF_CAUSE = ("cause_rank", "cause", "name", "module", "frame")


def jitter(per_cause: pl.DataFrame, steps: Mapping[int, Sequence[int]]) -> pl.DataFrame:
    """Compare each rank's waiting time in each step, and the cost of each cause in the step, with typical values.

    A typical value is the median over the rank's steps or, with an even number of steps, the lower of the two middle
    values.

    Args:
        per_cause: `WaitCauses.per_cause`.
        steps: the steps of each rank.

    Returns:
        `JITTER`, sorted by rank and step.
    """
    rows = [(rank, step, len(of_rank)) for rank, of_rank in steps.items() for step in of_rank]
    known = pl.DataFrame(rows, {"rank": pl.Int32, "step": pl.Int64, "step_count": pl.Int64}, orient="row")
    costs = per_cause.rename({"waiting_rank": "rank"}).join(known, on=["rank", "step"])
    waits = costs.group_by("rank", "step").agg(pl.col("cost_ns").sum())
    all_waits = known.join(waits, on=["rank", "step"], how="left").with_columns(pl.col("cost_ns").fill_null(0))
    compared = _with_typical(all_waits, ["rank"]).select(
        "rank",
        "step",
        wait_ns="cost_ns",
        typical_wait_ns="typical_ns",
        wait_excess_ns=pl.col("cost_ns") - pl.col("typical_ns"),
    )
    grown = compared.join(_most_grown(costs), on=["rank", "step"], how="left")
    return typed(grown.sort("rank", "step"), JITTER)


def _most_grown(costs: pl.DataFrame) -> pl.DataFrame:
    """Return, for each rank and step, the cause whose cost exceeds its typical cost the most."""
    excess = (pl.col("cost_ns") - pl.col("typical_ns")).alias("cost_excess_ns")
    grown = _with_typical(costs, ["rank", *_OF_CAUSE]).with_columns(excess).filter(pl.col("cost_excess_ns") > 0)
    first = grown.sort("cost_excess_ns", *_OF_CAUSE, descending=[True, *[False] * len(_OF_CAUSE)], nulls_last=True)
    return first.unique(["rank", "step"], keep="first", maintain_order=True).select(
        "rank", "step", *_OF_CAUSE, "cost_excess_ns"
    )


def _with_typical(costs: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add typical_ns, the median cost over the steps of the rank.

    With an even number of steps, it is the lower of the two middle values. If a step has no row for a cause, the cost
    in this step is 0.
    """
    sorted_costs = costs.group_by(keys).agg(
        pl.col("cost_ns").sort(descending=True).alias("sorted"), pl.col("step_count").first().alias("of")
    )
    typical = pl.col("sorted").list.get(pl.col("of") // 2, null_on_oob=True).fill_null(0).alias("typical_ns")
    return costs.join(sorted_costs.select(*keys, typical), on=keys, how="left", nulls_equal=True)
