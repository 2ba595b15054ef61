"""Generates the names of the questions in `holotrace/__init__.pyi`, and all of `holotrace/figures.pyi`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.questions.question import Analysis

STUB = Path(__file__).parent.parent.parent / "src" / "holotrace" / "__init__.pyi"

_FIGURES = '''\
"""The figures of `holotrace`, and the modules that define them. Each module is imported when first used."""

import plotly.graph_objects as go

{imports}
def figure_of(name: str, result: object, **options: object) -> go.Figure: ...
def further_figures_of(name: str, result: object, **options: object) -> dict[str, go.Figure]: ...
'''
_OF_QUESTIONS = re.compile(r"^from \.analyses\.\w+\.compute import (?:\([^)]*\)|.*)\n", re.MULTILINE)
_QUESTIONS = sorted((*ANALYSES, *COMPARISONS), key=lambda question: question.name)
_LONGEST_LINE = 120


def public_names_stub() -> str:
    """Return the stub of `holotrace` with the names of all questions; the rest of the stub does not change."""
    stub = STUB.read_text(encoding="utf-8")
    before = _OF_QUESTIONS.split(stub)[0]
    after = _OF_QUESTIONS.sub("", stub).removeprefix(before)
    imports = [_import(f".analyses.{question.name}.compute", *_names(question)) for question in _QUESTIONS]
    return "".join([before, *imports, after])


def figures_stub() -> str:
    """Return the stub of `holotrace.figures`."""
    imports = [_import(f".analyses.{question.name}.figure", f"plot_{question.name}") for question in _QUESTIONS]
    return _FIGURES.format(imports="".join(imports))


def _names(question: Analysis) -> tuple[str, str]:
    """Return two names: the (first) class that the question's function returns, and the function itself."""
    result = get_type_hints(question.compute)["return"]
    return next(iter(get_args(result)), result).__name__, question.name


def _import(module: str, *names: str) -> str:
    """Return a line, in ruff's format, that imports names and makes them public."""
    aliases = [f"{name} as {name}" for name in names]
    line = f"from {module} import {', '.join(aliases)}"
    if len(line) > _LONGEST_LINE:
        line = "\n    ".join([f"from {module} import (", *(f"{alias}," for alias in aliases)]) + "\n)"
    return f"{line}\n"
