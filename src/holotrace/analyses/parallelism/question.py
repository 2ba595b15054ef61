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
            "kind of parallelism for which a process group is used: pipeline, tensor, context, expert or data (also fsdp)",
        ),
        ("world", "a group of all ranks, in a job that also has groups of other axes"),
        (
            "exposed",
            "time in which the rank communicates but does not compute; its exposed time is the sum over all axes",
        ),
        ("waiting", "exposed time until the last rank has arrived; exposed time after that is transfer"),
        ("bubble", "exposed waiting in the sends and receives of a pipeline; transfers do not count"),
        ("expected", "bubble of p equal stages and m microbatches, as a share of the step: (p - 1) / (m + p - 1)"),
        ("imbalance", "tokens that a rank's experts receive, divided by the mean over the ranks of its group"),
    ),
)
