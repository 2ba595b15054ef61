"""Find ranks whose recordings differ in job, time, clock or software."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl

from holotrace.enrich.job.findings import ranks_text
from holotrace.enrich.job.one_job import unrelated
from holotrace.enrich.trust.doubts import Doubt
from holotrace.enrich.trust.rank_recording import RankRecording
from holotrace.enrich.trust.start_up import TIMES_MEDIAN
from holotrace.units import duration_text, percent_text

LARGEST_END_DIFFERENCE = 0.1
"""Ranks leave a collective at nearly the same time. If the ends of the ranks' calls differ by more than
this fraction of the longest duration, the calls belong to different collectives, or the clocks differ.
"""

LEAST_CLOCK_DIFFERENCE_NS = 1_000_000
"""Smaller differences between the clocks do not affect the tables about collectives."""

_LATE_START = "profiler_start_skew"

JobDoubts = Iterator[tuple[int, Doubt]]
"""Doubts, each with the rank for which it is reported: `(rank, doubt)`."""


def different_jobs(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt if the files differ in facts that are the same on all ranks of one job.

    Reasons: the world sizes, backends, GPUs or runtimes differ; several files have a world size of 1; the recordings
        are more than 10 s apart.

    Source: `holotrace.enrich.job.one_job`.
    """
    sentence = unrelated({rank: known.file for rank, known in ranks.items()})
    if sentence:
        yield min(ranks), Doubt("different_jobs", f"{sentence[0].upper()}{sentence[1:]}", count=len(ranks))


