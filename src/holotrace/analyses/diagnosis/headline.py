"""The numbers that summarize a job, most of them as shares of the mean steady step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rank_numbers import MemoryPeak, RankNumbers

HEADLINE = pl.Schema(
    {
        "rank_count": pl.Int64(),
        "step_count": pl.Int64(),
        "step_ns": pl.Int64(),
        "step_std_ns": pl.Int64(),
        "busy_fraction": pl.Float64(),
        "unknown_fraction": pl.Float64(),
        "exposed_fraction": pl.Float64(),
        "waiting_fraction": pl.Float64(),
        "waited_for_rank": pl.Int32(),
        "mfu_fraction": pl.Float64(),
        "costed_fraction": pl.Float64(),
        "memory_peak_bytes": pl.Int64(),
        "memory_capacity_bytes": pl.Int64(),
        "device_name": pl.String(),
        "main_work": pl.String(),
        "main_fraction": pl.Float64(),
        "main_source_line": pl.String(),
        "cut_off_count": pl.Int64(),
        "unread_count": pl.Int64(),
    }
)
"""Columns of `Diagnosis.headline`."""


def headline(evidence: JobEvidence) -> dict[str, Any]:
    """Return the value of each column in `HEADLINE`, by name."""
    numbers = [of_rank.numbers for of_rank in evidence.ranks.values()]
    step_ns = evidence.step_ns
    busy = [of_rank.busy_ns for of_rank in numbers if of_rank.busy_ns is not None]
    waiting, waited_for = _waiting(evidence)
    devices = {of_rank.device_name for of_rank in numbers}
    return {
        "rank_count": len(numbers),
        "step_count": min(of_rank.step_count if of_rank.has_steps else 0 for of_rank in numbers),
        "step_ns": round(step_ns),
        "step_std_ns": round(fmean(of_rank.step_std_ns for of_rank in numbers)),
        "busy_fraction": _share(busy, step_ns),
        "unknown_fraction": _share([of_rank.unknown_ns for of_rank in numbers], step_ns),
        "exposed_fraction": _share([of_rank.exposed_ns for of_rank in numbers], step_ns),
        "waiting_fraction": waiting,
        "waited_for_rank": waited_for,
        "mfu_fraction": _mean(of_rank.mfu_fraction for of_rank in numbers),
        "costed_fraction": _mean(of_rank.costed_fraction for of_rank in numbers),
        **_memory(numbers),
        "device_name": devices.pop() if len(devices) == 1 else None,
        **_main_work(numbers, step_ns),
        "cut_off_count": sum(of_rank.is_cut_off for of_rank in numbers),
        "unread_count": sum(of_rank.is_unread for of_rank in numbers),
    }


def _share(times_ns: Iterable[float], step_ns: float) -> float | None:
    known = list(times_ns)
    return fmean(known) / step_ns if known and step_ns else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _memory(numbers: Iterable[RankNumbers]) -> dict[str, int | None]:
    """Return the memory use of the fullest device or, if no capacity is known, of the device with the highest peak."""
    peaks = [of_rank.memory for of_rank in numbers if of_rank.memory is not None]
    fullest = max(peaks, default=None, key=_fullness)
    return {
        "memory_peak_bytes": fullest.peak_bytes if fullest else None,
        "memory_capacity_bytes": fullest.capacity_bytes if fullest else None,
    }


def _main_work(numbers: Sequence[RankNumbers], step_ns: float) -> dict[str, str | float | None]:
    """Return the kernel or operator that takes the most time on most ranks, and its mean share of a step."""
    known = [of_rank.main_work for of_rank in numbers if of_rank.main_work is not None]
    if not known or not step_ns:
        return {"main_work": None, "main_fraction": None, "main_source_line": None}
    name, _ = Counter(work.name for work in known).most_common(1)[0]
    mean_ns = fmean(work.time_ns for work in known if work.name == name)
    lines = Counter(work.source_line for work in known if work.name == name)
    return {
        "main_work": name,
        "main_fraction": min(1.0, mean_ns / step_ns),
        "main_source_line": lines.most_common(1)[0][0],
    }


def _fullness(memory: MemoryPeak) -> tuple[float, int]:
    return memory.peak_bytes / memory.capacity_bytes if memory.capacity_bytes else 0, memory.peak_bytes


def _waiting(evidence: JobEvidence) -> tuple[float | None, int | None]:
    """Return the share of the mean step in which ranks wait for each other, and the rank that causes most of the waiting."""
    causes = evidence.results.get("wait_causes")
    if len(evidence.ranks) == 1 or causes is None or causes.per_rank.is_empty() or not evidence.step_ns:
        return None, None
    if "collectives" in evidence.results and _is_unmatched(evidence.results["collectives"].per_call):
        return None, None
    in_steps = causes.per_step.drop_nulls("step")
    waited = {rank: int(ns) for rank, ns in in_steps.group_by("rank").agg(pl.col("wait_ns").sum()).iter_rows()}
    once = evidence.waits_counted_once
    means = [
        waited.get(rank, 0) * once.get(rank, 1.0) / count for rank, count in _step_counts(evidence, in_steps).items()
    ]
    culprit = causes.per_rank.filter(pl.col("cost_ns") > 0).sort("cost_ns", "rank", descending=[True, False])
    return min(1.0, fmean(means) / evidence.step_ns), culprit["rank"][0] if len(culprit) else None


def _is_unmatched(calls: pl.DataFrame) -> bool:
    """Return whether the ranks communicate, but none of their calls could be matched across ranks."""
    return len(calls) > 0 and calls["wait_ns"].null_count() == len(calls)


def _step_counts(evidence: JobEvidence, in_steps: pl.DataFrame) -> dict[int, int]:
    count = max(1, in_steps["step"].n_unique())
    return dict.fromkeys(evidence.ranks, count)
