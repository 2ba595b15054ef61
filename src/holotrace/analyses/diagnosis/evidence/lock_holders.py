"""Find the function that holds a lock for which the training thread waits."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import covered_length, intersection, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.host.frames import is_user_frame
from holotrace.schema import EventKind

_MOSTLY = 0.8
"""A function can be the holder of a lock only if it runs during at least this share of the time spent waiting."""


def lock_holder(evidence: RankEvidence, waits: pl.DataFrame) -> str | None:
    """Return the user's function that runs on another thread during most waits for the lock; None if there is none.

    If several functions qualify, because one calls another, return the one that runs for the shortest time.

    Args:
        evidence: what is known about the rank.
        waits: event_index, start_ns and end_ns of the waits for the lock.
    """
    columns = ["event_index", "name", "track_id", "start_ns", "duration_ns"]
    calls = evidence.rank_trace.events_of([EventKind.PYTHON_FUNCTION], columns).with_columns(
        (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")
    )
    waiting = calls.filter(pl.col("event_index").is_in(waits["event_index"].implode()))["track_id"].unique()
    others = calls.filter(~pl.col("track_id").is_in(waiting.implode()))
    own = others.filter(is_user_frame(evidence.rank_trace.texts(others["name"])))
    times = union_of(waits)
    least_ns = _MOSTLY * covered_length(*times)
    holders = [
        (covered_length(*union_of(of_name)), name)
        for (name,), of_name in own.group_by("name", maintain_order=True)
        if covered_length(*intersection(union_of(of_name), times)) >= least_ns
    ]
    return None if not holders else evidence.rank_trace.strings[int(str(min(holders)[1]))]
