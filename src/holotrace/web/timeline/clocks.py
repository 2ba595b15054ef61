"""The clocks of the ranks on the timeline; they let ranks on different hosts share one axis."""

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
    """The clocks of ranks; empty if all ranks share one clock."""

    of_ranks: dict[int, RankClock]


def timeline_clocks(trace: Trace) -> TimelineClocks:
    """Compare the hosts' clocks, if there are several hosts."""
    hosts = {rank: _host(rank_trace) for rank, rank_trace in trace.ranks.items()}
    if len(set(hosts.values())) <= 1:
        return TimelineClocks({})
    matching = match(trace.map(of_rank))
    return TimelineClocks(rank_clocks(clocks(matching.calls, hosts).per_host, hosts))


def clocks_answer(known: TimelineClocks) -> list[dict[str, Any]]:
    """Return a row for each rank; no rows if all ranks share one clock.

    Returns:
        rank
        host        name of the host or, if unknown, of the file
        half_width  error of the clock in ns; null if the clock is unknown
        lines       corrections to add to the clock: at, offset, drift (ppb), and last (end of validity, or null); `at`
                    and `last` are texts, because JavaScript would round such large numbers
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
