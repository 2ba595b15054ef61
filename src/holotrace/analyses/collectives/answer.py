"""Collectives in one sentence."""

from __future__ import annotations

from holotrace.analyses.collectives.compute import Collectives
from holotrace.answers import total
from holotrace.units import bandwidth_text, duration_text, percent_text


def answer(result: Collectives) -> str:
    """Say how much of the time in collectives is waiting, for whom, and how fast the dearest collective is."""
    collective_ns, wait_ns = (total(result.per_collective, name) for name in ("collective_ns", "wait_ns"))
    if not collective_ns:
        return "No rank has collectives."
    share = f"{percent_text(wait_ns / collective_ns)} of the time in collectives ({duration_text(collective_ns)} over all ranks)"
    return f"{share} is waiting{_for_whom(result)}{_bandwidth(result)}."


def _for_whom(result: Collectives) -> str:
    worst = result.per_rank.sort("caused_wait_ns", "rank", descending=[True, False]).row(0, named=True)
    caused = worst["caused_wait_ns"]
    return f", most of it for rank {worst['rank']}" if 2 * caused > total(result.per_rank, "wait_ns") > 0 else ""


def _bandwidth(result: Collectives) -> str:
    measured = result.per_collective.drop_nulls("bus_bytes_per_s")
    if measured.is_empty():
        return "; the sizes were not recorded, so the bandwidth is unknown"
    longest = measured.row(0, named=True)
    return f"; {longest['collective']} reaches a bus bandwidth of {bandwidth_text(longest['bus_bytes_per_s'])}"
