"""Causes of waiting: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import ANNOTATION, Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Causes of waiting",
    question="Why do ranks wait for each other, and which rank is the cause?",
    section="Distributed",
    definitions=(
        ("cost", "time that ranks wait because of a cause; the costs of all causes add up to the total waiting time"),
        (
            "cause",
            "activity that took longer on the late rank than on the waiting rank, or the cause of the late rank's own wait",
        ),
        ("may be off by", "possible error of a cost: several causes may explain the same time, and clocks may differ"),
        (
            "culprit",
            "a rank whose own delays (not those that it passes on) cause a large part of all waiting",
        ),
        ("victim", "a rank that waits mostly because of culprits, or that passes on more waiting than it causes"),
        ("passes on", "time that other ranks wait because this rank waited itself"),
    ),
    options=(
        Option("steps", "Analyse only the waits in these steps.", metavar="0-7,9", read=numbers),
        ANNOTATION,
    ),
    most_rows=20,
)
