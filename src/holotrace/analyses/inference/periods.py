"""Find the steady steps, and the reasons why other steps are not steady."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job.outliers import stands_out
from holotrace.units import duration_text

FEWEST_STEPS = 8
"""If a rank has fewer steps than this, no step is marked as `start`, because the usual step is unknown."""

_MOST_LONG_STEPS = 4
_FULL = 0.8
"""A batch is full if its number of decoding requests is at least this share of the median number in decoding steps."""

_ENOUGH_WORK = 0.8
"""The last step is cut off if it ran fewer kernels than this share of the median of similar steps."""

STEADY, START, CUT_OFF = "steady", "start", "cut off"
_ALIKE = ("kind", "request_count", "is_draft")


def periods(steps: pl.DataFrame) -> pl.DataFrame:
    """Return `period` (start, steady, or cut off) and `period_reason` (null if steady) of the steps of one rank, sorted by start.

    cut off  all steps after the last step with device work, and this last step itself if it ran fewer kernels than 80 %
             of the median of similar steps
    start    up to 4 steps at the beginning that are far longer than similar steps; if the number of decoding requests
             grows at first, also all steps before this number reaches 80 % of its median
    """
    reasons: list[str | None] = [None] * steps.height
    names = [STEADY] * steps.height
    for row, reason in {**_start(steps), **_cut_off(steps)}.items():
        reasons[row] = reason
        names[row] = CUT_OFF if reason.startswith("its device work") else START
    return pl.DataFrame({"period": names, "period_reason": reasons}, {"period": pl.String, "period_reason": pl.String})


def _cut_off(steps: pl.DataFrame) -> dict[int, str]:
    """Return {row: reason} for the last steps, if their device work is missing or incomplete."""
    counts = steps["kernel_count"].to_list()
    if not any(counts):
        return {}
    last = max(row for row, count in enumerate(counts) if count)
    missing = dict.fromkeys(range(last + 1, len(counts)), "its device work was not recorded")
    usual = steps.with_columns(
        pl.col("kernel_count").median().over(_ALIKE).alias("usual"), pl.len().over(_ALIKE).alias("n")
    )
    if usual["n"][last] > 1 and counts[last] < _ENOUGH_WORK * usual["usual"][last]:
        missing[last] = (
            f"its device work was recorded only in part: {counts[last]:,} of about {usual['usual'][last]:,.0f} kernels"
        )
    return missing


def _start(steps: pl.DataFrame) -> dict[int, str]:
    if steps.height < FEWEST_STEPS:
        return {}
    return {**_growing(steps), **_long(steps)}


def _long(steps: pl.DataFrame) -> dict[int, str]:
    """Return the steps at the beginning that are far longer than similar steps."""
    is_long = stands_out(steps, "step_ns", _ALIKE).to_list()
    usual = steps.select(pl.col("step_ns").median().over(_ALIKE))["step_ns"]
    found = {}
    for row in range(_MOST_LONG_STEPS):
        if not is_long[row]:
            break
        found[row] = (
            f"{duration_text(steps['step_ns'][row])}, but the median of similar steps is {duration_text(usual[row])}"
        )
    return found


def _growing(steps: pl.DataFrame) -> dict[int, str]:
    """Return the steps before the batch of decoding requests is full."""
    decoding = steps["decode_request_count"].fill_null(0)
    usual = decoding.filter(decoding > 0).median()
    if not isinstance(usual, (int, float)):
        return {}
    first = next(row for row, count in enumerate(decoding) if count >= _FULL * usual)
    if not (decoding[:first] > 0).any():
        return {}
    return {
        row: f"the number of decoding requests is {decoding[row]:,}, but the median of decoding steps is {usual:,.0f}"
        for row in range(first)
    }
