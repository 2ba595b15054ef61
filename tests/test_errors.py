"""`except HolotraceError` catches every error that holotrace raises deliberately."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

import holotrace

PACKAGE = Path(holotrace.__file__).parent


@pytest.mark.slow
def test_every_exception_of_the_package_is_a_holotrace_error() -> None:
    """Every exception class, even an internal one, derives from HolotraceError, so a command prints it as one line."""
    outside = {
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and is_exception_of_python_alone([ast.unparse(base) for base in node.bases])
    }
    assert outside == {"errors.py: HolotraceError"}


def is_exception_of_python_alone(bases: list[str]) -> bool:
    """Return whether the first base class is one of Python's built-in exceptions."""
    kinds = [getattr(builtins, name, None) for name in bases[:1]]
    return any(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds)
