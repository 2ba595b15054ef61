"""Stragglers: the question, the terms of its tables, and the options of its command."""

from __future__ import annotations

from holotrace.options import ANNOTATION, Option, numbers
from holotrace.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Stragglers",
    question="Which rank do the others wait for?",
    section="Distributed",
    definitions=(
        ("waits", "its time in a collective minus the shortest time of any rank in it, since all leave together"),
        (
            "mean skew",
            "the longest time of any rank in a collective minus its own, which is how much later it arrived",
        ),
        ("came last", "collectives in which it alone spent the shortest time"),
        ("others wait for it", "what all ranks waited in the collectives in which it came last"),
        ("late", "it waits at most half as long as the median rank, and most of the waiting around it is for it"),
        (
            "last",
            "the same, but its own waiting explains at least half of its skew: perhaps another rank is the cause",
        ),
    ),
    options=(
        Option("steps", "Compare only the collectives of these steps.", metavar="0-7,9", read=numbers),
        ANNOTATION,
    ),
)
