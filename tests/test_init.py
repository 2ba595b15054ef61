"""`holotrace` exports its public names and imports quickly."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import holotrace

HEAVY = {"dash", "jinja2", "numpy", "pandas", "plotly", "polars", "pyarrow", "rich", "typer"}


def modules_after(code: str) -> list[str]:
    """Run `code` in a new interpreter; return the words that it prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)  # noqa: S603
    return run.stdout.split()


@pytest.mark.parametrize("name", holotrace.__all__)
def test_every_public_name_exists(name: str) -> None:
    """Every name in `holotrace.__all__` exists and is in `dir(holotrace)`."""
    assert getattr(holotrace, name) is not None
    assert name in dir(holotrace)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """`holotrace.no_such_name` raises an AttributeError that contains the name."""
    with pytest.raises(AttributeError, match="no_such_name"):
        holotrace.no_such_name  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    """`holotrace.__version__` equals the version in the package metadata."""
    assert holotrace.__version__ == version("holotrace")


def test_importing_is_fast() -> None:
    """`import holotrace` loads none of its dependencies."""
    code = "import sys, holotrace; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = modules_after(code)
    assert HEAVY.isdisjoint(loaded)


def test_analyses_load_no_plotting_and_no_pandas() -> None:
    """Importing `open_trace` and `idle_time` imports neither pandas, pyarrow, plotly nor dash."""
    code = "import sys, holotrace; holotrace.open_trace, holotrace.idle_time; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = modules_after(code)
    assert {"dash", "jinja2", "pandas", "plotly", "pyarrow"}.isdisjoint(loaded)


def test_figures_need_no_import_of_their_own() -> None:
    """After `import holotrace`, the examples in the docstrings can use `holotrace.figures`."""
    assert modules_after("import holotrace; print(holotrace.figures.plot_idle_time.__name__)") == ["plot_idle_time"]
