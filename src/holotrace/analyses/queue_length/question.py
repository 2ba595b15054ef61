"""Queue length: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Queue length",
    question="Does the host keep the GPUs supplied with work?",
    section="Host",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("waits", "work waits from the start of its launch call on the host until it starts on the device"),
        ("length", "number of kernels, copies and memsets that wait for a stream; statistics are weighted by time"),
        ("work waits", "share of the time from the first launch to the last start of work during which any work waits"),
        ("full", "at least 1,024 launches wait, which is CUDA's limit; the next launch blocks the host"),
    ),
    options=(
        Option(
            "full_length", "Treat a queue of at least this many launches as full.", kind=int, default=1_024, minimum=1
        ),
    ),
)
