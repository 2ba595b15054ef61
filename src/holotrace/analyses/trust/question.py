"""Trust: the question, and the terms in its tables."""

from __future__ import annotations

from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Trust",
    question="Can this trace be trusted?",
    section="Files",
    definitions=(
        (
            "doubt",
            "a rule that the recording breaks, so some recorded times or counts are wrong or unknown",
        ),
        ("recorded", "time from the first to the last event of the rank"),
        (
            "trusted",
            "share of recorded time without broken rules; doubts without a time, such as lost events, do not lower it",
        ),
        ("of device time", "of the rank's time with device work, the share in which no rule is broken"),
    ),
)
