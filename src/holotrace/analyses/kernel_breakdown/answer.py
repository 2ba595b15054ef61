"""Kernel breakdown: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown
from holotrace.drawing.names import short_name
from holotrace.questions.answers import largest
from holotrace.units import percent_text


def answer(result: KernelBreakdown) -> str:
    """Name the kind and the kernel that take the most time."""
    kind, kernel = (largest(result.per_kernel, name, "total_ns") for name in ("kernel_kind", "name"))
    return (
        f"{percent_text(kind.share)} of the kernel time is {kind.name}; the longest kernel is {short_name(kernel.name)} "
        f"({percent_text(kernel.share)})."
    )
