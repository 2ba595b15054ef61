"""Modules: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT
from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Modules",
    question="Which modules take the time?",
    section="Work",
    needs=(EventKind.PYTHON_FUNCTION,),
    definitions=(
        (
            "module",
            "indented with one dot per enclosing module; repeated calls at the same position in the model share a row",
        ),
        ("operators", "operators that the module calls directly, not inside another operator or module"),
        ("device, itself", "work that the module itself launched; with inner: also work of the modules inside it"),
        (
            "host, itself",
            "time in the module's Python code, outside operators, annotations, inner modules and runtime calls",
        ),
        ("backward", "the backward operators that the profiler links to the operators of the module's forward calls"),
    ),
    options=(COMPAT,),
)
