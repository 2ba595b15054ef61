"""What the commands that compare two traces have in common: opening both sides, and showing what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions
from holotrace.cli.figure_files import write_figure
from holotrace.cli.job import Execution, ReadingOptions
from holotrace.cli.options import NoCache, without_secret
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from holotrace.execution.executor import Executor
from holotrace.figures import figure_of
from holotrace.question import Result
from holotrace.store.trace import Trace
from holotrace.tables import View, print_view

Control = Annotated[
    str,
    typer.Argument(
        metavar="CONTROL", parser=without_secret, help="The trace to compare with: a file, folder or pattern."
    ),
]
Test = Annotated[
    str, typer.Argument(metavar="TEST", parser=without_secret, help="The trace in question: a file, folder or pattern.")
]
ControlRanks = Annotated[str | None, typer.Option("--control-ranks", metavar="0-7,9", help="Only these of control.")]
TestRanks = Annotated[str | None, typer.Option("--test-ranks", metavar="0-7,9", help="Only these of test.")]


@dataclass(frozen=True)
class SidesOptions:
    """The two traces to compare, and where the work on them is done."""

    control: Control
    test: Test
    control_ranks: ControlRanks = None
    test_ranks: TestRanks = None
    no_cache: NoCache = False
    execution: Execution = field(default_factory=Execution)

    @contextmanager
    def opened(self) -> Iterator[tuple[Trace, Trace, Executor]]:
        """Open both, and give the executor for the work on them."""
        control = ReadingOptions([self.control], self.control_ranks, self.no_cache)
        test = ReadingOptions([self.test], self.test_ranks, self.no_cache)
        with self.execution.opened(control, test) as ((first, second), executor):
            yield first, second, executor


@dataclass(frozen=True)
class Comparison:
    """How a comparison is shown: its name, the question it answers, its tables, and how many of their rows."""

    name: str
    question: str
    views: tuple[View, ...]
    most_rows: int

    def show(self, result: Result, shown: ResultOptions) -> None:
        """Write the figure, if asked for, then print the tables or JSON."""
        if shown.figure is not None:
            write_figure(figure_of(self.name, result), shown.figure)
        if shown.as_json:
            print_json({"comparison": self.name, **tables_of(result), "findings": result.findings})
        else:
            self._print(result)

    def _print(self, result: Result) -> None:
        to = console()
        print_line(to, self.question, "bold cyan")
        print_findings(to, result.findings)
        for view in self.views:
            print_table(to, print_view(view, result, self.most_rows))
