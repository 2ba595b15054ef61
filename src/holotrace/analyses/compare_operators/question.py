"""Comparison of operators: the question, the terms that its tables use, and the options of its command."""

from __future__ import annotations

from typing import Literal

from holotrace.questions.options import COMPAT, Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Comparison of operators",
    question="Where do control and test differ?",
    section="Files",
    definitions=(
        ("control", "the trace to compare with"),
        ("test", "the trace in question"),
        ("difference", "mean time per step in test, minus that in control"),
        ("phase", "data loading, forward, backward or optimizer, by the outermost call"),
    ),
    options=(
        Option(
            "by",
            "Compare time on devices or on the host; by default on devices, if both traces have device work.",
            kind=Literal["device", "host"],
        ),
        COMPAT,
    ),
    most_rows=60,
)
