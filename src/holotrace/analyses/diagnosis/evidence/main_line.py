"""Which function of the user's takes most of the time of some host activity."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import holding
from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.evidence.user_functions import user_functions
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.frames import is_user_frame
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.schema import EventKind

_WHOLE = 0.95
"""A function that takes this share of the steps is the training itself; the functions that it calls say more."""
_MOST = 0.5


def main_line(evidence: RankEvidence, pieces: pl.DataFrame) -> str | None:
    """Return the function that training calls and that takes at least half of the time of these rows of `activity`.

    None if no function does, or if Python functions were not recorded.
    """
    training = _training_functions(evidence)
    if not training:
        return None
    called = pl.coalesce(_called_by(evidence, training, pieces["event_index"]), "frame").alias("line")
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = pieces.with_columns(called).group_by("line", maintain_order=True).agg(time)
    most = sums.row(int(sums["time_ns"].arg_max() or 0), named=True)
    line: str | None = most["line"]
    return line if most["time_ns"] >= _MOST * float(sums["time_ns"].sum()) else None


def _training_functions(evidence: RankEvidence) -> list[str]:
    """Return the user's functions that take nearly all of a step."""
    whole_ns = _WHOLE * evidence.time_ns / evidence.step_count
    return [name for name, time_ns in user_functions(evidence).items() if time_ns >= whole_ns]


def _called_by(evidence: RankEvidence, training: list[str], events: pl.Series) -> pl.Series:
    """Return the user's function that training calls around each event; null if the event happens directly in training."""
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    is_called = (is_user_frame(texts) & ~texts.is_in(training)).fill_null(value=False).to_numpy()
    is_part = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy() & is_called[
        known.ranges["name"].to_numpy()
    ]
    is_part &= holding(evidence.step_windows, known.ranges["start_ns"].to_numpy()) >= 0
    outermost = furthest_above(known.parent, is_part, rows_of_events(known.ranges, events))
    names = evidence.rank_trace.texts(gathered(known.ranges["name"], np.asarray(outermost, np.int64)))
    return names.set(pl.Series(outermost == NO_PARENT), None)
