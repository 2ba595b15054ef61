"""Modules: the question, the terms of its tables, and the options of its command."""

from __future__ import annotations

from holotrace.options import COMPAT
from holotrace.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Modules",
    question="Which modules take the time?",
    section="Work",
    definitions=(
        ("module", "one dot for each enclosing module; repeated calls at the same position in the model share a row"),
        ("operators", "calls directly in the module: not inside another operator or module"),
        ("device, itself", "work launched in the module itself; with inner: also in the modules inside it"),
        ("host, itself", "time outside inner operators, annotations, modules and runtime calls: Python"),
        ("backward", "what autograd ran for the operators of the module's forward calls, by the profiler's links"),
    ),
    options=(COMPAT,),
)
