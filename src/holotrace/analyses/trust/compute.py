"""Can this trace be trusted?

Which events did the profiler lose, add or record with wrong times, and how much of the recorded time is affected?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import concatenated, covered_length
from holotrace.enrich.trust.doubts import Doubt, all_times
from holotrace.enrich.trust.job_doubts import ExaminedRank, doubts_by_rank, doubts_table, examined_rank
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import Trace

_PER_RANK = pl.Schema(
    {
        "rank": pl.Int32(),
        "recorded_ns": pl.Int64(),
        "doubtful_ns": pl.Int64(),
        "trusted_fraction": pl.Float64(),
        "device_busy_ns": pl.Int64(),
        "doubtful_busy_ns": pl.Int64(),
        "trusted_busy_fraction": pl.Float64(),
        "doubt_count": pl.Int64(),
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Trust(Result):
    """The doubts about a recording, and the share of it that can be trusted.

    per_rank    one row per rank, sorted by rank:

        rank                   int32
        recorded_ns            int64    from the first to the last event
        doubtful_ns            int64    part of recorded_ns in which the recording breaks a rule
        trusted_fraction       float64  0..1 of recorded_ns; null if recorded_ns is 0
        device_busy_ns         int64    time in which work runs on a device of the rank
        doubtful_busy_ns       int64    part of device_busy_ns in which the recording breaks a rule
        trusted_busy_fraction  float64  0..1 of device_busy_ns; null if device_busy_ns is 0
        doubt_count            int64    rows of `doubts`

    doubts      one row per broken rule, device and stream, sorted by rank, then by rule, in the order of
                docs/reference/analyses/trust.md:

        rank              int32    the rank; for a doubt about the whole job, one of its ranks
        rule              str      name of the rule, as listed in docs/reference/analyses/trust.md
        device            int32    null if the doubt is about all devices, or about the host
        stream            int64    null if the doubt is about all streams, or about the host
        start_ns, end_ns  int64    first and last time in doubt; null if no particular times are in doubt
        doubtful_ns       int64    time in which the rule is broken; null if unknown
        case_count        int64    number of events or periods that break the rule
        event_index       uint32   the event to look at first; null if there is none
        sentence          str      what was found, and what it means

    findings    ranks that could not be read

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.trust(small_job()).answer
    '100.0 % of the recorded time can be trusted: the recording breaks no rule.'
    """

    per_rank: pl.DataFrame
    doubts: pl.DataFrame
    findings: tuple[str, ...] = ()


def trust(trace: Trace, *, executor: Executor = IN_PROCESS) -> Trust:
    """Check which events a recording may have lost, added or timed wrongly, and measure how much of it can be trusted.

    Each rule returns the times at which the recording breaks the rule. |x| is the length of the union of the intervals in x:

        trusted      = 1 - |times of all broken rules| / recorded time
        trusted busy = 1 - |times of all broken rules ∩ device work| / |device work|

    The check covers the whole recording, even if only some events are selected.

    Args:
        trace: the job.
        executor: processes each rank.

    Source: docs/reference/analyses/trust.md lists all rules, each with its threshold, reason and source.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.trust(small_job()).per_rank.select("rank", "trusted_fraction").rows()
    [(0, 1.0), (1, 1.0)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[ExaminedRank, Trust]:
    """Return the two functions of `trust`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(examined_rank, _combine)


def _combine(ranks: dict[int, ExaminedRank]) -> Trust:
    doubts = doubts_by_rank(ranks)
    shares = [_rank_row(rank, ranks[rank], of_rank) for rank, of_rank in doubts.items()]
    return Trust(pl.DataFrame(shares, _PER_RANK, orient="row"), doubts_table(doubts))


def _rank_row(rank: int, known: ExaminedRank, doubts: Sequence[Doubt]) -> dict[str, Any]:
    facts = known.recording.file
    start_ns, end_ns = facts.first_ns or 0, facts.last_ns or 0
    doubtful_ns = covered_length(*(np.clip(times, start_ns, end_ns) for times in all_times(doubts)))
    of_job = all_times(doubts[len(known.doubts) :])  # doubts about the whole job; they cover only device-busy times
    doubtful_busy_ns = covered_length(*concatenated([known.doubtful_busy, of_job]))
    return {
        "rank": rank,
        "recorded_ns": end_ns - start_ns,
        "doubtful_ns": doubtful_ns,
        "trusted_fraction": _rest(doubtful_ns, end_ns - start_ns),
        "device_busy_ns": known.busy_ns,
        "doubtful_busy_ns": doubtful_busy_ns,
        "trusted_busy_fraction": _rest(doubtful_busy_ns, known.busy_ns),
        "doubt_count": len(doubts),
    }


def _rest(part: int, whole: int) -> float | None:
    return 1 - part / whole if whole else None
