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
            (
                "computation: the mean time of its kind over all ranks, stages, microbatches and steps; "
                "transfers: the median time of their kind and size"
            ),
        ),
        (
            "slowdown",
            "S: replayed step / ideal step; for the slowdown of one part, the replay gives all other parts ideal times",
        ),
        ("cost", "how much longer the mean ideal step becomes if only one part of the job keeps its recorded times"),
        (
            "worker share",
            "M_W: share of the loss that vanishes if the operations of the slowest 3 % of the workers take ideal times",
        ),
        (
            "stage share",
            "M_S: share of the loss that vanishes if the operations of the last pipeline stage take ideal times",
        ),
        ("replica", "a copy of the model: all stages of one pipeline or, without pipelines, a single rank"),
        (
            "replayed",
            "a replay of the recorded operations; launches cause no delay, and all ranks begin the step together",
        ),
    ),
)
