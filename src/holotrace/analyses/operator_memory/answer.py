"""Operator memory: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.operator_memory.compute import OperatorMemory
from holotrace.questions.answers import largest
from holotrace.units import percent_text, size_text


def answer(result: OperatorMemory) -> str:
    """Name the operator that allocates the most memory."""
    operator = largest(result.per_operator, "operator", "self_allocated_bytes")
    return f"{percent_text(operator.share)} of all allocated memory ({size_text(operator.total)}) is allocated by {operator.name}, more than by any other operator."