def different_software(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt about comparisons between ranks if their GPUs, software versions or profiler options differ."""
    names = dict.fromkeys(name for known in ranks.values() for name in known.software)
    for name in names:
        values = _by_value({rank: known.software.get(name) for rank, known in ranks.items()})
        if len(values) > 1:
            usual = max(values, key=lambda value: (len(values[value]), value))
            for value, odd in values.items():
                if value != usual:
                    yield (
                        odd[0],
                        Doubt(
                            "different_software",
                            f"The {name} is {value} on {ranks_text(odd)}, but {usual} on {ranks_text(values[usual])}: "
                            "this may explain differences between these ranks",
                            count=len(odd),
                        ),
                    )


def missing_ranks(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt about waiting times if the world size in the files is larger than the number of examined ranks."""
    sizes = {known.file.world_size for known in ranks.values() if known.file.world_size}
    missing = sorted(set(range(max(sizes, default=0))) - set(ranks))
    if missing:
        size = max(sizes)
        here = size - len(missing)
        yield (
            min(ranks),
            Doubt(
                "missing_ranks",
                f"The job has {size:,} ranks, but only {here:,} of them ({percent_text(here / size)}) can be examined: "
                f"{ranks_text(missing)} {_is_missing(len(missing))}",
                count=len(missing),
            ),
        )


def windows_apart(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt about comparisons between ranks if the ranks were never recorded at the same time."""
    both = {rank: (known.file.first_ns, known.file.last_ns) for rank, known in ranks.items()}
    spans = {rank: (first, last) for rank, (first, last) in both.items() if first is not None and last is not None}
    if len(spans) < 2 or max(first for first, _ in spans.values()) < min(last for _, last in spans.values()):  # noqa: PLR2004
        return
    most = _most_common_time(spans)
    apart = [rank for rank, (first, last) in spans.items() if not first <= most <= last]
    if not apart:
        return
    away = max(_distance(spans[rank], most) for rank in apart)
    rest = [rank for rank in spans if rank not in apart]
    yield (
        apart[0],
        Doubt(
            "windows_apart",
            f"The recordings of {ranks_text(apart)} and {ranks_text(rest)} do not overlap "
            f"(they are {duration_text(away)} apart): the ranks were recorded at different times, or their clocks "
            "differ, so waits between these ranks are unknown",
            count=len(apart),
            from_ns=spans[apart[0]][0],
            to_ns=spans[apart[0]][1],
        ),
    )


def clocks_differ(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt about the clocks if a rank leaves a collective more than 1 ms before another rank enters it.

    Source: no rank can leave an all-reduce before all ranks have entered it; see
    docs/reference/analyses/collectives.md.
    """
    tables = [known.collectives.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, known in ranks.items()]
    calls = pl.concat(tables).drop_nulls("call")
    worst: tuple[int, int, int] | None = None
    for _, call in calls.group_by("call", maintain_order=True):
        if call["rank"].n_unique() > 1:
            first, last = call.sort("end_ns").row(0, named=True), call.sort("start_ns").row(-1, named=True)
            gap = last["start_ns"] - first["end_ns"]
            if gap > LEAST_CLOCK_DIFFERENCE_NS and (worst is None or gap > worst[0]):
                worst = gap, first["rank"], last["rank"]
    if worst is not None:
        gap, early, late = worst
        yield (
            late,
            Doubt(
                "clocks_differ",
                f"Rank {late} enters a collective {duration_text(gap)} after rank {early} left it, which is "
                "impossible: their clocks differ by at least this much, so compare their times only after alignment, "
                "as holotrace collectives does",
            ),
        )


def profiler_start_skew(ranks: Mapping[int, RankRecording]) -> JobDoubts:
    """Yield a doubt about a rank's first collective if another rank starts to record during the call.

    The call may wait for the rank that starts to record.

    Calls are compared only if they end at nearly the same time. A call is doubted only if it takes over 10 times as
    long as the shortest call with which it is compared.

    Source: https://github.com/vllm-project/vllm/pull/57001, where one all-gather takes 30.4, 4.1, 0.04 and 3.8 ms on
    four ranks because their profilers start one after the other.
    """
    firsts = [
        (rank, known.file.first_ns, known.collectives.row(0, named=True))
        for rank, known in ranks.items()
        if len(known.collectives) and known.file.first_ns is not None
    ]
    for rank, _, call in firsts:
        length = call["end_ns"] - call["start_ns"]
        peers = [
            (other, begun_ns, theirs["end_ns"] - theirs["start_ns"])
            for other, begun_ns, theirs in firsts
            if abs(theirs["end_ns"] - call["end_ns"]) <= LARGEST_END_DIFFERENCE * length
        ]
        late, begun_ns, _ = max(peers, key=lambda peer: (peer[1], peer[0]))
        shortest = min(duration for _, _, duration in peers)
        if call["start_ns"] < begun_ns < call["end_ns"] and length > TIMES_MEDIAN * shortest:
            wait = np.array([call["start_ns"]]), np.array([begun_ns])
            yield (
                rank,
                Doubt(
                    _LATE_START,
                    f"The first collective takes {duration_text(length)}, including "
                    f"{duration_text(begun_ns - call['start_ns'])} before the recording of rank {late} begins: "
                    f"rank {rank} waits for a profiler to start, not for communication",
                    event_index=call["event_index"],
                    times=wait,
                    device=call["device"],
                    stream=call["stream"],
                ),
            )


JOB_RULES: tuple[Callable[[Mapping[int, RankRecording]], JobDoubts], ...] = (
    different_jobs,
    missing_ranks,
    windows_apart,
    clocks_differ,
    different_software,
    profiler_start_skew,
)
"""The rules about several ranks; if the first rule finds different jobs, the others are skipped."""


def doubts_of_job(ranks: Mapping[int, RankRecording]) -> list[tuple[int, Doubt]]:
    """Return all doubts about whether the recordings of a job fit together, each with the rank to examine."""
    if len(ranks) < 2:  # noqa: PLR2004 -- one rank fits itself
        return []
    mixed = list(different_jobs(ranks))
    return mixed or [doubt for rule in JOB_RULES[1:] for doubt in rule(ranks)]


def _is_missing(count: int) -> str:
    return (
        f"{'is' if count == 1 else 'are'} missing, so it is unknown why other ranks wait for "
        f"{'it' if count == 1 else 'them'}"
    )


def _by_value(of_ranks: Mapping[int, str | None]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for rank, value in of_ranks.items():
        if value is not None:
            groups.setdefault(value, []).append(rank)
    return groups


def _most_common_time(spans: Mapping[int, tuple[int, int]]) -> int:
    """Return a time when as many ranks as possible were being recorded."""
    starts = sorted(first for first, _ in spans.values())
    return max(starts, key=lambda moment: sum(first <= moment <= last for first, last in spans.values()))


def _distance(span: tuple[int, int], moment: int) -> int:
    return max(span[0] - moment, moment - span[1], 0)
