"""The verdict and all figures of a job, inline in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import import_module

from holotrace.drawing.names import printable
from holotrace.drawing.theme import Theme
from holotrace.figures import figure_of
from holotrace.store.trace import Trace
from holotrace.whole_job.summary import Summary, shown_analyses, summary
from hta.facade.imports.modules_later import go
from hta.facade.results.show import show


@dataclass(frozen=True)
class Dashboard:
    """A job's verdict and figures.

    A notebook displays the dashboard when it is the last expression of a cell; elsewhere, call `show()`.

    summary  the verdict, the findings and the results behind the figures
    theme    `light` or `dark`
    """

    summary: Summary
    theme: Theme = "light"

    @property
    def figures(self) -> dict[str, go.Figure]:
        """The figures by analysis name, for every analysis that succeeded."""
        results = self.summary.results
        return {
            analysis.name: figure_of(analysis.name, results[analysis.name], theme=self.theme)
            for analysis in shown_analyses(self.summary)
        }

    def show(self, renderer: str = "") -> None:
        """Show the figures with this plotly renderer; by default, plotly chooses one."""
        for figure in self.figures.values():
            show(figure, renderer)

    def __str__(self) -> str:
        """Return the verdict and the findings."""
        return "\n".join(map(printable, (*self.summary.doubts, self.summary.verdict, *self.summary.findings)))

    def _ipython_display_(self) -> None:
        """Show the verdict and all figures; notebooks call this method."""
        bundle = {"text/plain": str(self), "text/html": self._html()}
        import_module("IPython.display").display(bundle, raw=True)
        self.show()

    def _html(self) -> str:
        findings = "".join(f"<li>{escape(printable(finding))}</li>" for finding in self.summary.findings)
        doubts = "".join(f"<p>⚠ {escape(printable(doubt))}</p>" for doubt in self.summary.doubts)
        return f"{doubts}<p><b>{escape(printable(self.summary.verdict))}</b></p><ul>{findings}</ul>"


def dashboard_of(trace: Trace, theme: Theme) -> Dashboard:
    """Run all analyses of a trace and return their dashboard."""
    return Dashboard(summary(trace), theme)
