"""Input that several rules need, and how to record it."""

from __future__ import annotations

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence


def needs_device(evidence: RankEvidence) -> str | None:
    """Say how to record device work if there is none."""
    return None if evidence.has_device_work else "no device work was recorded; record with ProfilerActivity.CUDA"
