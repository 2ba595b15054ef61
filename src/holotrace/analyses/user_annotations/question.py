"""User annotations: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="User annotations",
    question="How long do the annotated parts take?",
    section="Work",
    definitions=(
        ("annotation", "a part of the program inside torch.profiler.record_function, or a step"),
        (
            "on the GPUs",
            "on each stream, from the start of the first work launched inside the annotation to the end of the last such work",
        ),
        ("self", "part of the annotation's time in which no shorter annotation is active on the same stream or thread"),
        ("kernel time", "time of the kernels, copies and memsets whose innermost annotation this is"),
    ),
    options=(
        Option(
            "allow",
            "Show only annotations with a matching name; may be repeated.",
            kind=list[str],
            metavar="REGEX",
        ),
        Option("merge_steps", "Add up all steps under the name ProfilerStep.", kind=bool, default=False),
    ),
)
