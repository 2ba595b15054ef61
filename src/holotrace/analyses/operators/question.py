"""Operators: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Operators",
    question="Where do operators spend time?",
    section="Work",
    definitions=(
        (
            "device, itself",
            "summed durations of kernels, copies and memsets that the operator itself launched, even if they overlap",
        ),
        (
            "device, with inner",
            "the same, plus the work of inner operators; the work of a recursive call also counts in the outer call",
        ),
        ("device busy", "time in which at least one kernel, copy or memset of the operator itself runs"),
        ("host, itself", "time in the operator, outside inner operators, runtime calls and driver calls"),
        ("eligible", "whether the operator's name suggests that tensor or matrix cores could do some of its work"),
        ("on tensor cores", "share of the operator's device self time in kernels that use tensor or matrix cores"),
    ),
    options=(COMPAT,),
)
