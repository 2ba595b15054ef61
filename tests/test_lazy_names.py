"""Modules that import names on first use show all names to completion and type checkers."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import holotrace
import holotrace.figures
import holotrace.testing
from holotrace.catalogue import ANALYSES, COMPARISONS

LAZY = (holotrace, holotrace.figures, holotrace.testing)
SOURCE = Path(holotrace.__file__).parent


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_dir_lists_every_public_name(module) -> None:
    """Every name in `__all__` is in `dir` before its first use and can be used."""
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_every_plot_is_public() -> None:
    """`holotrace.figures` and its stub have exactly one plot function per analysis."""
    plots = {f"plot_{question.name}" for question in (*ANALYSES, *COMPARISONS)}
    assert set(holotrace.figures.__all__) == plots
    stub = ast.parse((SOURCE / "figures.pyi").read_text(encoding="utf-8"))
    imported = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == plots


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_type_checkers_see_no_getattr_of_a_module(path) -> None:
    """No module has a top-level `__getattr__`, because type checkers would then accept misspelt names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"] == []


@pytest.mark.slow
def test_a_misspelt_name_fails_the_type_check(tmp_path, monkeypatch) -> None:
    """In lazy modules, the type checker rejects misspelt names and finds the signatures of correct names."""
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


@pytest.mark.parametrize("module", [holotrace, holotrace.testing], ids=lambda module: module.__name__)
def test_names_come_from_the_modules_in_the_stub(module) -> None:
    """`__all__` lists the names in the stub, and each name resolves to the object that the stub imports."""
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: ".".join([module.__name__, *([node.module] if node.module else [])])
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(module.__all__) == sorted(homes)
    for name, home in homes.items():
        assert getattr(module, name) is inspect.getattr_static(importlib.import_module(home), name)
