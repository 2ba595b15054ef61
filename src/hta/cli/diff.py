"""`hta diff`: what changed between two traces."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from hta.cli.job import JobOptions, opened_job
from hta.cli.options import AsJson, Figure, Force, NoCache, Workers, parse_ranks
from hta.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from hta.comparisons.compare_traces import TraceComparison, compare_traces
from hta.export.new_file import expect_writable
from hta.report.atomic import write_atomically
from hta.tables import COMPARISON_VIEWS, print_view

MOST_ROWS = 50
_QUESTION = "What changed from control to test?"

Control = Annotated[
    str, typer.Argument(metavar="CONTROL", help="The trace to compare with: a file, folder or pattern.")
]
Test = Annotated[str, typer.Argument(metavar="TEST", help="The trace in question: a file, folder or pattern.")]
ControlRanks = Annotated[str | None, typer.Option("--control-ranks", metavar="0-7,9", help="Only these of control.")]
TestRanks = Annotated[str | None, typer.Option("--test-ranks", metavar="0-7,9", help="Only these of test.")]
ControlSteps = Annotated[
    str | None, typer.Option("--control-steps", metavar="3-5", help="Only these steps of control.")
]
TestSteps = Annotated[str | None, typer.Option("--test-steps", metavar="3-5", help="Only these steps of test.")]
Device = Annotated[Literal["all", "cpu", "gpu"], typer.Option("--device", help="What to compare.")]


def diff(  # noqa: PLR0913 -- one argument an option
    control: Control,
    test: Test,
    *,
    control_ranks: ControlRanks = None,
    test_ranks: TestRanks = None,
    control_steps: ControlSteps = None,
    test_steps: TestSteps = None,
    device: Device = "all",
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Compare two traces by name: what is new, gone, more or less frequent, and longer or shorter."""
    if figure is not None:
        expect_writable(figure, overwrite=force)
    with ExitStack() as stack:
        first, executor = stack.enter_context(opened_job(JobOptions([control], control_ranks, workers, no_cache)))
        second, _ = stack.enter_context(opened_job(JobOptions([test], test_ranks, None, no_cache)))
        result = compare_traces(
            first,
            second,
            control_steps=_steps(control_steps),
            test_steps=_steps(test_steps),
            device=device,
            executor=executor,
        )
    if figure is not None:
        _write_figure(result, figure)
    _print(result, as_json=as_json)


def _steps(text: str | None) -> list[int] | None:
    """Read a list of steps, which is written like one of ranks."""
    return None if text is None else parse_ranks(text)


def _write_figure(result: TraceComparison, path: Path) -> None:
    from hta.figures import plot_compare_traces  # noqa: PLC0415 -- loads plotly

    page = plot_compare_traces(result).to_html(include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
    write_atomically(path, page)


def _print(result: TraceComparison, *, as_json: bool) -> None:
    if as_json:
        print_json({"comparison": "compare_traces", **tables_of(result), "findings": result.findings})
        return
    to = console()
    print_line(to, _QUESTION, "bold cyan")
    print_findings(to, result.findings)
    for view in COMPARISON_VIEWS:
        print_table(to, print_view(view, result, MOST_ROWS))
