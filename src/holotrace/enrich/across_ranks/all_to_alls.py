"""Uses the sizes of the exchanged data to find all-to-alls in which all ranks wait for each other."""

from __future__ import annotations

import polars as pl

_IS_ALL_TO_ALL = pl.col("family").cast(pl.String) == "all_to_all"
_SPLITS = ("is_even", "in_splits")
_SIZES = ("in_bytes", "out_bytes")


def is_even(calls: pl.DataFrame) -> pl.Expr:
    """Return whether each call is an all-to-all in which every rank sends the same amount to every rank.

    If the splits were not recorded, the inputs and outputs of all ranks of the instance must have the same size.

    Args:
        calls: family and instance; if available also is_even, in_splits, in_bytes and out_bytes.
    """
    is_recorded = pl.col("is_even").all() if "is_even" in calls.columns else pl.lit(value=False)
    flags = [pl.col(name).is_null().all() for name in _SPLITS if name in calls.columns]
    is_unknown = pl.all_horizontal(flags) if flags else pl.lit(value=True)
    flagged = pl.col("is_even").is_not_null().all() if "is_even" in calls.columns else pl.lit(value=False)
    return _IS_ALL_TO_ALL & ((flagged & is_recorded) | (is_unknown & _has_equal_sizes(calls))).over("instance")


def reaches_all(calls: pl.DataFrame) -> pl.Expr:
    """Return whether each call is an all-to-all in which every rank sends to every rank, so all wait for each other."""
    if "in_splits" not in calls.columns:
        return is_even(calls)
    is_listed = pl.col("in_splits").is_not_null().all() & (pl.col("in_splits").list.min().min() > 0)
    return is_even(calls) | (_IS_ALL_TO_ALL & is_listed.over("instance"))


def _has_equal_sizes(calls: pl.DataFrame) -> pl.Expr:
    if not set(_SIZES) <= set(calls.columns):
        return pl.lit(value=False)
    smallest, largest = pl.min_horizontal(_SIZES), pl.max_horizontal(_SIZES)
    is_known = pl.all_horizontal(pl.col(size).is_not_null() for size in _SIZES) & (largest > 0)
    return is_known.all() & (smallest.min() == largest.max())
