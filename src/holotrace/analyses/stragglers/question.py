"""Stragglers: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import ANNOTATION, Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Stragglers",
    question="Which rank do the others wait for?",
    section="Distributed",
    fewest_ranks=2,
    definitions=(
        ("waits", "the rank's time in a collective until the last rank has arrived"),
        ("mean skew", "how much later than the first rank this rank arrives, averaged over the collectives"),
        ("came last", "collectives in which this rank alone came last"),
        ("others wait for it", "total waiting time of all ranks in the collectives where this rank alone came last"),
        (
            "late",
            "the rank waits at most half as long as the median rank, and causes most of the waiting in its collectives",
        ),
        ("last", "late, but perhaps only because the rank waited for another rank"),
        (
            "culprit, victim, cost",
            "as defined by wait-causes; the cost is blank if each rank communicates almost only within one group",
        ),
    ),
    options=(
        Option("steps", "Compare only the collectives of these steps.", metavar="0-7,9", read=numbers),
        ANNOTATION,
    ),
)
