"""Diff: the question, the terms that its tables use, and the options of its command."""

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
        ("control", "the trace to compare with"),
        ("test", "the trace in question"),
        ("difference", "the summed time of all events of a kind and name in test, minus the same sum in control"),
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
