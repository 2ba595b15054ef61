"""Diagnosis: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Diagnosis",
    question="Why is the job slow, and what should you do about it?",
    section="Overview",
    definitions=(
        (
            "per step",
            "in the mean steady step; warmup steps and steps that take far longer than the others are left out",
        ),
        (
            "cost",
            "upper bound on the time per step that a fix can save, averaged over all ranks; no time is counted twice",
        ),
        ("what-if", "a step becomes this much shorter if it is replayed without the cause"),
        ("bound", "fixing the cause saves this much or less"),
        ("estimate", "the saving is estimated from other jobs: fixing the cause may save less or more"),
        ("part of", "another rule, whose finding already explains most of the same time"),
    ),
    alias="diagnose",
)
