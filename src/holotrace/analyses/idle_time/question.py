"""Idle time: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option, nanoseconds
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Idle time",
    question="What were the idle GPUs waiting for?",
    section="Devices",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("the host", "the part of a gap before the host launches the next work: the device has nothing to do"),
        (
            "the kernel's start",
            "the time after the launch, if shorter than 30 µs: the kernel starts as quickly as usual",
        ),
        (
            "something else",
            "the time after the launch, if at least 30 µs: the work waits for an event, a stream, or something unknown",
        ),
        ("unknown", "the time in a gap in which the device may run a graph replay whose kernels the profiler lost"),
    ),
    options=(
        Option(
            "gap_threshold_ns",
            "If work starts at least this many µs after its launch, classify the wait as `something else`.",
            kind=float,
            default=30,
            flag="--gap-threshold-us",
            minimum=0,
            read=nanoseconds,
        ),
    ),
)
