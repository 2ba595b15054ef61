"""What the command of every analysis does: compute, then print tables or JSON, and write the figure if asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hta.catalogue import Analysis, Result, analysis
from hta.cli.job import JobOptions, opened_job
from hta.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from hta.report.atomic import write_atomically
from hta.tables import print_view

MOST_ROWS = 50
"""Rows of a table in the terminal."""


def run_analysis(name: str, options: JobOptions, *, as_json: bool, figure: Path | None, **settings: object) -> None:
    """Run the analysis called `name` with its own settings."""
    chosen = analysis(name)
    with opened_job(options) as (opened, executor):
        trace = opened.readable(executor)
        result = chosen.compute(trace, executor=executor, **settings)
    if figure is not None:
        write_figure(chosen, result, figure)
    print_result(chosen, list(trace.ranks), result, as_json=as_json)


def print_result(
    chosen: Analysis, ranks: list[int], result: Result, *, as_json: bool, further: Mapping[str, object] | None = None
) -> None:
    """Print the tables of a result, or all of it as one JSON object with `further` keys."""
    if as_json:
        content = {"analysis": chosen.name, "ranks": ranks, **tables_of(result), "findings": result.findings}
        print_json(content | dict(further or {}))
        return
    to = console()
    print_line(to, chosen.question, "bold cyan")
    print_findings(to, result.findings)
    for view in chosen.views:
        print_table(to, print_view(view, result, MOST_ROWS))


def write_figure(chosen: Analysis, result: Result, path: Path) -> None:
    """Write the figure of a result as a page that works offline."""
    page = chosen.plot(result).to_html(include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
    write_atomically(path, page)
