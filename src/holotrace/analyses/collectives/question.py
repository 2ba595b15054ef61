"""Collectives: the question, the terms that its tables use, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Collectives",
    question="Who was late, and how fast was the wire?",
    section="Distributed",
    definitions=(
        ("waits", "from a rank's arrival in a collective to the arrival of the last rank, summed over ranks"),
        ("transfer", "from the arrival of the last rank to the end: only then can all data move"),
        ("message", "size of the whole array that the collective handles, as nccl-tests counts it"),
        ("algorithm bandwidth", "message / transfer, in decimal units (1 GB/s is 1e9 bytes/s)"),
        ("bus bandwidth", "what each rank's link carries: algorithm bandwidth times the factor of nccl-tests"),
        (
            "verdict",
            "skew-bound: at least three quarters of the time is waiting; transfer-bound: at most one quarter; mixed: between",
        ),
        ("mergeable", "small calls that follow one another; merging a call into the one before it saves one latency"),
        ("lateness", "how long after the first rank a rank arrived; empty where the clocks are not exact enough"),
    ),
    options=(Option("steps", "Count only the collectives of these steps.", metavar="0-7,9", read=numbers),),
)
