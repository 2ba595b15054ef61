"""Communication overlap: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="Communication overlap",
    question="How much communication is hidden behind computation?",
    section="Distributed",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("communication", "time in which at least one communication kernel runs, including waits for late ranks"),
        ("hidden", "communication time in which a computation kernel runs on the same device"),
        ("exposed", "communication time in which no computation kernel runs on the same device"),
    ),
)
