"""Kernel breakdown: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Kernel breakdown",
    question="What do the GPUs run?",
    section="Work",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        (
            "communication",
            "collectives and sends, recognised by the recorded collective or, if none was recorded, by the kernel's name",
        ),
        ("memory", "memsets, and copies between or within devices"),
        ("computation", "every other kernel"),
        ("a + b", "time in which exactly the kinds a and b run; this time is not included in the rows a and b"),
        (
            "share of a kernel",
            "total time of the kernel divided by the total time of all kernels; if kernels overlap, each counts in full",
        ),
    ),
)
