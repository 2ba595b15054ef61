"""Step time: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import ANNOTATION, COMPAT
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Step time",
    question="What did each step spend its time on?",
    section="Host",
    definitions=(
        (
            "step",
            "from the start of ProfilerStep#N until its end or, if later, the end of the device work that it launched",
        ),
        (
            "kernels, copies, memsets",
            "time in which a device runs work of this kind; if several kinds run at once, the time counts toward the first kind",
        ),
        ("communication", "exposed communication: time in which a collective runs, excluding the times above"),
        ("runtime", "time in which the host is in the CUDA or HIP runtime or driver, excluding the times above"),
        ("data loader", "time in which the host waits for the next batch, excluding the times above"),
        ("operators", "time in which an operator runs on the host, excluding the times above"),
        (
            "outlier",
            "a step that exceeds the rank's median step by over 25 % and by over 5 robust standard deviations",
        ),
        ("warm-up", "outliers at the beginning of the recording"),
        ("typical step", "the median of the steady steps, which are neither warm-up nor outliers"),
    ),
    options=(ANNOTATION, COMPAT),
)
