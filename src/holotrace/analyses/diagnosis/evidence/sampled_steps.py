"""Choose the steps that the rules examine: all steps of a short recording, or some steps of a long recording."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from holotrace.enrich.job.outliers import stands_out
from holotrace.enrich.steps.selections import in_steps
from holotrace.enrich.steps.steps import windows
from holotrace.store.trace import RankTrace

MOST_EVENTS = 500_000
MOST_STEPS = 8
"""In recordings of more than 500,000 events, the rules examine at most 8 steady steps, evenly spread."""


def sampled(rank_trace: RankTrace) -> tuple[RankTrace, str]:
    """Return the rank's trace with only the steps to examine, and a sentence about the choice ("" for all steps)."""
    announced = windows(rank_trace)
    if rank_trace.has_selections or len(announced) <= MOST_STEPS or _event_count(rank_trace) <= MOST_EVENTS:
        return rank_trace, ""
    lengths = announced.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length"), peers=0)
    steady = announced.filter(~stands_out(lengths, "length", ["peers"]))["window"][:-1]
    rows = np.unique(np.linspace(0, len(steady) - 1, MOST_STEPS).round().astype(np.int64))
    chosen = frozenset(steady.gather(rows).to_list())
    text = f"{len(chosen)} of {len(steady):,} steady steps were examined, evenly spread over the recording"
    return rank_trace.where(partial(in_steps, steps=chosen)), text


def _event_count(rank_trace: RankTrace) -> int:
    return sum(rank_trace.event_counts().values())
