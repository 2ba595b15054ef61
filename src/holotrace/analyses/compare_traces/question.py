"""Diff: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from typing import Literal

from holotrace.questions.options import Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Diff",
    question="What changed from control to test?",
    section="Files",
    definitions=(
        ("control", "the baseline"),
        ("test", "the trace that is compared with the baseline"),
        ("difference", "total time of all events of a kind and name in test, minus the same total in control"),
    ),
    options=(
        Option("control_steps", "Compare only these steps of control.", metavar="3-5", read=numbers),
        Option("test_steps", "Compare only these steps of test.", metavar="3-5", read=numbers),
        Option(
            "device",
            "Compare device work (gpu), everything else (cpu), or both (all).",
            kind=Literal["all", "cpu", "gpu"],
            default="all",
        ),
    ),
    alias="diff",
)
