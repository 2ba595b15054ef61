"""The plotly.js that a browser loads: a small build, or all of it."""

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
    """Simulate a later version of the package plotly."""
    monkeypatch.setattr(plotly_js, "get_plotlyjs_version", lambda: "99.0.0")
    small_plotly_js.cache_clear()
    yield
    small_plotly_js.cache_clear()


def test_the_small_build_is_the_published_file() -> None:
    """Its hash and version match, and its licence is included."""
    content = files("holotrace.drawing.plotly_js").joinpath("plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert f"plotly.js (basic - minified) v{VERSION}".encode() in content[:100]
    assert "MIT License" in files("holotrace.drawing.plotly_js").joinpath("LICENSE").read_text(encoding="utf-8")


def test_the_small_build_has_the_major_version_of_plotly() -> None:
    """A new major version of plotly needs a new small build; until then, pages and reports contain all of plotly.js."""
    if get_plotlyjs_version().partition(".")[0] != VERSION.partition(".")[0]:
        pytest.skip(f"plotly {get_plotlyjs_version()} is installed, and its own plotly.js is used")
    assert len(small_plotly_js() or b"") < len(get_plotlyjs()) / 3


def test_only_figures_that_need_it_load_all_of_plotly_js() -> None:
    """Bars need the small build, icicle charts all of plotly.js."""
    assert plotly_js_for([BARS, {"data": []}]) == (small_plotly_js() or b"").decode()
    assert plotly_js_for([BARS, BOXES]) == get_plotlyjs()


@pytest.mark.usefixtures("_another_plotly")
def test_another_major_version_of_plotly_uses_its_own_plotly_js() -> None:
    """The small build might not support its figures."""
    assert small_plotly_js() is None
    assert plotly_js_for([BARS]) == get_plotlyjs()


def test_the_trace_types_of_all_figures() -> None:
    """A figure with a type outside the small build makes pages and reports contain all of plotly.js."""
    assert _traces_in_the_figures() - TYPES == {"icicle"}


def _traces_in_the_figures() -> set[str]:
    """Return each `go.<Trace>` of the sources."""
    package = files("holotrace")
    drawing = [file for file in package.joinpath("drawing").iterdir() if file.name.endswith(".py")]
    figures = [folder.joinpath("figure.py") for folder in package.joinpath("analyses").iterdir() if folder.is_dir()]
    sources = [*drawing, *(file for file in figures if file.is_file())]
    nodes = [node for file in sources for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "go"}
    kinds = [getattr(go, name) for name in names]
    return {kind.__name__.lower() for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseTraceType)}
