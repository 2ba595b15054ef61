"""Find out whether ranks wait because a rank has more work, or because it began the same work later."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence

_DEVICE_WORK, _HOST_WORK = ("computation", "copy"), ("operator",)
"""The causes whose time `RankExamination.working_ns` measures.

The first tuple applies to jobs with device work, the second to all other jobs."""

_EXCESS = {"step": pl.Int64, "cause_rank": pl.Int32, "excess_ns": pl.Int64}


def with_own_share(evidence: JobEvidence, per_cause: pl.DataFrame) -> pl.DataFrame:
    """Add `own_ns`: the part of `cost_ns` that the named cause is really to blame for.

    While other ranks wait for the late rank in a collective, their devices may already run the next work. The late rank
    runs this work after the collective, so it seems to compute more than the others before the next collective.
    Therefore, work is blamed only for the time by which the rank works longer than the median of the other ranks in
    that step. If this makes `own_ns` 0 for all causes of a rank, `own_ns` is set to `cost_ns` for all of them.
    """
    same = ["step", "cause_rank", "waiting_rank"]
    is_work = pl.col("cause").is_in(_DEVICE_WORK if _has_device_work(evidence) else _HOST_WORK)
    work_ns = pl.col("cost_ns").filter(is_work).sum().over(same)
    share = (pl.col("excess_ns") / work_ns).clip(0, 1).fill_null(1.0)
    own = pl.when(is_work).then(pl.col("cost_ns") * share).otherwise(pl.col("cost_ns"))
    known = per_cause.join(_excess(evidence), on=["step", "cause_rank"], how="left", maintain_order="left")
    blamed = known.with_columns(own.alias("own_ns"))
    left = pl.col("own_ns").sum().over("cause_rank")
    return blamed.with_columns(
        pl.when(left > 0).then("own_ns").otherwise(pl.col("cost_ns").cast(pl.Float64)).alias("own_ns")
    ).drop("excess_ns")


def _has_device_work(evidence: JobEvidence) -> bool:
    return any(rank.numbers.busy_ns is not None for rank in evidence.ranks.values())


def _excess(evidence: JobEvidence) -> pl.DataFrame:
    """Return, for each step and rank, how much longer the rank works than the median of the others; never negative."""
    return pl.DataFrame(list(_excess_rows(evidence)), _EXCESS, orient="row")


def _excess_rows(evidence: JobEvidence) -> Iterator[tuple[int, int, int]]:
    steps = {step for of_rank in evidence.ranks.values() for step in of_rank.working_ns}
    for step in sorted(steps):
        working = {rank: of.working_ns[step] for rank, of in evidence.ranks.items() if step in of.working_ns}
        for rank, own_ns in working.items():
            others = [ns for other, ns in working.items() if other != rank]
            if others:
                yield step, rank, max(0, own_ns - round(median(others)))
