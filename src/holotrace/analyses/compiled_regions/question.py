"""Compiled regions: the question, and the terms that its tables use."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Compiled regions",
    question="What did torch.compile compile, and what do compiling, guards and graph breaks cost?",
    section="Work",
    has_input="has_signs_of_compile",
    definitions=(
        (
            "region",
            "code that torch.compile compiled, as frame/number: a number above 0 means that it was compiled again",
        ),
        ("recompiled", "the region is a later version of its frame, because a guard of an earlier version failed"),
        ("compiling", "host time in the compiler during the recording"),
        ("guards", "host time in which TorchDynamo checks which compiled version fits the inputs"),
        ("graph breaks", "places at which a function was split into several regions"),
        ("graph replays", "launches of CUDA graphs inside the region"),
        ("compiled again", "how often a frame was compiled after its first version, since the process began"),
    ),
    options=(
        Option(
            "compile_log",
            "Read compiled functions and failed guards from this folder, which TORCH_TRACE named during the recording.",
            metavar="PATH",
        ),
    ),
)
