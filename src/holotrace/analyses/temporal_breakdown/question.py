"""Temporal breakdown: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Temporal breakdown",
    question="Where does each GPU's time go?",
    section="Devices",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        (
            "from first to last work",
            "from the start of the device's first kernel, copy or memset to the end of its last one",
        ),
        ("computing", "time in which at least one computation kernel runs, even if other work runs at the same time"),
        ("other work only", "time in which communication or copies run, but no computation"),
        ("idle", "time in which no stream of the device runs work"),
        ("unknown", "time in which the device may run a graph replay whose kernels the profiler lost"),
    ),
)
