"""Frequent kernel sequences: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Frequent kernel sequences",
    question="Which sequences of kernels do operators launch most often?",
    section="Work",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        (
            "sequence",
            "the kernels, copies and memsets that one call of an outermost operator launches, in the order in which they start",
        ),
    ),
    options=(
        Option(
            "operator_name",
            "Count only operators and annotations whose name contains this text.",
            flag="--operator",
            metavar="NAME",
        ),
        Option(
            "min_kernel_count",
            "Leave out calls that launch fewer than this many kernels.",
            kind=int,
            default=3,
            flag="--min-kernels",
            minimum=1,
        ),
    ),
)
