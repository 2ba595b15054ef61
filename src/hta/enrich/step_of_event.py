"""Which training step each event belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from hta.enrich.steps import asked_for_ns, steps, window_of, windows

if TYPE_CHECKING:
    from hta.store.trace import RankTrace


def step_of_event(rank_trace: RankTrace) -> pl.Series:
    """Return the step of every row of `events`; use with `rank_trace.derive`.

    Host events belong to the step in which they begin, device work to the step in which it was launched; device rows
    without a known launch count by their own start. A step reaches over all threads that announce it.

    Returns:
        `step`, int64, in the order of `rank_trace.table("events")`; null outside every step.
    """
    if rank_trace.derive(steps).is_empty():
        return pl.Series("step", [None] * rank_trace.table("events", ["start_ns"]).height, pl.Int64)
    start_ns = rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy()
    return window_of(windows(rank_trace), pl.Series(asked_for_ns(rank_trace, start_ns))).alias("step")
