"""Parallelism: the question, and the terms in its tables."""

from __future__ import annotations

from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Parallelism",
    question="Which axis of parallelism costs time?",
    section="Distributed",
    definitions=(
        (
            "axis",
            "kind of parallelism: pipeline (pp), tensor (tp), context (cp), expert (ep) or data (dp, fsdp)",
        ),
        ("world", "axis of a group that contains all ranks, if the job also has groups of other axes"),
        (
            "exposed",
            "time in which a rank communicates but does not compute; a rank's exposed time is the sum over all axes",
        ),
        ("waiting", "exposed time until the last rank has arrived; exposed time after that is transfer"),
        ("bubble", "exposed waiting in the sends and receives of a pipeline; transfers do not count"),
        ("expected", "bubble of p equal stages and m microbatches, as a share of the step: (p - 1) / (m + p - 1)"),
        ("imbalance", "tokens that a rank's experts receive, divided by the mean over the ranks of its group"),
    ),
)
