"""Distributed: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Distributed",
    question="How do the ranks share the work, and who waits?",
    section="Distributed",
    definitions=(
        ("step", "the step as marked on the host, extended to the end of the device work that the step launched"),
        (
            "only computing, hidden, exposed, neither",
            "parts of the step: computation only, communication during computation, communication only, and all other time",
        ),
        (
            "data transfer",
            "the rank's time in collectives, sends and receives after the last rank arrived",
        ),
        ("waiting", "the rank's time in collectives, sends and receives before the last rank arrived"),
        (
            "not known",
            "time in collectives, sends and receives that no other rank recorded, or that could not be matched",
        ),
        ("time in collectives", "time in which at least one collective runs; mean: the mean duration of a call"),
    ),
    options=(COMPAT,),
)
