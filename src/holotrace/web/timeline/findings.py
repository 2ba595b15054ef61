"""What was noticed, with the time at which to look: idle devices, waiting in collectives, and what the advice is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import gaps
from holotrace.content_equality import EqualByContent
from holotrace.enrich.collectives.collectives import OPERATION, comparable, matchable_communication, of_ranks
from holotrace.enrich.device.device_work import by_device, device_work, intervals_of
from holotrace.enrich.device.launches import launches
from holotrace.enrich.kernels.kernel_kind import with_current_rules
from holotrace.recommendations.advice import Advice
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import duration_text

MOST_OF_A_KIND = 20
"""So many of each kind on a rank: the longest."""

SHORTEST_NS = 30_000
"""Shorter gaps and waits are the price of any launch; `holotrace.idle_time` draws the line there as well."""

_OF_EVENTS = 3
"""Events behind a piece of advice that are shown: the most telling."""


@dataclass(frozen=True)
class Finding:
    """Something to look at.

    kind          "idle", "waiting" or "advice"
    text          what it is
    start, end    absolute ns; equal where it is a moment
    """

    kind: str
    text: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, eq=False)
class Waits(EqualByContent):
    """Collectives in which a rank waits for another long, or another for it, at most `MOST_OF_A_KIND` a rank.

    table  rank, family, start_ns, wait_ns, caused_ns: what another one waits at most for this rank, which came last; and
           late_rank: who came last, null where several did
    """

    table: pl.DataFrame


def longest_waits(trace: Trace) -> Waits:
    """Compare how long each rank is in each collective, as `holotrace.stragglers` does: who is in it longer waits for the last."""
    found = of_ranks(trace.map(with_current_rules(_matchable)))
    matched, _ = comparable(found)
    duration = pl.col("end_ns") - pl.col("start_ns")
    per_operation = matched.group_by(OPERATION).agg(
        duration.min().alias("shortest"),
        duration.max().alias("longest"),
        pl.when((duration == duration.min()).sum() == 1)
        .then(pl.col("rank").get(duration.arg_min()))
        .alias("late_rank"),
    )
    is_late = pl.col("rank") == pl.col("late_rank")
    compared = matched.join(per_operation, on=OPERATION).select(
        "rank",
        "family",
        "start_ns",
        (duration - pl.col("shortest")).alias("wait_ns"),
        pl.when(is_late).then(pl.col("longest") - pl.col("shortest")).otherwise(0).alias("caused_ns"),
        "late_rank",
    )
    amount = pl.max_horizontal("wait_ns", "caused_ns")
    place = amount.rank("ordinal", descending=True).over("rank")
    return Waits(compared.filter((amount >= SHORTEST_NS) & (place <= MOST_OF_A_KIND)).sort("rank", "start_ns"))


def _matchable(rank_trace: RankTrace) -> pl.DataFrame:
    return matchable_communication(rank_trace).select(*OPERATION, "family", "start_ns", "end_ns").drop_nulls("key")


def idle_findings(rank_trace: RankTrace) -> Iterator[Finding]:
    """Yield the longest times in which a device runs nothing, the longest first."""
    work = device_work(rank_trace)
    if work.is_empty():
        return
    launch = rank_trace.derive(launches).select("event_index", "launch_start_ns")
    for device, of_device in by_device(work.join(launch, on="event_index", how="left", maintain_order="left")):
        start, end = gaps(*intervals_of(of_device))
        longest = np.argsort(start - end, kind="stable")[:MOST_OF_A_KIND]
        ended_by = of_device["launch_start_ns"].gather(np.searchsorted(of_device["start_ns"].to_numpy(), end[longest]))
        for begin, stop, launched in zip(start[longest].tolist(), end[longest].tolist(), ended_by, strict=True):
            if stop - begin >= SHORTEST_NS:
                yield Finding("idle", f"GPU {device} is idle for {_gap_text(begin, stop, launched)}", begin, stop)


def _gap_text(begin: int, end: int, launched: int | None) -> str:
    """Say how long a gap is, and whether the host came late with what ends it."""
    length = duration_text(end - begin)
    if launched is None:
        return f"{length}; the launch of what ends it is not recorded"
    before = duration_text(min(max(launched - begin, 0), end - begin))
    if launched <= begin:
        return f"{length}, though what ends it was launched before"
    return f"{length}: what ends it is launched after {before}"


def waiting_findings(rank: int, waits: Waits) -> Iterator[Finding]:
    """Yield the collectives in which a rank waits long, or lets others wait."""
    for row in waits.table.filter(pl.col("rank") == rank).iter_rows(named=True):
        start, late = row["start_ns"], row["late_rank"]
        if row["caused_ns"]:
            text = f"comes last to {row['family']}: others wait up to {duration_text(row['caused_ns'])}"
            yield Finding("waiting", text, start, start)
        else:
            who = "others" if late is None else f"rank {late}"
            text = f"waits {duration_text(row['wait_ns'])} for {who} in {row['family']}"
            yield Finding("waiting", text, start, start + row["wait_ns"])


def advice_findings(rank: int, advice: Advice) -> Iterator[Finding]:
    """Yield where to look for the events behind each piece of advice."""
    said = dict(advice.recommendations.select("rule", "advice").iter_rows())
    events = advice.events.filter((pl.col("rank") == rank) & pl.col("at_ns").is_not_null())
    for rule, text in said.items():
        of_rule = events.filter(pl.col("rule") == rule).iter_rows(named=True)
        for row in islice(of_rule, _OF_EVENTS):
            yield Finding("advice", f"{row['event']}: {text}", row["at_ns"], row["at_ns"])
