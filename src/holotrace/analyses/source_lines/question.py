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
            "innermost user function on the thread's stack, ignoring PyTorch, installed libraries and built-in functions",
        ),
        ("host, itself", "time of all host threads in which the line is the innermost line of user code"),
        ("host in Python", "part of the line's host time outside operators, runtime calls and waits"),
        (
            "host blocked",
            "part of the line's host time in which the thread waits for a device, another rank or another thread",
        ),
        (
            "device, itself",
            "time of work launched while the line was innermost, or in the backward pass of operators that the line called",
        ),
        (
            "no work for a device",
            "idle time of a device while the thread that will launch the device's next work runs the line",
        ),
        ("called", "functions and operators that the line called directly, the longest first"),
        ("longer by", "how much more time per step a rank spends in the line than the median rank, excluding waits"),
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
