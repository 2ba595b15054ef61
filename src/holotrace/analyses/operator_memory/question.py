"""Memory of operators: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT, Option
from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Memory of operators",
    question="Which operators allocate memory, and how much of it stays allocated?",
    section="Devices",
    needs=(EventKind.MEMORY,),
    definitions=(
        (
            "allocated, itself",
            "memory that the operator itself allocates; with inner: also memory of operators inside it",
        ),
        (
            "not released",
            "memory that the operator itself allocates and that is still allocated when the recording ends",
        ),
        (
            "net, itself",
            "memory that the operator itself allocates, minus all memory that it frees, even if another operator allocated it",
        ),
        ("block", "memory from an allocation to the next free of the same address on the same device"),
        ("calls", "all calls of the operator, including calls that allocate nothing"),
    ),
    options=(
        Option("start_ns", "Start the analysed window at this time (ns since the Unix epoch).", kind=int, metavar="NS"),
        Option("end_ns", "End the analysed window at this time (ns since the Unix epoch).", kind=int, metavar="NS"),
        COMPAT,
    ),
)
