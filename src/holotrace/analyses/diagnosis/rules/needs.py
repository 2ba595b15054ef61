"""Checks whether the data that rules need was recorded; if not, says why, and how to record it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.job_evidence import JobEvidence

ONLY_THE_HOST = "no GPU work was recorded, so only the rules about hosts and about several ranks apply"
"""The only caveat for a rank whose file shows no GPU."""

_UNREAD = "the device work in this file could not be read; record with PyTorch's profiler instead"

_ONE_RANK = "one rank alone does not show who waits for whom; open all ranks of the job together"


def needs_device(evidence: RankEvidence) -> str | None:
    """Return None if device work was recorded; otherwise say why it is missing, and how to record it.

    If the file shows no GPU, return `ONLY_THE_HOST`.
    """
    if evidence.has_device_work:
        return None
    if evidence.is_unread:
        return _UNREAD
    return "no device work was recorded; record with ProfilerActivity.CUDA" if evidence.has_gpu else ONLY_THE_HOST


def needs_stacks(evidence: RankEvidence) -> str | None:
    """Return None if Python functions were recorded; otherwise say how to record them."""
    if (evidence.activity["cause"] == "python").any():
        return None
    return "no Python functions were recorded; record with with_stack=True"


def needs_results(*names: str) -> Callable[[JobEvidence], str | None]:
    """Return a `needs` function for rules; it returns what is missing if one of these analyses has no result."""
    return partial(_missing_results, names=names)


def _missing_results(evidence: JobEvidence, names: tuple[str, ...]) -> str | None:
    if len(evidence.ranks) == 1:
        return _ONE_RANK
    return None if all(name in evidence.results for name in names) else "no communication was recorded"
