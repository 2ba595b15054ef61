"""The headline numbers of a job in words, for the terminal, the overview and the report."""

from __future__ import annotations

from typing import Any, NamedTuple

from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.units import duration_text, percent_text, size_text, small_percent_text

_NEARLY_ALL = 0.995
"""MFU is shown with a remark if FLOPs are known for less than this share of the compute time."""


class Fact(NamedTuple):
    """A number of the headline: its name, its value with unit, and a remark, which may be empty."""

    name: str
    value: str
    remark: str = ""


def headline_facts(result: Diagnosis) -> tuple[Fact, ...]:
    """Return the facts in the headline; facts that are unknown are left out."""
    row = result.headline.row(0, named=True)
    if not row["step_ns"]:
        return ()
    facts = (_step(row), _busy(row), _exposed(row), _waiting(row), _mfu(row), _memory(row))
    return tuple(fact for fact in facts if fact is not None)


def headline_line(result: Diagnosis) -> str:
    """Return the facts on one line."""
    return " · ".join(
        f"{fact.name} {fact.value}{f' ({fact.remark})' if fact.remark else ''}" for fact in headline_facts(result)
    )


def _step(row: dict[str, Any]) -> Fact:
    count = row["step_count"]
    if not count:
        return Fact("recording", duration_text(row["step_ns"]), "no steps recorded")
    steps = "1 steady step" if count == 1 else f"mean of {count:,} steady steps"
    spread = f" ± {duration_text(row['step_std_ns'])}" if count > 1 else ""
    return Fact("step", f"{duration_text(row['step_ns'])}{spread}", steps)


def _busy(row: dict[str, Any]) -> Fact | None:
    if row["busy_fraction"] is None:
        return None
    unknown = f"and {percent_text(row['unknown_fraction'])} unknown" if row["unknown_fraction"] else ""
    partial = "partial: a file ends early" if row["cut_off_count"] else ""
    return Fact("GPU busy", _share_of_step(row, "busy_fraction"), "; ".join(filter(None, [unknown, partial])))


def _exposed(row: dict[str, Any]) -> Fact | None:
    if row["rank_count"] == 1 and not row["exposed_fraction"]:
        return None
    return Fact("exposed communication", _share_of_step(row, "exposed_fraction"))


def _waiting(row: dict[str, Any]) -> Fact | None:
    if row["waiting_fraction"] is None:
        return None
    culprit = row["waited_for_rank"]
    for_whom = "" if culprit is None else f"most for rank {culprit}"
    return Fact("waiting for ranks", _share_of_step(row, "waiting_fraction"), for_whom)


def _mfu(row: dict[str, Any]) -> Fact | None:
    if row["mfu_fraction"] is None:
        return None
    known = row["costed_fraction"]
    remark = "" if known is None or known >= _NEARLY_ALL else f"covers {percent_text(known)} of the compute time"
    return Fact("MFU", small_percent_text(row["mfu_fraction"]), remark)


def _memory(row: dict[str, Any]) -> Fact | None:
    peak, capacity = row["memory_peak_bytes"], row["memory_capacity_bytes"]
    if peak is None:
        return None
    if not capacity:
        return Fact("memory peak", size_text(peak))
    return Fact("memory peak", size_text(peak), f"{percent_text(peak / capacity)} of {size_text(capacity)}")


def _share_of_step(row: dict[str, Any], share: str) -> str:
    return f"{small_percent_text(row[share])} of the {'step' if row['step_count'] else 'recording'}"
