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
        ("cost", "time that ranks wait because of a cause; the costs of all causes add up to all waiting"),
        (
            "cause",
            "activity that took longer on the late rank than on the waiting rank; if the late rank waited itself, the cause of its wait",
        ),
        ("may be off by", "how much a cost may be off, because several causes explain the same time or clocks differ"),
        ("culprit", "a rank that causes more waiting than it passes on, and much of all waiting"),
        ("victim", "a rank that waits because of culprits, or for which other ranks wait because it waited itself"),
        ("passes on", "waiting of other ranks because this rank waited itself"),
    ),
    options=(
        Option("steps", "Find causes only for the waits in these steps.", metavar="0-7,9", read=numbers),
        ANNOTATION,
    ),
    most_rows=20,
)
