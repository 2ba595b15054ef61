"""CUPTI counters: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="CUPTI counters",
    question="What did the hardware counters measure?",
    section="Work",
    needs=(EventKind.PROFILER_RANGE,),
    definitions=(
        ("FLOP", "floating-point operations that all threads executed; a fused multiply-add counts twice"),
        ("operator", "the outermost operator around the call that launched the kernel"),
    ),
)
