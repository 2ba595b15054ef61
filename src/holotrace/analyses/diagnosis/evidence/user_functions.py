"""Measure how long each function in the user's files takes."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import holding
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.frames import is_user_frame
from holotrace.schema import EventKind


def user_functions(evidence: RankEvidence) -> dict[str, int]:
    """Return the mean time per step of each function in ns, including its callees; empty if no functions were recorded."""
    calls = user_calls(evidence)
    steady = calls.filter(pl.Series(holding(evidence.step_windows, calls["start_ns"].to_numpy()) >= 0))
    time_ns = (pl.col("end_ns") - pl.col("start_ns")).sum() // evidence.step_count
    sums = steady.group_by("name", maintain_order=True).agg(time_ns.alias("time_ns"))
    return dict(zip(evidence.rank_trace.texts(sums["name"]).to_list(), sums["time_ns"].to_list(), strict=True))


def user_calls(evidence: RankEvidence) -> pl.DataFrame:
    """Return the calls of the user's functions: name, start_ns, end_ns."""
    ids = pl.Series("name", is_user_frame(evidence.rank_trace.strings).arg_true(), pl.UInt32)
    return event_ranges(evidence.rank_trace, [EventKind.PYTHON_FUNCTION], ["name", "start_ns", "end_ns"], names=ids)
