"""Kernels: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.kernels.compute import Kernels
from holotrace.drawing.names import short_name
from holotrace.questions.answers import largest
from holotrace.units import duration_text, percent_text


def answer(result: Kernels) -> str:
    """Name the kernel that takes the most time."""
    kernel = largest(result.per_kernel, "name", "total_ns")
    said = f"{percent_text(kernel.share)} of the kernel time ({duration_text(kernel.total)}) goes into {short_name(kernel.name)}, more than into any other kernel"
    return f"{said}{_launched_by(result, kernel.name)}."


def _launched_by(result: Kernels, name: str) -> str:
    """Name the line of the user's code that launches the kernel; empty if the line was not recorded."""
    ranks = result.per_kernel.filter(pl.col("name") == name).sort("total_ns", descending=True)
    line = next(iter(ranks["source_line"].drop_nulls()), None)
    return f"; {line} launches it" if line else ""
