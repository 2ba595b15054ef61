"""Distributed: the question, the terms of its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Distributed",
    question="How do the ranks share the work, and who waits?",
    section="Distributed",
    definitions=(
        ("step", "as the host announced it, extended to the device work that it launched"),
        (
            "only computing, hidden, exposed, neither",
            "parts of the step: only computation, communication with and without computation, and the rest",
        ),
        ("data transfer", "the shortest time that any rank spends in a collective, from the last arrival to the end"),
        ("waiting", "the rest of the time in collectives, until all other ranks have arrived"),
        ("not known", "time in collectives that no other rank recorded, and in sends between two ranks"),
        ("time in collectives", "time in which at least one collective runs; the mean is per call"),
    ),
    options=(COMPAT,),
)
