"""Pages load a small build of plotly.js, or all of plotly.js if a figure needs it."""

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

needs_the_small_build = pytest.mark.skipif(
    small_plotly_js() is None,
    reason=f"plotly contains plotly.js {get_plotlyjs_version()}, so the small build is not used",
)

BARS, BOXES = {"data": [{"type": "bar"}]}, {"data": [{"type": "icicle"}]}


@pytest.fixture
def _another_plotly(monkeypatch):
    """Simulate a later version of plotly."""
    monkeypatch.setattr(plotly_js, "get_plotlyjs_version", lambda: "99.0.0")
    small_plotly_js.cache_clear()
    yield
    small_plotly_js.cache_clear()


def test_the_small_build_is_the_published_file() -> None:
    """The included file has the published hash and version, and its licence is included too."""
    content = files("holotrace.drawing.plotly_js").joinpath("plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert f"plotly.js (basic - minified) v{VERSION}".encode() in content[:100]
    assert "MIT License" in files("holotrace.drawing.plotly_js").joinpath("LICENSE").read_text(encoding="utf-8")


@needs_the_small_build
def test_the_small_build_has_the_major_version_of_plotly() -> None:
    """The small build has the major version of plotly.js, and less than a third of its size."""
    assert len(small_plotly_js() or b"") < len(get_plotlyjs()) / 3


@needs_the_small_build
def test_only_figures_that_need_it_load_all_of_plotly_js() -> None:
    """Bars need only the small build; icicle charts need all of plotly.js."""
    assert plotly_js_for([BARS, {"data": []}]) == (small_plotly_js() or b"").decode()
    assert plotly_js_for([BARS, BOXES]) == get_plotlyjs()


@pytest.mark.usefixtures("_another_plotly")
def test_another_major_version_of_plotly_uses_its_own_plotly_js() -> None:
    """With plotly 99, pages use plotly's own plotly.js, because the small build might not support the figures."""
    assert small_plotly_js() is None
    assert plotly_js_for([BARS]) == get_plotlyjs()


def test_the_trace_types_of_all_figures() -> None:
    """Only icicle charts need all of plotly.js, which makes a page or report several times larger."""
    assert _traces_in_the_figures() - TYPES == {"icicle"}


def _traces_in_the_figures() -> set[str]:
    """Return the trace types that the sources use as `go.<Trace>`."""
    package = files("holotrace")
    drawing = [file for file in package.joinpath("drawing").iterdir() if file.name.endswith(".py")]
    figures = [folder.joinpath("figure.py") for folder in package.joinpath("analyses").iterdir() if folder.is_dir()]
    sources = [*drawing, *(file for file in figures if file.is_file())]
    nodes = [node for file in sources for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "go"}
    kinds = [getattr(go, name) for name in names]
    return {kind.__name__.lower() for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseTraceType)}
