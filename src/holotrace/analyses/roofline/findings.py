"""Findings about the roofline: the share of time with known costs, contradictions, and missing data."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.enrich.device.floors import Peaks
from holotrace.units import counted, duration_text, percent_text

_MOST_REASONS = 3


def findings_of(
    per_operator: pl.DataFrame, steps: pl.DataFrame, totals: dict[str, Any], peaks: Peaks, *, on_device: bool
) -> tuple[str, ...]:
    """Return the findings of one rank; the first finding states the share of the time for which costs are known."""
    rank = f"rank {totals['rank']}"
    return tuple(
        f"{rank}: {sentence}"
        for sentence in (
            _coverage(per_operator, totals, on_device=on_device),
            _unknown_device(totals, peaks, on_device=on_device),
            *_contradictions(per_operator),
            _steps_above_the_peak(steps),
            _without_tensor_cores(totals),
            _earlier(totals),
        )
        if sentence
    )


def _coverage(per_operator: pl.DataFrame, totals: dict[str, Any], *, on_device: bool) -> str:
    work = "device time" if on_device else "time of the operators on the host"
    share = percent_text(totals["covered_fraction"])
    unknown = per_operator.filter(pl.col("bytes_moved").is_null() & pl.col("flops").is_null())
    missing = (
        unknown.group_by("operator", "reason")
        .agg(pl.col("busy_ns").sum())
        .sort("busy_ns", "operator", "reason", descending=[True, False, False])
        .head(_MOST_REASONS)
    )
    named = "; ".join(
        f"{operator or 'work without an operator'} ({duration_text(busy)}): {reason}"
        for operator, reason, busy in missing.iter_rows()
    )
    without = f"; unknown: {named}" if named else ""
    return f"costs are known for {share} of the {work}, not counting communication{without}"


def _unknown_device(totals: dict[str, Any], peaks: Peaks, *, on_device: bool) -> str:
    if not peaks.is_attained:
        return ""
    instead = "the lower bounds come from the best rates in this trace, so they show only which operators are slower than others"
    if not on_device:
        return f"the operators ran on the host, whose peak rates are unknown; {instead}"
    name = totals["device_name"]
    which = f"the device table does not contain {name!r}" if name else "the file does not name its device"
    return f"{which}; {instead}. Pass the name of a known device as device=, or add yours with add_device"


def _contradictions(per_operator: pl.DataFrame) -> list[str]:
    table = (
        per_operator.drop_nulls("contradiction")
        .group_by("contradiction")
        .agg(pl.len(), pl.col("busy_ns").sum(), pl.col("roofline_fraction").max())
        .sort("busy_ns", "contradiction", descending=[True, False])
    )
    return [
        f"{count:,} {'operator' if count == 1 else 'operators'} ({duration_text(busy)}) took less time than the lower bound"
        f"{'' if most is None else f' and reached up to {percent_text(most)} of the roofline'}: {text}"
        for text, count, busy, most in table.iter_rows()
    ]


def _steps_above_the_peak(steps: pl.DataFrame) -> str:
    above = steps.filter(pl.col("hfu_fraction") > 1).height
    return (
        f"{counted(above, 'step')} {'has' if above == 1 else 'have'} an HFU above 100 %: the peak rates belong to another device or another clock rate"
        if above
        else ""
    )


def _without_tensor_cores(totals: dict[str, Any]) -> str:
    without = totals["without_tensor_cores_ns"]
    if not without:
        return ""
    share = percent_text(without / max(1, totals["busy_ns"]))
    return f"matrix products that tensor cores could compute ran on ordinary cores for {duration_text(without)}, {share} of the time"


def _earlier(totals: dict[str, Any]) -> str:
    earlier = totals["earlier_ns"]
    return (
        f"{duration_text(earlier)} of work was launched before the recording, so its operators are unknown"
        if earlier
        else ""
    )
