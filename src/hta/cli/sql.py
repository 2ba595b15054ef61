"""`hta sql`: a question in SQL."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import IO, Annotated

import polars as pl
import typer
from polars import selectors

from hta.cli.job import JobOptions, opened_job
from hta.cli.option_groups import with_option_groups
from hta.cli.options import Force, Target
from hta.cli.output import console, print_line, print_table
from hta.errors import InvalidOptionError
from hta.export.new_file import expect_writable, new_file
from hta.figures.names import printable
from hta.locations import Location, located
from hta.sql.query import named_views
from hta.sql.views import VIEWS
from hta.tables import Cell, PrintedTable

_MOST_ROWS = 100


class ResultFormat(str, Enum):
    """What `--format` takes."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    arrow = "arrow"


Query = Annotated[
    str,
    typer.Argument(metavar="QUERY", help=f"One SELECT over the views {', '.join(VIEWS)}, and stored.<table>."),
]
Format = Annotated[
    ResultFormat | None,
    typer.Option("--format", help="By default a table or, with --output, what the ending of its name says."),
]
Output = Annotated[
    Target | None,
    typer.Option("--output", "-o", parser=located, metavar="FILE", help="Write the rows there, a path or a URL."),
]


@with_option_groups
def sql(
    job: JobOptions,
    query: Query,
    *,
    result_format: Format = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Answer a question in SQL about a trace or a store; the documentation lists the views and their columns."""
    chosen = _format(result_format, output)
    if output is not None:
        expect_writable(output, overwrite=force)
    _expect_a_view(query)
    with opened_job(job) as (trace, executor):
        rows = trace.sql(query, executor=executor)
    if output is not None:
        with new_file(output, overwrite=force) as file:
            _WRITE[chosen](rows, file)
    elif chosen is ResultFormat.table:
        _print(rows)
    else:
        text = io.BytesIO()
        _WRITE[chosen](rows, text)
        typer.echo(text.getvalue().decode().rstrip("\n"))


def _format(asked: ResultFormat | None, target: Location | None) -> ResultFormat:
    """Return the format that is meant.

    Raises:
        InvalidOptionError: the options do not tell it, or contradict each other.
    """
    if target is None:
        if asked in (ResultFormat.parquet, ResultFormat.arrow):
            message = f"--format {asked.value} is no text; name a file with --output"
            raise InvalidOptionError(message)
        return asked or ResultFormat.table
    ending = target.name.rpartition(".")[2].lower()
    known = [each for each in _WRITE if each.value == ending]
    if asked is ResultFormat.table or not (asked or known):
        message = f"{target} may be .csv, .json, .parquet or .arrow; or name one of these with --format"
        raise InvalidOptionError(message)
    return asked or known[0]


def _expect_a_view(query: str) -> None:
    """Tell whoever mistakes the order of the arguments."""
    if not any(named_views(query)) and "select" not in query.lower():
        message = f"{query!r} is no query over {', '.join(VIEWS)}; name the trace first and the query last"
        raise InvalidOptionError(message)


def _print(rows: pl.DataFrame) -> None:
    """Print the first rows as they are, numbers without units."""
    to, shown = console(), rows.head(_MOST_ROWS)
    cells = tuple(tuple(map(_cell, row)) for row in shown.iter_rows())
    more = f" of {len(rows):,}, the first {len(shown):,}" if len(rows) > len(shown) else ""
    print_table(to, PrintedTable(f"{len(shown):,} rows{more}", tuple(map(printable, rows.columns)), cells, 0, ""))
    if more:
        print_line(to, "--format and --output give all of them", "dim")


def _cell(value: object) -> Cell:
    if value is None:
        return Cell("", is_number=True)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Cell(f"{value:g}" if isinstance(value, float) else printable(str(value)), is_number=is_number)


def _write_json(rows: pl.DataFrame, file: IO[bytes]) -> None:
    """Write an array of objects; decimals as other numbers, and those that JSON does not know as null."""
    plain = rows.with_columns(selectors.decimal().cast(pl.Float64))
    finite = selectors.float()
    file.write(plain.with_columns(pl.when(finite.is_finite()).then(finite)).write_json().encode())


_WRITE: dict[ResultFormat, Callable[[pl.DataFrame, IO[bytes]], object]] = {
    ResultFormat.csv: lambda rows, file: rows.write_csv(file),
    ResultFormat.json: _write_json,
    ResultFormat.parquet: lambda rows, file: rows.write_parquet(file),
    ResultFormat.arrow: lambda rows, file: rows.write_ipc(file),
}
