"""Launch statistics: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option, nanoseconds
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Launch statistics",
    question="How much time do launches cost?",
    section="Host",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("call", "a call of the runtime or driver that launched device work; a graph launch starts many kernels"),
        (
            "delay",
            "from the end of the call to the start of the work; negative if the work starts before the call ends",
        ),
        ("kernel shorter than call", "the work takes less time than its call, and the call takes at most 50 µs"),
        ("slow call", "a call of more than 50 µs"),
        ("late start", "a delay of more than 100 µs, usually because the kernel waited for earlier work"),
    ),
    options=(
        Option(
            "runtime_cutoff_ns",
            "Treat calls that take more than this many µs as slow.",
            kind=float,
            default=50,
            flag="--runtime-cutoff-us",
            minimum=0,
            read=nanoseconds,
        ),
        Option(
            "delay_cutoff_ns",
            "Treat work that starts more than this many µs after the end of its launch call as late.",
            kind=float,
            default=100,
            flag="--delay-cutoff-us",
            minimum=0,
            read=nanoseconds,
        ),
        Option(
            "include_launches",
            "Add a row for each launch to the JSON output.",
            kind=bool,
            default=False,
            flag="--launches",
        ),
    ),
)
