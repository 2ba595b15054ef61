"""Source lines: the question, and the terms in its tables."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Source lines",
    question="Which lines of my code take the time, on the host and on the devices?",
    section="Work",
    needs=(EventKind.PYTHON_FUNCTION,),
    definitions=(
        (
            "line",
            "innermost Python function of the user on the thread, ignoring PyTorch, installed libraries and built-in functions",
        ),
        ("host, itself", "time of all host threads in which the line is the innermost line of user code"),
        ("host in Python", "part of this time outside operators, runtime calls and waits"),
        ("host blocked", "part of this time in which the thread waits for a device, another rank or another thread"),
        (
            "device, itself",
            "work launched while the line was the innermost line, or in the backward pass of operators that it called",
        ),
        (
            "no work for a device",
            "time in which a device has nothing to do while the thread that launches its next work runs the line",
        ),
        ("called", "functions and operators that the line called directly, the longest first"),
        ("longer by", "time per step that a rank spends in the line beyond the median rank, without waits"),
    ),
    options=(
        Option(
            "libraries",
            "Treat files whose recorded names begin with this folder as library code; may be repeated.",
            kind=list[str],
            flag="--library",
            metavar="FOLDER",
        ),
    ),
)
