"""What the command of every analysis does: compute, then print tables or JSON, and write the figure if asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holotrace.catalogue import analysis
from holotrace.cli.figure_files import expect_a_figure_file, write_figure
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson, CompatMode, Figure, Force
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from holotrace.figures import figure_of
from holotrace.question import Analysis, Result
from holotrace.tables import print_view

MOST_ROWS = 50
"""Rows of a table in the terminal."""


@dataclass(frozen=True)
class ResultOptions:
    """How a result is shown, and where else it goes."""

    as_json: AsJson = False
    figure: Figure = None
    force: Force = False

    def check(self) -> None:
        """Raise InvalidOptionError, before any work, where the figure could not be written."""
        if self.figure is not None:
            expect_a_figure_file(self.figure, overwrite=self.force)


def run_analysis(name: str, job: JobOptions, shown: ResultOptions, **settings: object) -> None:
    """Run the analysis called `name` with its own settings, and show the result."""
    shown.check()
    chosen = analysis(name)
    with opened_job(job) as (trace, executor):
        result = chosen.compute(trace, executor=executor, **settings)
    if shown.figure is not None:
        write_figure(figure_of(chosen.name, result), shown.figure)
    print_result(chosen, list(trace.ranks), result, as_json=shown.as_json)


def plain_command(entry: Analysis) -> Callable[..., None]:
    """Return the command of an analysis that has no options of its own, or the mode of the TensorBoard plugin alone."""

    def command(job: JobOptions, shown: ResultOptions) -> None:
        run_analysis(entry.name, job, shown)

    def command_with_mode(job: JobOptions, shown: ResultOptions, *, compat: CompatMode = None) -> None:
        run_analysis(entry.name, job, shown, compat=compat)

    chosen = command_with_mode if "compat" in inspect.signature(entry.compute).parameters else command
    chosen.__name__, chosen.__doc__ = entry.name, entry.question
    return with_option_groups(chosen)


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
