"""Find the library that communicates on the host although the job uses devices, and the copies that this requires."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import concatenated, covered_length, difference, intersection, union, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.collectives.collectives import HOST_COLLECTIVE
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.schema import EventKind, KernelKind


class HostLibrary(NamedTuple):
    """A library that communicates on the host, such as gloo.

    copies_ns  time per steady step in which a device copies data for the library's collectives, while no kernel and no
               communication runs
    """

    name: str
    copies_ns: float


def host_library(evidence: RankEvidence) -> HostLibrary | None:
    """Return the library that communicates on the host; None if devices communicate or there is no device work."""
    if not evidence.has_device_work or (evidence.work["kernel_kind"] == KernelKind.COMMUNICATION).any():
        return None
    names = evidence.rank_trace.strings
    libraries = names.filter(names.str.contains(HOST_COLLECTIVE)).str.extract(r"^(\w+):")
    name = next(iter(libraries), None)
    return None if name is None else HostLibrary(name, _copies_ns(evidence))


def _copies_ns(evidence: RankEvidence) -> float:
    """Return how long per step devices copy data for collectives while no kernel and no communication runs."""
    kinds = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
    columns = ["track_id", "start_ns", "end_ns"]
    named = names_matching(evidence.rank_trace, HOST_COLLECTIVE)
    ranges = event_ranges(evidence.rank_trace, kinds, columns, names=named).rename({"start_ns": "launch_start_ns"})
    copies = evidence.work.filter(pl.col("kernel_kind") == KernelKind.MEMORY).drop_nulls("launch_index")
    tracks = of_events(evidence.rank_trace.table("events", ["event_index", "track_id"]), copies["launch_index"])
    launched = copies.drop("track_id", strict=False).with_columns(tracks["track_id"]).sort("launch_start_ns")
    around = launched.join_asof(
        ranges.sort("launch_start_ns").rename({"end_ns": "until_ns"}),
        on="launch_start_ns",
        by="track_id",
        check_sortedness=False,
    )
    inside = union_of(around.filter(pl.col("launch_start_ns") <= pl.col("until_ns")).sort("start_ns"))
    other = union(*concatenated([evidence.roles["kernel"], evidence.roles["communication"]]))
    return covered_length(*difference(intersection(inside, evidence.step_windows), other)) / evidence.step_count
