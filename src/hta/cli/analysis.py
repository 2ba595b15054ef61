"""What the command of every analysis does: compute, then print tables or JSON, and write the figure if asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hta.catalogue import Analysis, Result, analysis
from hta.cli.job import JobOptions, opened_job
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers
from hta.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from hta.export.new_file import expect_writable
from hta.report.atomic import write_atomically
from hta.tables import print_view

MOST_ROWS = 50
"""Rows of a table in the terminal."""


def run_analysis(
    name: str, options: JobOptions, *, as_json: bool, figure: Path | None, force: bool, **settings: object
) -> None:
    """Run the analysis called `name` with its own settings; `force` says that the figure may replace a file."""
    if figure is not None:
        expect_writable(figure, overwrite=force)
    chosen = analysis(name)
    with opened_job(options) as (opened, executor):
        trace = opened.readable(executor)
        result = chosen.compute(trace, executor=executor, **settings)
    if figure is not None:
        write_figure(chosen, result, figure)
    print_result(chosen, list(trace.ranks), result, as_json=as_json)


def plain_command(entry: Analysis) -> Callable[..., None]:
    """Return the command of an analysis that has no options of its own."""

    def command(  # noqa: PLR0913 -- one argument an option
        sources: Sources,
        *,
        as_json: AsJson = False,
        figure: Figure = None,
        force: Force = False,
        ranks: Ranks = None,
        workers: Workers = None,
        no_cache: NoCache = False,
    ) -> None:
        options = JobOptions(sources, ranks, workers, no_cache)
        run_analysis(entry.name, options, as_json=as_json, figure=figure, force=force)

    command.__name__, command.__doc__ = entry.name, entry.question
    return command


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
