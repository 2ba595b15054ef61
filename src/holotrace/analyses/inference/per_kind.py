"""Summarize the steps by kind, by batch, or by rank."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.analyses.inference.parts import PARTS, bounds
from holotrace.analyses.inference.periods import STEADY

KIND = ("rank", "kind", "is_draft")
BATCH = (*KIND, "request_count")
_FAMILIES = ("attention", "moe", "draft")
_PERCENTILES = (50, 90, 99)


def over(steps: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return a row for each combination of keys, computed from its steady steps; see `Inference.per_kind`."""
    rows = steps.group_by(keys, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("step_count"), (~_IS_STEADY).sum().cast(pl.Int64).alias("apart_count")
    )
    steady = (
        steps.filter(_IS_STEADY)
        .group_by(keys)
        .agg(
            *(_percentile("step_ns", percent) for percent in _PERCENTILES),
            pl.col("token_count").mean().alias("mean_token_count"),
            pl.col("gap_before_ns").mean().alias("mean_gap_before_ns"),
            pl.col("host_ns").mean().alias("mean_host_ns"),
            _output_token_ns(),
            *_summed(),
        )
    )
    joined = rows.join(steady, on=keys, how="left", nulls_equal=True, maintain_order="left")
    with_bounds = joined.with_columns(pl.col(*PARTS).fill_null(0))
    return with_bounds.with_columns(bounds(with_bounds)).sort(keys, nulls_last=True)


def summary(steps: pl.DataFrame) -> pl.DataFrame:
    """Return one row per rank; see `Inference.summary`."""
    counts = steps.group_by("rank", maintain_order=True).agg(
        pl.col("engine", "found_by").first(),
        pl.len().cast(pl.Int64).alias("step_count"),
        (~_IS_STEADY).sum().cast(pl.Int64).alias("apart_count"),
    )
    steady = (
        steps.filter(_IS_STEADY)
        .group_by("rank")
        .agg(
            (pl.col("end_ns").max() - pl.col("start_ns").min()).alias("elapsed_ns"),
            *(_known_sum(f"{of}_token_count") for of in ("prefill", "decode", "output", "draft")),
            _inter_token_ns(),
            _tokens_per_s(),
            *_summed(),
            _known_sum("wait_ns"),
        )
    )
    joined = counts.join(steady, on="rank", how="left", maintain_order="left").with_columns(pl.col(*PARTS).fill_null(0))
    return joined.with_columns(bounds(joined)).sort("rank")


_IS_STEADY = pl.col("period") == STEADY


def _summed() -> list[pl.Expr]:
    busy = pl.col("busy_ns").sum()
    shares = [
        pl.when(pl.col(f"{family}_ns").count() > 0)
        .then(pl.col(f"{family}_ns").sum() / pl.when(busy > 0).then(busy))
        .alias(f"{family}_fraction")
        for family in _FAMILIES
    ]
    return [pl.col("busy_ns").sum(), *(pl.col(part).sum() for part in PARTS), *shares]


def _percentile(column: str, percent: int) -> pl.Expr:
    """Return a percentile by nearest rank: the smallest value that `percent` % of all values do not exceed."""
    place = (pl.len() * percent + 99) // 100 - 1
    return pl.col(column).sort().get(place).alias(f"p{percent}_{column}")


def _output_token_ns() -> pl.Expr:
    """Divide the time of the steps and of the gaps before them by the number of output tokens.

    The result is null if the number of output tokens is 0 in total or unknown for any step.
    """
    tokens = pl.col("output_token_count")
    time = (pl.col("step_ns") + pl.col("gap_before_ns").fill_null(0)).sum()
    is_known = (tokens.null_count() == 0) & (tokens.sum() > 0)
    return pl.when(is_known).then(time / tokens.sum()).alias("output_token_ns")


def _inter_token_ns() -> pl.Expr:
    """Return how long a request waits for a token: the span of the steady steps, divided by the number of decoding steps."""
    decodes = pl.col("decode_request_count") > 0
    is_known = (pl.col("kind").null_count() == 0) & (pl.col("draft_token_count").filter(decodes) == 0).all(
        ignore_nulls=False
    )
    elapsed = pl.col("end_ns").max() - pl.col("start_ns").min()
    return pl.when(is_known & (decodes.sum() > 0)).then(elapsed / decodes.sum()).alias("inter_token_ns")


def _tokens_per_s() -> pl.Expr:
    """Return the number of new tokens per second; null if the number of tokens is unknown for any step."""
    elapsed, tokens = pl.col("end_ns").max() - pl.col("start_ns").min(), pl.col("token_count")
    is_known = (tokens.null_count() == 0) & (elapsed > 0)
    return pl.when(is_known).then(1e9 * tokens.sum() / elapsed).alias("tokens_per_s")


def _known_sum(column: str) -> pl.Expr:
    return pl.when(pl.col(column).null_count() == 0).then(pl.col(column).sum()).alias(column)
