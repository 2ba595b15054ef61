"""Operators: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.operators.compute import Operators
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text


def answer(result: Operators) -> str:
    """Name the operator with the most device self time or, if no device work was recorded, with the most host self time."""
    side = "device" if total(result.per_operator, "device_self_ns") else "host"
    operator = largest(result.per_operator, "operator", f"{side}_self_ns")
    return f"{percent_text(operator.share)} of the {side} self time ({duration_text(operator.total)}) goes into {operator.name}, more than into any other operator."
