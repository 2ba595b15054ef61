"""Modules: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.modules.compute import Modules
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text


def answer(result: Modules) -> str:
    """Name the module with the most device self time or, if no device work was recorded, with the most host self time."""
    side = "device" if total(result.per_module, "device_self_ns") else "host"
    module = largest(result.per_module, "path", f"{side}_self_ns")
    return f"{percent_text(module.share)} of the {side} self time ({duration_text(module.total)}) goes into {module.name}, more than into any other module."
