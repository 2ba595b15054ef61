"""Diagnosis: the question, the terms that its tables use, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Diagnosis",
    question="Why is the job slow, and what should you do about it?",
    section="Overview",
    definitions=(
        ("per step", "in the mean steady step: steps that warm up, or take far longer than the others, are left out"),
        ("cost", "the most that fixing the cause can save per step, averaged over all ranks; no time counts twice"),
        ("what-if", "the step was replayed without the cause, and got this much shorter"),
        ("bound", "fixing the cause saves at most this, and may save less"),
        ("estimate", "the saving is estimated from other jobs: fixing the cause may save less or more"),
        ("part of", "the rule whose finding explains most of the same time"),
    ),
    alias="diagnose",
)
