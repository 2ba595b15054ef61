"""The time in which a rank communicates, by step, with the keys that match it to other ranks."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.collectives.collectives import OPERATION, matchable_communication
from holotrace.enrich.collectives.element_types import type_name
from holotrace.store.trace import RankTrace


def communication_ranges(rank_trace: RankTrace, kept_steps: pl.Series) -> pl.DataFrame:
    """Return every range of communication of a rank.

    Args:
        rank_trace: the rank.
        kept_steps: numbers of the measured steps; ranges in other steps count as outside.

    Returns:
        `OPERATION`, and:

        by_order          bool   matched by kind and order: no number was recorded
        step              int64  null outside the steps
        is_before         bool   launched before the recording
        collective        str
        dtype             str    null if unknown
        byte_count        int64  null if unknown
        is_call           bool   false on further ranges of the same call
        start_ns, end_ns  int64
    """
    ranges = matchable_communication(rank_trace)
    names = {dtype: type_name(dtype) for dtype in ranges["dtype"].unique()}
    is_kept = pl.col("window").is_in(kept_steps.implode())
    return ranges.select(
        *OPERATION,
        "by_order",
        pl.when(is_kept).then("window").alias("step"),
        pl.col("asked_ns").is_null().alias("is_before"),
        pl.col("family").alias("collective"),
        pl.col("dtype").replace_strict(names, return_dtype=pl.String, default=None),
        "byte_count",
        pl.lit(value=True).alias("is_call"),
        "start_ns",
        "end_ns",
    )
