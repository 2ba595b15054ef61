"""Computes how many rows of a table to keep; HTA merges the remaining rows into one row, `others`."""

from __future__ import annotations

import numpy as np
import polars as pl


def kept_count(durations: pl.Series, duration_ratio: float, largest_count: int) -> int:
    """Return how many of the longest durations add up to `duration_ratio` of the total, but at most `largest_count`.

    Args:
        durations: sorted from long to short.
        duration_ratio: 0 to 1.
        largest_count: the maximum to return.
    """
    covered = np.cumsum(durations.to_numpy())
    return min(largest_count, int(np.searchsorted(covered, duration_ratio * covered[-1])) + 1)
