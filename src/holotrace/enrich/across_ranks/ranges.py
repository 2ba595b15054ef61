"""Matches, across ranks, the time ranges in which ranks communicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.across_ranks.matching.matching import matched_without_numbers
from holotrace.enrich.across_ranks.timed_calls import timed_calls
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT


class JobRanges(NamedTuple):
    """The time ranges in which the ranks communicate.

    table     one row per range:

              rank              int32
              wait_ns           int64  time in which the rank only waits for others; null if no other rank recorded the
                                       call
              step              int64  null outside the steps
              is_before         bool   whether the call was launched before the recording
              collective        str
              dtype             str    null if unknown
              byte_count        int64  null if unknown
              is_call           bool   whether this is the first range of a call
              start_ns, end_ns  int64

    findings  sentences about unmatched calls, and about calls that were matched by order because no number identifies
              them
    """

    table: pl.DataFrame
    findings: tuple[str, ...]


def job_ranges(of_ranks: Mapping[int, OfRank], steps: pl.DataFrame) -> JobRanges:
    """Match the communication calls of all ranks, and return their time ranges.

    Args:
        of_ranks: {rank: the result of `holotrace.enrich.across_ranks.matching.calls.of_rank`}.
        steps: the measured steps (columns rank and step); `step` is null for ranges outside these steps.
    """
    timed = timed_calls(of_ranks)
    measured = steps.select("rank", "step", window="step").unique()
    calls = timed.calls.join(measured, on=["rank", "window"], how="left", maintain_order="left")
    table = calls.select(
        "rank",
        "wait_ns",
        "step",
        pl.col("asked_ns").is_null().alias("is_before"),
        pl.col("family").cast(pl.String).alias("collective"),
        "dtype",
        pl.col("in_bytes").alias("byte_count"),
        pl.lit(value=True).alias("is_call"),
        "start_ns",
        "end_ns",
    )
    return JobRanges(table, (*matched_without_numbers(calls.filter(~IS_POINT_TO_POINT)), *timed.matching.findings))
