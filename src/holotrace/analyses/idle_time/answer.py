"""Idle time: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.idle_time.compute import UNKNOWN, IdleTime
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text

_CAUSES = {
    "host_wait": "waiting for the host",
    "kernel_wait": "in launch delays",
    "other": "for another reason",
}


def answer(result: IdleTime) -> str:
    """Say how long the devices are idle, and which cause explains the largest part of this time."""
    unknown_ns = total(result.per_device.filter(pl.col("category") == UNKNOWN), "idle_ns")
    known = result.per_device.filter(pl.col("category") != UNKNOWN)
    cause = largest(known, "category", "idle_ns")
    unknown = (
        f"; for another {duration_text(unknown_ns)}, it is unknown whether the devices were idle" if unknown_ns else ""
    )
    if not cause.total:
        apart = f", but for {duration_text(unknown_ns)} it is unknown whether they were idle" if unknown_ns else ""
        return f"The devices are never idle between kernels and copies{apart}."
    idle = duration_text(total(known, "idle_ns"))
    said = f"The devices are idle for {idle} between kernels and copies, {percent_text(cause.share)} of it {_CAUSES[cause.name]}"
    return f"{said}{unknown}."
