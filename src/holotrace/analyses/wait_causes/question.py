"""Causes of waiting: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import ANNOTATION, Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Causes of waiting",
    question="Why do ranks wait for each other, and which rank causes it?",
    section="Distributed",
    definitions=(
        ("cost", "time that ranks wait because of a cause; the costs of all causes add up to all waiting"),
        (
            "cause",
            "what a late rank did longer than the rank that waits for it; if it waited itself, the cause of that wait",
        ),
        ("may be off by", "how far a cost may be off, because several causes explain the same time or clocks differ"),
        ("culprit", "a rank that causes more waiting than it passes on, and much of all waiting"),
        ("victim", "a rank that waits because of culprits, or is waited for because it waited itself"),
        ("passes on", "waiting of other ranks that the rank's own waits cause"),
    ),
    options=(
        Option("steps", "Divide only the waits in these steps.", metavar="0-7,9", read=numbers),
        ANNOTATION,
    ),
    most_rows=20,
)
