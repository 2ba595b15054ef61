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
    whole_ns = _WHOLE * evidence.time_ns / evidence.step_count
    training = [name for name, time_ns in user_functions(evidence).items() if time_ns >= whole_ns]
    if not training:
        return None
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    name = known.ranges["name"].to_numpy()
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    is_part = is_python & (is_user_frame(texts) & ~texts.is_in(training)).fill_null(value=False).to_numpy()[name]
    is_part &= holding(evidence.step_windows, known.ranges["start_ns"].to_numpy()) >= 0
    outermost = furthest_above(known.parent, is_part, rows_of_events(known.ranges, pieces["event_index"]))
    called = evidence.rank_trace.texts(gathered(known.ranges["name"], np.asarray(outermost, np.int64)))
    in_called = pl.Series(outermost != NO_PARENT)
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    lines = pieces.with_columns(pl.when(in_called).then(called).otherwise("frame").alias("line"))
    sums = lines.group_by("line", maintain_order=True).agg(time)
    most = sums.row(int(sums["time_ns"].arg_max() or 0), named=True)
    line: str | None = most["line"]
    return line if most["time_ns"] >= _MOST * float(sums["time_ns"].sum()) else None
