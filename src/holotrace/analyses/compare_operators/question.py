"""Comparison of operators: the question, the terms in its tables, and the options of its command."""

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
        ("control", "the baseline"),
        ("test", "the trace that is compared with the baseline"),
        ("difference", "mean time per step in test, minus mean time per step in control"),
        ("phase", "data loading, forward, backward or optimizer, depending on the outermost call"),
    ),
    options=(
        Option(
            "by",
            "Compare device times or host times. By default, compare device times if both traces have device work, otherwise host times.",
            kind=Literal["device", "host"],
        ),
        COMPAT,
    ),
    most_rows=60,
)
