"""Memory of operators: the question, the terms of its tables, and the options of its command."""

from __future__ import annotations

from holotrace.options import COMPAT, Option
from holotrace.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Memory of operators",
    question="Which operators allocate memory, and what stays?",
    section="Devices",
    definitions=(
        ("allocated, itself", "by allocations whose innermost operator it is; with inner: also in operators inside it"),
        ("not released", "the part of its own allocations that is still allocated when the recording ends"),
        ("net, itself", "allocated minus freed while it ran, including memory that others had allocated"),
        ("block", "from an allocation to the next free of its address on its device"),
        ("calls", "all of them, with and without allocations"),
    ),
    options=(
        Option("start_ns", "Start the window at this time, as --json prints times.", kind=int, metavar="NS"),
        Option("end_ns", "End the window at this time.", kind=int, metavar="NS"),
        COMPAT,
    ),
)
