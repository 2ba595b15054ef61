"""All doubts about the recordings of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_length, intersection, intervals_of, union
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.trust.across_ranks import doubts_of_job
from holotrace.enrich.trust.doubts import NO_INTERVALS, Doubt, all_times
from holotrace.enrich.trust.rank_recording import RankRecording, rank_recording
from holotrace.enrich.trust.rules import doubts_of_rank
from holotrace.store.trace import RankTrace

DOUBTS = pl.Schema(
    {
        "rank": pl.Int32(),
        "rule": pl.String(),
        "device": pl.Int32(),
        "stream": pl.Int64(),
        "start_ns": pl.Int64(),
        "end_ns": pl.Int64(),
        "doubtful_ns": pl.Int64(),
        "case_count": pl.Int64(),
        "event_index": pl.UInt32(),
        "sentence": pl.String(),
    }
)


class ExaminedRank(NamedTuple):
    """The doubts about one rank, and the facts about it that are needed to find doubts about the whole job.

    doubts         the doubts about this rank alone
    recording      facts to compare with other ranks
    busy_ns        time in which any device of the rank is busy
    doubtful_busy  the part of the busy time to which at least one doubt applies
    """

    doubts: tuple[Doubt, ...]
    recording: RankRecording
    busy_ns: int
    doubtful_busy: Intervals


def examined_rank(rank_trace: RankTrace) -> ExaminedRank:
    """Examine the whole recording of a rank, even if `rank_trace` selects only a part of it."""
    doubts = doubts_of_rank(rank_trace)
    work = intervals_of(device_work(rank_trace.unselected))
    times = all_times(doubts)
    doubtful_busy = intersection(times, union(*work)) if len(times[0]) else NO_INTERVALS
    return ExaminedRank(doubts, rank_recording(rank_trace), covered_length(*work), doubtful_busy)


def doubts_by_rank(ranks: Mapping[int, ExaminedRank]) -> dict[int, list[Doubt]]:
    """Return the doubts about each rank.

    A doubt about how the ranks' recordings fit together is listed at the rank to examine, after the doubts that concern
    only this rank.
    """
    doubts = {rank: list(known.doubts) for rank, known in ranks.items()}
    for rank, doubt in doubts_of_job({rank: known.recording for rank, known in ranks.items()}):
        doubts[rank].append(doubt)
    return doubts


def doubts_table(doubts: Mapping[int, Sequence[Doubt]]) -> pl.DataFrame:
    """Return one row for each doubt, with the columns of `DOUBTS`."""
    rows = [(rank, *_row(doubt)) for rank, of_rank in doubts.items() for doubt in of_rank]
    return pl.DataFrame(rows, DOUBTS, orient="row")


def _row(doubt: Doubt) -> tuple[str | int | None, ...]:
    where = doubt.device, doubt.stream, *doubt.span
    return doubt.rule, *where, doubt.doubtful_ns, doubt.count, doubt.event_index, doubt.sentence
