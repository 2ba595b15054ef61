"""Find the training step of each event."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.steps.steps import asked_rows, rows_of_windows, steps, windows
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_OUTSIDE = -1


@derived
def step_of_event(rank_trace: RankTrace) -> pl.Series:
    """Return the step of every row of `events`.

    A host event belongs to the step in which it begins; device work belongs to the step in which it was launched.
    Device work without a known launch belongs to the step in which it starts or, if it was probably launched before
    the recording, to no step. If several threads record a step, the step begins with the earliest of their ranges and
    ends with the range that ends last.

    Returns:
        `step`, int64, in the order of `rank_trace.table("events")`; null outside all steps.
    """
    rows = pl.Series(_step_rows(rank_trace)).cast(pl.UInt32, strict=False)  # `_OUTSIDE` becomes null
    return _windows(rank_trace)["window"].gather(rows).alias("step")


def is_in_steps(rank_trace: RankTrace, numbers: Collection[int] | None = None) -> npt.NDArray[np.bool_]:
    """Return whether each row of `events` belongs to a step with one of these numbers; see `step_of_event`.

    By default, return whether it belongs to any step.
    """
    rows, is_chosen = step_rows(rank_trace, numbers)
    chosen: npt.NDArray[np.bool_] = np.append(is_chosen, [False])[
        rows
    ]  # `_OUTSIDE` is -1 and thus selects the last element
    return chosen


def step_rows(
    rank_trace: RankTrace, numbers: Collection[int] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the row of each event's step (-1 outside all steps) and, for each step, whether it is selected."""
    known = _windows(rank_trace)["window"]
    is_chosen = np.ones(len(known), np.bool_) if numbers is None else known.is_in(list(numbers)).to_numpy()
    return _step_rows(rank_trace), is_chosen


@derived
def _step_rows(rank_trace: RankTrace) -> npt.NDArray[np.int64]:
    """Return, for each event, the row of its step in `_windows`; -1 outside all steps."""
    known = _windows(rank_trace)
    start_ns = rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy()
    rows = rows_of_windows(known, start_ns)
    if len(known):
        asked, asked_ns = asked_rows(rank_trace)
        rows[asked] = rows_of_windows(known, asked_ns)
    return rows


def _windows(rank_trace: RankTrace) -> pl.DataFrame:
    announced = steps(rank_trace)
    return windows(rank_trace) if len(announced) else announced.rename({"step": "window"})
