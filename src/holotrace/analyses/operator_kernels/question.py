"""Operators and their kernels: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Operators and their kernels",
    question="Which operators cause the device time?",
    section="Work",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("operator of a kernel", "the innermost operator around the launch of the kernel, on the same thread"),
        ("backward", "kernels launched in the backward operator that the profiler links to this operator"),
    ),
    options=(
        Option(
            "include_memory", "Count copies and memsets as well as kernels.", kind=bool, default=False, flag="--memory"
        ),
    ),
)
