"""Kernels in one sentence."""

from __future__ import annotations

from holotrace.analyses.kernels.compute import Kernels
from holotrace.drawing.names import short_name
from holotrace.questions.answers import largest
from holotrace.units import duration_text, percent_text


def answer(result: Kernels) -> str:
    """Name the kernel that takes the most time."""
    kernel = largest(result.per_kernel, "name", "total_ns")
    return f"{percent_text(kernel.share)} of the kernel time ({duration_text(kernel.total)}) is {short_name(kernel.name)}, the largest part."
