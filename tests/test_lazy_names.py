"""Modules that import their names when they are first used: what people and type checkers see of them."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import holotrace
import holotrace.figures
import holotrace.testing
from holotrace.catalogue import ANALYSES

LAZY = (holotrace, holotrace.figures, holotrace.testing)
SOURCE = Path(holotrace.__file__).parent


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_dir_lists_every_public_name(module) -> None:
    """What `__all__` names can be used, and is found by completion before it is."""
    assert set(module.__all__) <= set(dir(module))
    assert {"__name__", "__doc__", "__file__"} <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_every_plot_is_public() -> None:
    """One for each analysis and each comparison."""
    plots = {f"plot_{each.name}" for each in ANALYSES} | {"plot_compare_traces", "plot_compare_operators"}
    assert set(holotrace.figures.__all__) == plots
    assert len(plots) == 23


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_type_checker_sees_a_getattr_of_a_module(path) -> None:
    """One that is seen makes every name of the module valid, misspelt ones too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "__getattr__"] == []


@pytest.mark.slow
def test_a_misspelt_name_fails_the_type_check(tmp_path, monkeypatch) -> None:
    """The names, their signatures and nothing else are known."""
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        "import holotrace\nimport holotrace.figures\nfrom holotrace import idle_time\n"
        "holotrace.idel_time\nholotrace.figures.plot_idel_time\nholotrace.testing_\nreveal_type(idle_time)\nholotrace.figures.plot_idle_time\n"
    )
    monkeypatch.setenv("MYPYPATH", str(SOURCE.parent))
    options = [
        "--config-file=",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        f"--cache-dir={tmp_path / 'cache'}",
    ]
    output, _, _ = api.run([*options, str(program)])
    errors = [line for line in output.splitlines() if "error:" in line]
    assert [line.partition("error: ")[2].partition("  ")[0].partition(";")[0] for line in errors] == [
        'Module has no attribute "idel_time"',
        'Module has no attribute "plot_idel_time"',
        'Module has no attribute "testing_"',
    ]
    assert "def (trace: holotrace.store.trace.Trace" in output


def test_names_of_lazy_modules_are_what_their_modules_have() -> None:
    """The name used through the package is the one of the module that defines it."""
    for name, module in holotrace._MODULES.items():
        assert getattr(holotrace, name) is inspect.getattr_static(importlib.import_module(module), name)
