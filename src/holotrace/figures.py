"""Figures: `plot_<name>(result)` draws the result of the analysis with this name.

A figure contains only data of the result, so notebooks, HTML reports and the web pages show the same numbers. Plotly is
imported when the first figure is drawn. `figures.pyi` lists the plot functions for type checkers.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from holotrace import analyses

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PREFIX = "plot_"

__all__ = [f"{_PREFIX}{module.name}" for module in iter_modules(analyses.__path__)]


def figure_of(name: str, result: object, **options: object) -> go.Figure:
    """Draw the result of the analysis called `name`: `plot_<name>(result, **options)`."""
    figure: go.Figure = _plot(f"{_PREFIX}{name}")(result, **options)
    return figure


def further_figures_of(name: str, result: object, **options: object) -> dict[str, go.Figure]:
    """Return the additional figures of an analysis, by name; most analyses have only their main figure."""
    make = getattr(_module(name), "further_figures", None)
    figures: dict[str, go.Figure] = make(result, **options) if make else {}
    return figures


def _plot(name: str) -> Any:  # noqa: ANN401 -- plots have different options
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(_module(name.removeprefix(_PREFIX)), name)


def _module(name: str) -> ModuleType:
    return import_module(f"holotrace.analyses.{name}.figure")


def __dir__() -> list[str]:
    """List the plot functions, and the attributes that every module has, such as `__name__`."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


__getattr__ = _plot
