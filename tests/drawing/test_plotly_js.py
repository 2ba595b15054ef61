"""How much of plotly.js a browser gets."""

from __future__ import annotations

import ast
import hashlib
from importlib.resources import files

import plotly.graph_objects as go
import pytest
from plotly.basedatatypes import BaseTraceType
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from holotrace.drawing import plotly_js
from holotrace.drawing.plotly_js import SHA256, TYPES, VERSION, plotly_js_for, small_plotly_js

BARS, BOXES = {"data": [{"type": "bar"}]}, {"data": [{"type": "icicle"}]}


@pytest.fixture
def _another_plotly(monkeypatch):
    """The package plotly as it may come one day."""
    monkeypatch.setattr(plotly_js, "get_plotlyjs_version", lambda: "99.0.0")
    small_plotly_js.cache_clear()
    yield
    small_plotly_js.cache_clear()


def test_the_small_one_is_the_published_one() -> None:
    """Letter by letter, with its licence beside it, and named by its version."""
    content = files("holotrace.drawing.plotly_js").joinpath("plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert f"plotly.js (basic - minified) v{VERSION}".encode() in content[:100]
    assert "MIT License" in files("holotrace.drawing.plotly_js").joinpath("LICENSE").read_text(encoding="utf-8")


def test_the_small_one_is_of_the_version_that_figures_are_written_for() -> None:
    """A new major version of the package plotly wants a new one here: until then pages and reports carry all of it."""
    if get_plotlyjs_version().partition(".")[0] != VERSION.partition(".")[0]:
        pytest.skip(f"plotly {get_plotlyjs_version()} is installed, and its own plotly.js is used")
    assert len(small_plotly_js() or b"") < len(get_plotlyjs()) / 3


def test_figures_get_what_they_need() -> None:
    """Bars the small one, boxes within boxes all of it."""
    assert plotly_js_for([BARS, {"data": []}]) == (small_plotly_js() or b"").decode()
    assert plotly_js_for([BARS, BOXES]) == get_plotlyjs()


@pytest.mark.usefixtures("_another_plotly")
def test_another_major_version_of_plotly_draws_with_its_own() -> None:
    """The small one may not know what it writes."""
    assert small_plotly_js() is None
    assert plotly_js_for([BARS]) == get_plotlyjs()


def test_figures_are_made_of_known_traces() -> None:
    """Whoever draws with another kind than these learns here that pages and reports then carry all of plotly.js."""
    assert _traces_in_the_figures() - TYPES == {"icicle"}


def _traces_in_the_figures() -> set[str]:
    """Return each `go.<Trace>` of the sources."""
    package = files("holotrace")
    drawing = [each for each in package.joinpath("drawing").iterdir() if each.name.endswith(".py")]
    questions = [
        each
        for each in package.joinpath("analyses").iterdir()
        if each.is_dir() and each.joinpath("figure.py").is_file()
    ]
    sources = [*drawing, *(each.joinpath("figure.py") for each in questions)]
    nodes = [node for each in sources for node in ast.walk(ast.parse(each.read_text(encoding="utf-8")))]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "go"}
    kinds = [getattr(go, name) for name in names]
    return {kind.__name__.lower() for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseTraceType)}
