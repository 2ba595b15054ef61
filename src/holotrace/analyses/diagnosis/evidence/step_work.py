"""Measure how long a rank works in each step, to find ranks with more work than other ranks."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_before, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.schema import KernelKind


def working_ns(evidence: RankEvidence) -> dict[int, int]:
    """Return, for each step, how long a device computes or copies; without device work, how long operators run."""
    within = _working(evidence)
    starts, ends = (evidence.steady[column].to_numpy() for column in ("start_ns", "end_ns"))
    lengths = covered_before(within, ends) - covered_before(within, starts)
    return dict(zip(evidence.steady["window"].to_list(), lengths.astype(np.int64).tolist(), strict=True))


def _working(evidence: RankEvidence) -> Intervals:
    if evidence.has_device_work:
        return union_of(evidence.work.filter(pl.col("kernel_kind") != KernelKind.COMMUNICATION))
    return union_of(evidence.activity.filter(pl.col("cause") == "operator"))
