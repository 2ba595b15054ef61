"""What the command of every analysis does: compute, then print tables or JSON, and write the figure if asked."""

from __future__ import annotations

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
        _write_figure(chosen, result, figure)
    _print(chosen, list(trace.ranks), result, as_json=as_json)


def _print(chosen: Analysis, ranks: list[int], result: Result, *, as_json: bool) -> None:
    if as_json:
        print_json({"analysis": chosen.name, "ranks": ranks, **tables_of(result), "findings": result.findings})
        return
    to = console()
    print_line(to, chosen.question, "bold cyan")
    print_findings(to, result.findings)
    for view in chosen.views:
        print_table(to, print_view(view, result, MOST_ROWS))


def _write_figure(chosen: Analysis, result: Result, path: Path) -> None:
    page = chosen.plot(result).to_html(include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
    write_atomically(path, page)
