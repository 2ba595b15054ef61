"""The clocks of the ranks on the timeline, so that ranks of different hosts share one axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holotrace.enrich.across_ranks.clocks.clocks import clocks
from holotrace.enrich.across_ranks.clocks.rank_clocks import RankClock, rank_clocks
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.matching.matching import match
from holotrace.locations import name_of
from holotrace.store.trace import RankTrace, Trace


@dataclass(frozen=True)
class TimelineClocks:
    """The clocks of ranks; empty if all ranks share one."""

    of_ranks: dict[int, RankClock]


def timeline_clocks(trace: Trace) -> TimelineClocks:
    """Compare the hosts' clocks; a single host needs no comparison."""
    hosts = {rank: _host(rank_trace) for rank, rank_trace in trace.ranks.items()}
    if len(set(hosts.values())) <= 1:
        return TimelineClocks({})
    matching = match(trace.map(of_rank))
    return TimelineClocks(rank_clocks(clocks(matching.calls, hosts).per_host, hosts))


def clocks_answer(known: TimelineClocks) -> list[dict[str, Any]]:
    """Return a row for each rank; none if all ranks share a clock.

    Returns:
        rank
        host        its name or, if unknown, that of the file
        half_width  ns; null if the clock is unknown
        lines       what to add to its clock: at, offset, drift (ppb) and last, the end of its validity or null; times on the
                    clock are texts, because they have more digits than numbers in a browser
    """
    return [
        {
            "rank": rank,
            "host": name_of(clock.host),
            "half_width": clock.half_width_ns,
            "lines": [
                {
                    "at": str(line.at_ns),
                    "offset": line.offset_ns,
                    "drift": line.drift_ppb,
                    "last": None if line.last_ns is None else str(line.last_ns),
                }
                for line in clock.lines
            ],
        }
        for rank, clock in known.of_ranks.items()
    ]


def _host(rank_trace: RankTrace) -> str:
    return rank_trace.header.host_name or rank_trace.source
