"""The base class of results, with a one-sentence answer, a plot, and a display in notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.units import counted
from holotrace.visible_text import html_table, html_text, visible

if TYPE_CHECKING:
    from holotrace.questions.tables import PrintedTable, View

MOST_ROWS = 10
_MOST_FINDINGS = 5
"""Maximum number of rows and of findings that a notebook or prompt shows."""


class Result(EqualByContent):
    """Base class of the questions' results; each result is a frozen dataclass of tables and `findings`.

    The class is defined in the folder of its question, next to the modules that define its answer, tables and figure.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.stragglers(small_job()).answer
    'The other ranks wait 400 µs for rank 1, which is late.'
    """

    findings: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The answer in one sentence; if the first table is empty, the first finding, which says why."""
        if self._main_table().is_empty():
            return next(iter(self.findings), "The trace has no data for this question.")
        sentence: str = self._beside("answer").answer(self)
        return sentence

    def plot(self, **options: object) -> Any:  # noqa: ANN401 -- a plotly figure; plotly is imported late
        """Return the result as a plotly figure; each kind of figure has its own options, such as `theme="dark"`.

        Raises:
            ImportError: plotly is not installed.
        """
        name = type(self).__module__.split(".")[-2]
        return getattr(self._beside("figure"), f"plot_{name}")(self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return all tables as lists of rows, and the other fields unchanged; times are in ns, shares from 0 to 1."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {**fields, **tables_of(self)}

    def __repr__(self) -> str:
        """Show the answer, the size of each table, and the caveats."""
        sizes = [f"{name}: {counted(len(value), 'row')}" for name, value in _tables(self)]
        return text_of(f"{type(self).__name__}: {self.answer}", sizes, self.findings)

    def _repr_html_(self) -> str:
        """Show the answer, the main table and the caveats in a notebook."""
        from holotrace.questions.tables import print_view  # noqa: PLC0415 -- needed only in notebooks

        return html_of(self.answer, print_view(self._main_view(), self, MOST_ROWS), self.findings)

    def _main_view(self) -> View:
        view: View = self._beside("tables").VIEWS[0]
        return view

    def _main_table(self) -> pl.DataFrame:
        return next(table for _, table in _tables(self))

    def _beside(self, part: str) -> ModuleType:
        """Import a module from the folder in which the result's class is defined."""
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.{part}")


def tables_of(result: object) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a result by name, as lists of rows."""
    return {name: table.to_dicts() for name, table in _tables(result)}


def _tables(result: object) -> Iterator[tuple[str, pl.DataFrame]]:
    return ((name, value) for name, value in vars(result).items() if isinstance(value, pl.DataFrame))


def text_of(sentence: str, contents: Sequence[str], findings: Sequence[str]) -> str:
    """Return the text that a Python prompt shows: the answer, what the result contains, and the first findings.

    >>> print(text_of("Modules: 3 ms is the forward pass.", ["per_module: 4 rows"], ["rank 1: no module calls"]))
    Modules: 3 ms is the forward pass.
      per_module: 4 rows
      finding: rank 1: no module calls
    """
    caveats = [f"finding: {finding}" for finding in findings[:_MOST_FINDINGS]]
    more = len(findings) - _MOST_FINDINGS
    rest = [f"… and {counted(more, 'more finding')} in .findings"] if more > 0 else []
    return "\n  ".join(visible(line) for line in (sentence, *contents, *caveats, *rest))


def html_of(sentence: str, table: PrintedTable, findings: Sequence[str]) -> str:
    """Return the HTML for a notebook: the answer, the main table and the first findings."""
    caveats = "".join(f"<li>{html_text(finding)}</li>" for finding in findings[:_MOST_FINDINGS])
    more = len(findings) - _MOST_FINDINGS
    rest = f"<li>… and {more:,} more in <code>.findings</code></li>" if more > 0 else ""
    return f"<p><b>{html_text(sentence)}</b></p>{_table_html(table)}<ul>{caveats}{rest}</ul>"


def _table_html(table: PrintedTable) -> str:
    rows = ([cell.text for cell in row] for row in table.rows)
    left_out = f"<p>{counted(table.left_out, 'row is', 'rows are')} not shown.</p>" if table.left_out else ""
    return html_table(table.headings, rows, table.caption) + left_out
