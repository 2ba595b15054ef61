"""Finds event names that match a regular expression."""

from __future__ import annotations

import polars as pl

from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


@derived
def names_matching(rank_trace: RankTrace, pattern: str) -> pl.Series:
    """Return the ids of the strings that match a regular expression, ascending.

    >>> from holotrace.testing.builder import TraceBuilder
    >>> rank_trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build().ranks[0]
    >>> rank_trace.texts(names_matching(rank_trace, "^ge")).to_list()
    ['gemm']
    """
    return rank_trace.strings.str.contains(pattern).arg_true().cast(pl.UInt32)
