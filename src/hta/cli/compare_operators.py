"""`hta compare-operators`: where in the program two traces came to differ."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from hta.cli.diff import Control, ControlRanks, Test, TestRanks
from hta.cli.job import JobOptions, opened_job
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Workers
from hta.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from hta.comparisons.compare_operators import OperatorComparison
from hta.comparisons.compare_operators import compare_operators as compare
from hta.export.new_file import expect_writable
from hta.report.atomic import write_atomically
from hta.tables import OPERATOR_COMPARISON_VIEWS, print_view

MOST_ROWS = 60
_QUESTION = "Where did control and test come to differ?"

By = Annotated[
    Literal["device", "host"] | None,
    typer.Option("--by", help="Compare time on devices, or on the host; by default what both traces have."),
]


def compare_operators(  # noqa: PLR0913 -- one argument an option
    control: Control,
    test: Test,
    *,
    control_ranks: ControlRanks = None,
    test_ranks: TestRanks = None,
    by: By = None,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Align the operators of two traces by phase, module and call path, with their kernels, and say what changed."""
    if figure is not None:
        expect_writable(figure, overwrite=force)
    with ExitStack() as stack:
        first, executor = stack.enter_context(opened_job(JobOptions([control], control_ranks, workers, no_cache)))
        second, _ = stack.enter_context(opened_job(JobOptions([test], test_ranks, None, no_cache)))
        result = compare(first, second, by=by, compat=compat, executor=executor)
    if figure is not None:
        _write_figure(result, figure)
    _print(result, as_json=as_json)


def _write_figure(result: OperatorComparison, path: Path) -> None:
    from hta.figures import plot_compare_operators  # noqa: PLC0415 -- loads plotly

    page = plot_compare_operators(result).to_html(
        include_plotlyjs=True, config={"displaylogo": False, "responsive": True}
    )
    write_atomically(path, page)


def _print(result: OperatorComparison, *, as_json: bool) -> None:
    if as_json:
        print_json({"comparison": "compare_operators", **tables_of(result), "findings": result.findings})
        return
    to = console()
    print_line(to, _QUESTION, "bold cyan")
    print_findings(to, result.findings)
    for view in OPERATOR_COMPARISON_VIEWS:
        print_table(to, print_view(view, result, MOST_ROWS))
