"""The findings on the timeline: idle devices, waits in collectives, and the events to which advice refers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from holotrace.analyses.diagnosis.answer import finding_texts
from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.enrich.device.longest_idle_gaps import longest_idle_gaps
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text
from holotrace.web.timeline.waits import Waits

MOST_OF_A_KIND = 20
"""Maximum number of findings of each kind on a rank; only the longest are shown."""

SHORTEST_NS = 30_000
"""Minimum length of a gap or wait in ns, about as long as a kernel launch takes; `holotrace.idle_time` has the same
threshold."""


@dataclass(frozen=True)
class Finding:
    """A period or a point in time that the user should look at, and a sentence that says why.

    kind              "idle", "waiting" or "advice"
    text              one sentence, without full stop
    start_ns, end_ns  times on the rank's clock (not relative to the origin); equal for a single point in time
    event_index       the event to look at; None if the finding names no event
    """

    kind: str
    text: str
    start_ns: int
    end_ns: int
    event_index: int | None = None


def idle_findings(rank_trace: RankTrace) -> Iterator[Finding]:
    """Yield the longest periods in which a device is idle."""
    gaps = longest_idle_gaps(rank_trace, shortest_ns=SHORTEST_NS, most=MOST_OF_A_KIND)
    for device, start_ns, end_ns, launch_ns in gaps.iter_rows():
        yield Finding("idle", f"GPU {device} is idle for {_gap_text(start_ns, end_ns, launch_ns)}", start_ns, end_ns)


def _gap_text(start_ns: int, end_ns: int, launch_ns: int | None) -> str:
    """Return the length of a gap, and whether the next work was already launched when the gap began."""
    length = duration_text(end_ns - start_ns)
    if launch_ns is None:
        return f"{length}; the launch of the next work was not recorded"
    if launch_ns <= start_ns:
        return f"{length}, although the next work was already launched"
    return f"{length}; the next work is launched {duration_text(min(launch_ns, end_ns) - start_ns)} into the gap"


def waiting_findings(rank: int, waits: Waits) -> Iterator[Finding]:
    """Yield the collectives in which a rank waits a long time for others, or others wait a long time for this rank."""
    for row in waits.table.filter(pl.col("rank") == rank).iter_rows(named=True):
        start, late, event = row["start_ns"], row["late_rank"], row["event_index"]
        if row["caused_ns"]:
            text = f"enters {row['family']} last: others wait up to {duration_text(row['caused_ns'])}"
            yield Finding("waiting", text, start, start, event)
        else:
            late_ranks = "others" if late is None else f"rank {late}"
            text = f"waits {duration_text(row['wait_ns'])} for {late_ranks} in {row['family']}"
            yield Finding("waiting", text, start, start + row["wait_ns"], event)


def diagnosis_findings(rank: int, known: Diagnosis) -> Iterator[Finding]:
    """Yield the findings of the diagnosis whose first event is on this rank; each is shown at its first event."""
    for row, text in finding_texts(known):
        if row["rank"] == rank and row["at_ns"] is not None:
            at_ns = row["at_ns"]
            yield Finding("advice", f"{text}. {row['advice'].removesuffix('.')}", at_ns, at_ns, row["event_index"])
