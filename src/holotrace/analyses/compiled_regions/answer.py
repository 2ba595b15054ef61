"""Compiled regions: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.compiled_regions.compute import CompiledRegions
from holotrace.questions.answers import total
from holotrace.units import counted, duration_text


def answer(result: CompiledRegions) -> str:
    """Say how many regions ran, and how long compiling took."""
    regions = counted(result.per_region["region"].n_unique(), "compiled region")
    compiling = total(result.per_rank, "compilation_ns")
    cost = f"compiling took {duration_text(compiling)}" if compiling else "nothing was compiled during the recording"
    return f"{regions} ran; {cost}."
