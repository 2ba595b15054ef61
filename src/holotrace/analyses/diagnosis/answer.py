"""Diagnosis: the answer in one sentence."""

from __future__ import annotations

from typing import Any

from holotrace.analyses.diagnosis.compute import Diagnosis, shown_findings
from holotrace.analyses.diagnosis.ranking import ABOUT_RECORDING
from holotrace.drawing.names import short_name
from holotrace.units import duration_text, percent_text, small_percent_text

_LIMITS = {"what-if": "", "bound": "up to ", "estimate": "about "}
"""The words in front of a cost; they depend on the basis of the cost."""

_MAIN = 0.05
"""If no rule applies, the answer names the kernel or operator that takes the most time, provided that it takes at least
this share of the step."""


def answer(result: Diagnosis) -> str:
    """Say how long a step takes, how busy the devices are, and what costs most."""
    return f"{headline_text(result)}; {_first(result) or _without_findings(result)}."


def headline_text(result: Diagnosis) -> str:
    """Say how long a step takes, and how much of this time the devices are busy."""
    row = result.headline.row(0, named=True)
    if not row["step_ns"]:
        return "The recording contains no work"
    what = "A step takes" if row["step_count"] else "The recording takes"
    return f"{what} {duration_text(row['step_ns'])}{_of_recording(result)}, {_device_clause(row)}"


def _of_recording(result: Diagnosis) -> str:
    """Say how much of the time is profiler overhead, if a rule measured it."""
    rows = [row for row in shown_findings(result) if row["rule"] in ABOUT_RECORDING and row["stake_ns"]]
    if not rows:
        return ""
    about = _LIMITS["estimate" if any(row["basis"] == "estimate" for row in rows) else rows[0]["basis"]]
    costs_ns = sum(row["stake_ns"] for row in rows)
    share = costs_ns / result.headline["step_ns"][0]
    return f" ({about}{duration_text(costs_ns)}, or {percent_text(share)}, is profiler overhead)"


def finding_texts(result: Diagnosis) -> list[tuple[dict[str, Any], str]]:
    """Return the findings that are not part of another finding, each with a sentence about its cost and cause."""
    return [(row, _with_cost(row, _whole(result, row["rule"]))) for row in shown_findings(result)]


def _whole(result: Diagnosis, rule: str) -> str:
    """Name the time that a cost is divided by: each step, the recorded step, the mean recorded step or the recording.

    First calls happen only once, so their cost is a share of the mean recorded step, not of each step.
    """
    step_count = result.headline["step_count"][0]
    if not step_count:
        return "the recording"
    if rule != "first_calls":
        return "each step"
    return "the recorded step" if step_count == 1 else "the mean recorded step"


def _with_cost(row: dict[str, Any], whole: str) -> str:
    """Return a finding as a list item that begins with the cost."""
    share = "" if row["stake_ns"] is None else f"{_cost(row)} of {whole} ({percent_text(row['stake_fraction'])}): "
    return f"{share}{row['finding']}"


def _as_clause(row: dict[str, Any], whole: str) -> str:
    """Return a finding as part of a sentence."""
    loss = "" if row["stake_ns"] is None else f"{whole} loses {_cost(row)} ({percent_text(row['stake_fraction'])}): "
    return f"{loss}{row['finding']}"


def _cost(row: dict[str, Any]) -> str:
    error = f" ± {duration_text(row['stake_error_ns'])}" if row["stake_error_ns"] else ""
    return f"{_LIMITS[row['basis']]}{duration_text(row['stake_ns'])}{error}"


def _device_clause(row: dict[str, Any]) -> str:
    if row["busy_fraction"] is not None:
        subject = "the GPU is" if row["rank_count"] == 1 else "the GPUs are"
        unknown = (
            f"; {percent_text(row['unknown_fraction'])} is unknown, because the GPU may run work that was not recorded"
        )
        busy = f"and {subject} busy {small_percent_text(row['busy_fraction'])} of it{unknown if row['unknown_fraction'] else ''}"
        return f"{busy}{_cut_off(row['cut_off_count'])}"
    if row["unread_count"]:
        return "and its device work could not be read from the file"
    if not row["cut_off_count"]:
        return "and no GPU work was recorded"
    count = row["cut_off_count"]
    files = "1 file ends" if count == 1 else f"{count:,} files end"
    return f"and {files} early, so it is unknown whether the job used a GPU"


def _cut_off(count: int) -> str:
    """If files end early, say that work may be missing from the busy time."""
    if not count:
        return ""
    return (
        f" as far as recorded ({'1 file ends' if count == 1 else f'{count:,} files end'} early, so work may be missing)"
    )


def _first(result: Diagnosis) -> str | None:
    first = next((row for row in shown_findings(result) if row["rule"] not in ABOUT_RECORDING), None)
    return None if first is None else _as_clause(first, _whole(result, first["rule"]))


def _without_findings(result: Diagnosis) -> str:
    """Say that no rule applies, and what takes most of the time."""
    row = result.headline.row(0, named=True)
    is_recording = any(row["rule"] in ABOUT_RECORDING for row in shown_findings(result))
    text = (
        "no rule finds a cause in the job itself" if is_recording else "none of the rules that could be checked applies"
    )
    if row["main_work"] is None or row["main_fraction"] < _MAIN:
        return text
    is_on_host = row["busy_fraction"] is None
    name, kind = (row["main_work"], "operator") if is_on_host else (short_name(row["main_work"]), "kernel")
    line = f", mostly in {row['main_source_line']}" if row["main_source_line"] else ""
    return f"{text}; {name} takes {percent_text(row['main_fraction'])} of the time, more than any other {kind}{line}"
