"""Operators: the question, the terms of its tables, and the options of its command."""

from __future__ import annotations

from holotrace.options import COMPAT
from holotrace.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Operators",
    question="Where do operators spend time?",
    section="Work",
    definitions=(
        ("device, itself", "kernels, copies and memsets whose innermost operator it is; parallel ones all count"),
        ("device, with inner", "also those of all operators inside it; nested calls of one operator all count"),
        ("device busy", "time in which at least one of its own runs, parallel or not"),
        ("host, itself", "outside operators inside it, and outside runtime and driver calls"),
        ("eligible", "by its name, tensor or matrix cores could do some of its work"),
        ("on tensor cores", "the share of its own device time in kernels that use tensor or matrix cores"),
    ),
    options=(COMPAT,),
)
