"""Collectives: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.collectives.compute import Collectives
from holotrace.questions.answers import total
from holotrace.units import bandwidth_text, duration_text, percent_text


def answer(result: Collectives) -> str:
    """Say how much collective time is spent waiting, for which rank, and how fast the costliest collective is."""
    collective_ns = total(result.per_collective, "collective_ns")
    if not collective_ns:
        return "No rank has collectives."
    return f"{_waiting(result, collective_ns)}{_bandwidth(result)}."


def _waiting(result: Collectives, collective_ns: float) -> str:
    """Say how much of the time in collectives is spent waiting, and for which rank.

    Calls that were recorded on only one rank are not counted.
    """
    whole = f"{duration_text(collective_ns)} over all ranks"
    matched_ns = total(result.per_call.filter(pl.col("wait_ns").is_not_null()), "duration_ns")
    if not matched_ns:
        return f"{whole} goes into collectives; the waiting time is unknown, because no call was recorded on more than one rank"
    share = percent_text(total(result.per_call, "wait_ns") / matched_ns)
    if matched_ns == collective_ns:
        return f"{share} of the time in collectives ({whole}) is waiting{_for_whom(result)}"
    known = percent_text(matched_ns / collective_ns)
    return f"{share} of the time in matched collectives ({known} of {whole}) is waiting{_for_whom(result)}"


def _for_whom(result: Collectives) -> str:
    worst = result.per_rank.sort("caused_wait_ns", "rank", descending=[True, False]).row(0, named=True)
    caused = worst["caused_wait_ns"]
    return f", most of it for rank {worst['rank']}" if 2 * caused > total(result.per_rank, "wait_ns") > 0 else ""


def _bandwidth(result: Collectives) -> str:
    measured = result.per_collective.drop_nulls("bus_bytes_per_s")
    if measured.is_empty():
        return "; the bandwidth is unknown, because sizes were not recorded"
    longest = measured.row(0, named=True)
    return f"; {longest['collective']} reaches a bus bandwidth of {bandwidth_text(longest['bus_bytes_per_s'])}"
