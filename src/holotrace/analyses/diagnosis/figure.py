"""The figure of the diagnosis: what each finding costs per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from holotrace.analyses.diagnosis.answer import headline_text
from holotrace.analyses.diagnosis.compute import Diagnosis, shown_findings
from holotrace.analyses.diagnosis.question import QUESTION
from holotrace.drawing.colors import ADVICE, ADVICE_BOUND, ADVICE_ESTIMATE
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text, label_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import percent_text

_BASES = (
    ("what-if: predicted by a replay of the step", "what-if", ADVICE),
    ("bound: a fix may save less", "bound", ADVICE_BOUND),
    ("estimate: a fix may save less or more", "estimate", ADVICE_ESTIMATE),
)
_HEADING = Heading(QUESTION.question, "What each finding costs in a step, the costliest first")
_LONGEST = 120
"""The longest text of a finding above its bar, in characters; such a text fits on a wide screen."""


def plot_diagnosis(result: Diagnosis, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each finding with a known cost, the costliest first.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_diagnosis(holotrace.diagnosis(small_job()))
    >>> figure.data[0].name
    'what-if: predicted by a replay of the step'
    """
    rows = [row for row in shown_findings(result) if row["stake_ns"]]
    if not rows:
        return empty_figure(QUESTION.question, f"{headline_text(result)}; no finding has a known cost.", theme)
    size, unit = largest_unit([row["stake_ns"] for row in rows])
    parts = [_part(rows, size, *basis) for basis in _BASES]
    names = [row["finding"] for row in rows]
    has_steps = bool(result.headline["step_count"][0])
    return named_bars(
        names, parts, _HEADING, f"at stake{' per step' if has_steps else ''}, {unit}", theme, labels=_sentences
    )


def _sentences(findings: Sequence[str]) -> dict[str, str]:
    """Cut off the ends of long findings; their first words already tell them apart."""
    return {
        finding: label_text(finding if len(finding) <= _LONGEST else f"{finding[: _LONGEST - 1]}…")
        for finding in findings
    }


def _part(rows: list[dict[str, Any]], size: int, name: str, basis: str, color: str) -> Part:
    return Part(
        name=name,
        values=[row["stake_ns"] / size if row["basis"] == basis else 0 for row in rows],
        hovers=[_hover(row) for row in rows],
        marker={"color": color},
        in_legend=any(row["basis"] == basis for row in rows),
    )


def _hover(row: dict[str, Any]) -> str:
    return (
        f"{hover_text(row['finding'])}<br>"
        f"{exact_duration(row['stake_ns'])} per step, {percent_text(row['stake_fraction'])}<br>{hover_text(row['advice'])}"
    )
