"""Generated files are up to date and explain their terms."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module

from holotrace.enrich.operator_costs import formulas
from pages import ROOT


def test_generated_files_are_up_to_date() -> None:
    """`scripts/generate --check` finds no file that `make generate` would change."""
    check = [sys.executable, ROOT / "scripts" / "generate", "--check"]
    run = subprocess.run(check, capture_output=True, check=False, text=True)  # noqa: S603
    assert (run.returncode, run.stderr) == (0, "")


def test_named_formulas_are_explained() -> None:
    """The section on shared formulas explains every formula that a table names, such as `flash`, and no other."""
    page = (ROOT / "docs" / "reference" / "operator_costs.md").read_text(encoding="utf-8")
    rules, shared = page.partition("## Devices")[0].split("## Shared formulas")
    explained = set(re.findall(r"^\| `(\w+)`", shared, re.MULTILINE))
    texts = [row.split(" | ")[1] for row in (*rules.splitlines(), *shared.splitlines()) if row.startswith("| `")]
    assert {name for text in texts for name in re.findall(r"`(\w+)`", text)} & _formulas() == explained


def _formulas() -> set[str]:
    modules = [
        import_module(f"{formulas.__name__}.{module.name}") for module in pkgutil.iter_modules(formulas.__path__)
    ]
    return {name for module in modules for name, _ in inspect.getmembers(module, inspect.isfunction)}
