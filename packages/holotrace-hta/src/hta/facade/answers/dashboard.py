"""The verdict and all figures of a job, inline in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING

from holotrace.drawing.names import printable
from holotrace.figures import figure_of
from holotrace.overview import Overview, overview, shown_analyses
from hta.facade.results.show import show

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from holotrace.drawing.theme import Theme
    from holotrace.store.trace import Trace


@dataclass(frozen=True)
class Dashboard:
    """A notebook displays this at the end of a cell; elsewhere call `show()`.

    overview  the verdict, the findings and the results behind the figures
    theme     `light` or `dark`
    """

    overview: Overview
    theme: Theme = "light"

    @property
    def figures(self) -> dict[str, go.Figure]:
        """The figures by analysis name, for every analysis that succeeded."""
        results = self.overview.results
        return {
            each.name: figure_of(each.name, results[each.name], theme=self.theme)
            for each in shown_analyses(self.overview)
        }

    def show(self, renderer: str = "") -> None:
        """Show the figures with a renderer, by default plotly's, which Jupyter, VS Code and Colab set."""
        for figure in self.figures.values():
            show(figure, renderer)

    def __str__(self) -> str:
        """Return the verdict and the findings."""
        return "\n".join(map(printable, (*self.overview.doubts, self.overview.verdict, *self.overview.findings)))

    def _ipython_display_(self) -> None:
        """Show everything; called by notebooks."""
        bundle = {"text/plain": str(self), "text/html": self._html()}
        import_module("IPython.display").display(bundle, raw=True)
        self.show()

    def _html(self) -> str:
        findings = "".join(f"<li>{escape(printable(finding))}</li>" for finding in self.overview.findings)
        doubts = "".join(f"<p>⚠ {escape(printable(doubt))}</p>" for doubt in self.overview.doubts)
        return f"{doubts}<p><b>{escape(printable(self.overview.verdict))}</b></p><ul>{findings}</ul>"


def dashboard_of(trace: Trace, theme: Theme) -> Dashboard:
    """Run all analyses of a trace and return their dashboard."""
    return Dashboard(overview(trace), theme)
