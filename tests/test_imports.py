"""Imports have no cycles, and import-linter sees every import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import holotrace
import hta

SOURCE = Path(holotrace.__file__).parent
HTA_INTERFACE = Path(hta.__file__).parent

IMPORTED_BY_NAME = {
    "holotrace/catalogue.py": "each question is imported by the name of its folder; the question modules are in lower layers",
    "holotrace/cli/group.py": "commands, whose modules are in a lower layer, are imported only when they run",
    "holotrace/questions/question.py": "a question imports the computation and tables of its own folder on first use",
    "holotrace/figures.py": "figure modules load plotly, so each is imported on first use; they are in a lower layer",
    "holotrace/questions/result.py": "a result imports its answer, tables and figure from its own folder on first use",
    "holotrace/execution/extras.py": "optional third-party packages",
    "holotrace/export/trace_text.py": "several packages decompress zstd; the first one that is installed is imported",
    "hta/facade/answers/dashboard.py": "IPython, which is installed in every notebook",
    "hta/facade/imports/elsewhere.py": "Meta's modules re-export each other's names, in cycles",
    "hta/facade/imports/later.py": "submodules and functions of the facade are imported on first use",
    "hta/facade/imports/modules_later.py": "pandas, plotly and networkx are imported on first use",
}
"""{file: reason for importing modules by name}. import-linter cannot check that these imports follow the layers."""


def modules_below(root: Path) -> dict[str, Path]:
    """Return the modules of a package, as {name: file}."""
    paths = {path: path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for path, name in paths.items()}


def parsed(path: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def is_for_type_checkers(node: ast.AST) -> bool:
    """Whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a file imports at run time, including imports inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            yield from (module for name in child.names for module in (f"{child.module}.{name.name}", f"{child.module}"))
        elif isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif not is_for_type_checkers(child):
            yield from imports_of(child)


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return a cycle of imports, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_imports_have_no_cycles() -> None:
    """The modules of holotrace have no cyclic imports, not even inside functions."""
    modules = modules_below(SOURCE)
    graph = {name: set(imports_of(parsed(path))) & modules.keys() for name, path in modules.items()}

    assert circle_in(graph) == []


def test_a_cycle_through_a_function_is_detected() -> None:
    """If module a imports b, and a function in module b imports a, the cycle is detected."""
    files = {"a": "from b import f", "b": "def f():\n    import a"}
    graph = {name: set(imports_of(ast.parse(text))) & files.keys() for name, text in files.items()}

    assert sorted(set(circle_in(graph))) == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("root", [SOURCE, HTA_INTERFACE], ids=lambda root: root.name)
def test_only_a_few_files_import_modules_by_name(root: Path) -> None:
    """Only files in IMPORTED_BY_NAME use `import_module` or `__import__`.

    import-linter cannot see such imports, so they could import modules of higher layers unnoticed.
    """
    users = {
        path.relative_to(root.parent).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.Name, ast.Attribute, ast.alias)) and name_of(node) in {"import_module", "__import__"}
    }

    assert users == {path for path in IMPORTED_BY_NAME if path.startswith(f"{root.name}/")}


def name_of(node: ast.Name | ast.Attribute | ast.alias) -> str:
    """Return the last part of a name."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case _:
            return node.name
