"""The command of a question: opens the traces, computes, prints tables or JSON, and writes the figure if requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from holotrace.cli.figure_files import expect_a_figure_file, write_figure
from holotrace.cli.job import JobOptions, SidesOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsCsv, AsJson, Figure, Force, MostRows, SortedBy
from holotrace.cli.output import console, print_csv, print_findings, print_json, print_line, print_table
from holotrace.errors import InvalidOptionError
from holotrace.figures import figure_of
from holotrace.questions.question import Analysis, Result
from holotrace.questions.result import tables_of
from holotrace.questions.tables import print_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holotrace.questions.tables import View


@dataclass(frozen=True)
class ResultOptions:
    """The options for printing a result and for writing its figure."""

    as_json: AsJson = False
    as_csv: AsCsv = False
    rows: MostRows = None
    sort: SortedBy = None
    figure: Figure = None
    force: Force = False

    def check(self) -> None:
        """Raise InvalidOptionError, before any work, if the figure cannot be written or two formats were requested."""
        if self.as_json and self.as_csv:
            message = "--json and --csv: choose one"
            raise InvalidOptionError(message)
        if self.figure is not None:
            expect_a_figure_file(self.figure, overwrite=self.force)


def analysis_command(question: Analysis) -> Callable[..., None]:
    """Return the command of a question about one trace."""

    def command(job: JobOptions, shown: ResultOptions, **settings: object) -> None:
        shown.check()
        with opened_job(job) as (trace, executor):
            answer = question.plan(**settings).answer(trace, executor)
        show(question, answer.result, shown, {"analysis": question.name, "ranks": list(answer.trace.ranks)})

    return with_option_groups(command, question.options)


def comparison_command(question: Analysis) -> Callable[..., None]:
    """Return the command of a question about two traces."""

    def command(sides: SidesOptions, shown: ResultOptions, **settings: object) -> None:
        shown.check()
        with sides.opened() as (control, test, executor):
            result = question.compute(control, test, executor=executor, **settings)
        show(question, result, shown, {"comparison": question.name})

    return with_option_groups(command, question.options)


def show(  # noqa: PLR0913 -- what to show, and how
    question: Analysis,
    result: Result,
    shown: ResultOptions,
    about: Mapping[str, object],
    further: Mapping[str, object] | None = None,
    *,
    views: Sequence[View] | None = None,
) -> None:
    """Write the figure if requested, then print the result as tables, as CSV or as a single JSON object.

    The JSON object contains the entries of `about`, all tables, the findings and the entries of `further`. CSV has only
    the first table. If neither JSON nor CSV is requested, the one-sentence answer is printed, then the tables of
    `views`, by default the views of the question.
    """
    if shown.figure is not None:
        write_figure(figure_of(question.name, result), shown.figure)
    if shown.as_json:
        print_json({**about, **tables_of(result), "findings": result.findings, **(further or {})})
    else:
        tables = chosen_tables(question.views if views is None else views, result, shown)
        if shown.as_csv:
            print_csv(tables[0].frame)
        else:
            _print(question, result, tables, shown.rows or question.most_rows)


class ShownTable(NamedTuple):
    """A table to print; if it is too long, only the rows with the largest values in the column `telling` are kept."""

    caption: str
    frame: pl.DataFrame
    telling: str


def chosen_tables(views: Sequence[View], result: object, shown: ResultOptions) -> list[ShownTable]:
    """Return the tables of a result, sorted as requested.

    Raises:
        InvalidOptionError: no table has the column to sort by.
    """
    tables = [ShownTable(view.caption, view.table(result), view.telling) for view in views]
    if shown.sort is None:
        return tables
    columns = list(dict.fromkeys(column for table in tables for column in table.frame.columns))
    if shown.sort not in columns:
        raise InvalidOptionError.unknown([shown.sort], columns, what="column")
    return [_sorted(table, shown.sort) for table in tables]


def _sorted(table: ShownTable, column: str) -> ShownTable:
    if column not in table.frame.columns:
        return table
    is_text = table.frame.schema[column] == pl.String
    frame = table.frame.sort(column, descending=not is_text, nulls_last=True, maintain_order=True)
    return ShownTable(table.caption, frame, table.telling if is_text else column)


def _print(question: Analysis, result: Result, tables: Sequence[ShownTable], most_rows: int) -> None:
    """Print the answer first and caveats last."""
    to = console()
    print_line(to, question.question, "bold cyan")
    print_line(to, result.answer, "bold")
    for table in tables:
        if table.frame.is_empty():
            print_line(to, f"{table.caption}: none", "dim")
            continue
        print_table(to, print_frame(table.caption, table.frame, most_rows, telling=table.telling))
    print_findings(to, [finding for finding in result.findings if finding != result.answer])
