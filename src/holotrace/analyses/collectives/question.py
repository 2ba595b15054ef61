"""Collectives: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option, numbers
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Collectives",
    question="Which rank was late in collectives, and how fast was the transfer?",
    section="Distributed",
    definitions=(
        ("waits", "from a rank's arrival in a collective to the arrival of the last rank, summed over ranks"),
        (
            "transfer",
            "from the arrival of the last rank (until then, some data cannot move) to the end of the collective",
        ),
        ("message", "size of the whole array that the collective processes, as defined by nccl-tests"),
        ("algorithm bandwidth", "message / transfer, in decimal units (1 GB/s is 1e9 bytes/s)"),
        (
            "bus bandwidth",
            "bytes per second on each rank's link: algorithm bandwidth times the factor defined by nccl-tests",
        ),
        (
            "verdict",
            "skew-bound: at least 3/4 of the time is waiting; transfer-bound: at most 1/4; mixed: in between",
        ),
        (
            "mergeable",
            (
                "small calls that could be merged with the previous call; each merge saves the latency of one call and "
                "the pause between the two calls"
            ),
        ),
        ("lateness", "how much later a rank arrived than the first rank; empty if the clocks are not exact enough"),
    ),
    options=(Option("steps", "Count only the collectives of these steps.", metavar="0-7,9", read=numbers),),
)
