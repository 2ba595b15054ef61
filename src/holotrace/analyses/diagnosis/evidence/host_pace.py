"""Find out whether the host launches steps as fast as the devices finish them."""

from __future__ import annotations

from statistics import median_low
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_before, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.device.synchronisations import host_synchronisations
from holotrace.enrich.steps.steps import windows
from holotrace.store.trace import RankTrace

FALLS_BEHIND = 1.25
"""A host falls behind if its fastest step takes at least this many times as long as the median step on the devices.
Smaller differences prove nothing, because even the lengths of similar steps vary that much."""


class HostPace(NamedTuple):
    """How long the host and the devices take for a step.

    host_ns    length of the fastest step on the host, not counting the time in which the host waits for a device
    device_ns  median length of a step on the devices
    """

    host_ns: int
    device_ns: int

    @property
    def ratio(self) -> float:
        """`host_ns` divided by `device_ns`."""
        return self.host_ns / self.device_ns


def host_pace(evidence: RankEvidence) -> HostPace | None:
    """Return how long the host and the devices take for a step; None if the recording has no steps."""
    announced = windows(evidence.rank_trace)
    if not evidence.has_steps or announced.is_empty() or not evidence.step_lengths_ns:
        return None
    starts, ends = (announced[name].to_numpy() for name in ("start_ns", "end_ns"))
    waits = _waits(evidence.rank_trace)
    own_ns = ends - starts - (covered_before(waits, ends) - covered_before(waits, starts))
    device_ns = median_low(evidence.step_lengths_ns)
    return HostPace(int(own_ns.min()), device_ns) if device_ns else None


def _waits(rank_trace: RankTrace) -> Intervals:
    """Return the intervals in which the host waits for a device."""
    calls = host_synchronisations(rank_trace).select("event_index").unique()
    times = rank_trace.table("events", ["event_index", "start_ns", "duration_ns"]).join(calls, on="event_index")
    return union_of(times.with_columns((pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")))
