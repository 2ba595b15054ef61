"""Trust: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.trust.compute import Trust
from holotrace.enrich.trust.across_ranks import JOB_RULES
from holotrace.questions.answers import total
from holotrace.units import percent_text

_OF_JOB = frozenset(rule.__name__ for rule in JOB_RULES)
"""Names of the rules about the whole job.

If no particular time is in doubt and the answer quotes a doubt of such a rule, the answer names no rank.
"""


def answer(result: Trust) -> str:
    """Say how much of the recorded time can be trusted, and name the largest doubt."""
    recorded_ns, doubtful_ns = total(result.per_rank, "recorded_ns"), total(result.per_rank, "doubtful_ns")
    share = _floor_text(1 - doubtful_ns / recorded_ns) if recorded_ns else "None"
    said = f"{share} of the recorded time can be trusted"
    if result.doubts.is_empty():
        return f"{said}: the recording breaks no rule."
    first = result.doubts.sort("doubtful_ns", descending=True, nulls_last=True, maintain_order=True).row(0, named=True)
    timeless = result.doubts.filter(result.doubts["doubtful_ns"].is_null())
    is_timeless = bool(len(timeless)) and not doubtful_ns
    worst = timeless.row(0, named=True) if is_timeless else first
    others = len(result.doubts) - 1
    more = f" ({others:,} more doubt{'' if others == 1 else 's'})" if others else ""
    if is_timeless:
        where = "" if worst["rule"] in _OF_JOB else f"Rank {worst['rank']}: "
        return f"No particular time is in doubt, but the recording as a whole is. {where}{worst['sentence']}{more}."
    return f"{said}; rank {worst['rank']}: {worst['sentence']}{more}."


def _floor_text(share: float) -> str:
    """Format a share; only a share of exactly 1 becomes 100 %."""
    return percent_text(share) if share == 1 else percent_text(min(share, 0.999))
