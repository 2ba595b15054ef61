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
        ("a + b", "time in which work of exactly the kinds a and b runs, so no time counts in two rows"),
        (
            "share of a kernel",
            "its summed time divided by the summed time of all kernels; kernels that run in parallel are all added",
        ),
    ),
)
