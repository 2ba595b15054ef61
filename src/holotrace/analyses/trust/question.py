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
            "share of recorded time with no broken rule; problems without a time, such as lost events, do not lower it",
        ),
        ("of device time", "share of the rank's device-busy time in which the recording breaks no rule"),
    ),
)
