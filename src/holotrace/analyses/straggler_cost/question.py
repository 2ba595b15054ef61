"""Straggler cost: the question, and the terms in its tables."""

from __future__ import annotations

from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Straggler cost",
    question="How much faster would the job be without stragglers?",
    section="Distributed",
    definitions=(
        (
            "ideal",
            "computation takes the mean of its kind over ranks, stages, microbatches and steps; transfers the median",
        ),
        (
            "slowdown",
            "S: the replayed step / the ideal step; for a part of the job, only this part keeps its recorded times in the replay",
        ),
        ("cost", "how much longer the ideal step gets if this part keeps its recorded times, mean of the steps"),
        ("worker share", "M_W: share of the loss that vanishes if the worst 3 % of the workers take ideal times"),
        ("stage share", "M_S: share of the loss that vanishes if the last pipeline stage takes ideal times"),
        ("replica", "one copy of the model: the stages of one pipeline, or a single rank"),
        (
            "replayed",
            "the step from the recorded operations, without launch delays and with all ranks beginning together",
        ),
    ),
)
