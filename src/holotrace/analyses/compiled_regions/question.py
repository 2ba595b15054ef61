"""Compiled regions: the question, and the terms in its tables."""

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
            "code that torch.compile compiled, named by frame/version; versions above 0 are recompilations",
        ),
        ("recompiled", "the region is a later version of its frame, because a guard of an earlier version failed"),
        ("compiling", "host time in the compiler during the recording"),
        ("guards", "host time in which TorchDynamo checks which compiled version fits the inputs"),
        ("graph breaks", "lines at which torch.compile splits a function into several regions"),
        ("graph replays", "launches of CUDA graphs inside the region"),
        ("compiled again", "recompilations of a frame since the process began"),
    ),
    options=(
        Option(
            "compile_log",
            "Read compiled functions and failed guards from the folder that TORCH_TRACE named during the recording.",
            metavar="PATH",
        ),
    ),
)
