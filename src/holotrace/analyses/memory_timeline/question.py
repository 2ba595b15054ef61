"""Memory: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Memory",
    question="How much memory was allocated, and which operators allocated the memory in use at the peak?",
    section="Devices",
    needs=(EventKind.MEMORY,),
    definitions=(
        ("allocated", "memory that PyTorch's allocator has handed out, after each memory event of the profiler"),
        (
            "reserved",
            "memory that the allocator has requested from the driver, including memory that it has not handed out",
        ),
        ("before the recording", "memory allocated before the recording began, and not freed before the peak"),
        ("operator", "the innermost operator around the allocation; top operator: the outermost operator around it"),
    ),
)
