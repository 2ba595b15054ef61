"""Operator kernels: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.operator_kernels.compute import OperatorKernels
from holotrace.questions.answers import largest
from holotrace.units import duration_text, percent_text


def answer(result: OperatorKernels) -> str:
    """Name the operator whose kernels take the most time."""
    operator = largest(result.per_sequence, "operator", "kernel_ns")
    return f"{percent_text(operator.share)} of the kernel time ({duration_text(operator.total)}) is in kernels that {operator.name} launches, more than for any other operator."
