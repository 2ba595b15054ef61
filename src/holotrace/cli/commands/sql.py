"""`holotrace sql`: the result of a query, as a table or a file."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from decimal import Decimal
from enum import Enum
from typing import IO, Annotated

import polars as pl
import typer
from polars import selectors

from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson, Force, RawText, Target
from holotrace.cli.output import console, print_json_text, print_line, print_table
from holotrace.cli.stdout import print_text
from holotrace.errors import InvalidOptionError
from holotrace.export.csv_text import json_text, write_csv
from holotrace.export.new_file import expect_writable, new_file
from holotrace.locations import Location, located
from holotrace.questions.tables import Cell, PrintedTable
from holotrace.sql_queries.query import DEFAULT_TIMEOUT_S, named_views
from holotrace.sql_queries.query import sql as run_query
from holotrace.sql_queries.views import VIEWS
from holotrace.units import counted
from holotrace.visible_text import visible

_MOST_ROWS = 100
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_PREFIXES = ("", "k", "m", "g", "t")


class ResultFormat(str, Enum):
    """The values of `--format`."""

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
    typer.Option(
        "--format", help="Output format; by default a table or, with --output, the format that the suffix names."
    ),
]
Output = Annotated[
    Target | None,
    typer.Option("--output", "-o", parser=located, metavar="FILE", help="Write the rows to this path or URL."),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0, metavar="SECONDS", help="Stop the query after this many seconds; 0 for no limit."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="4GiB",
        help="Stop the query if it needs more memory than this; by default half of the free memory.",
    ),
]


@with_option_groups
def sql(  # noqa: PLR0913 -- one argument per option
    job: JobOptions,
    query: Query,
    *,
    result_format: Format = None,
    output: Output = None,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    memory_limit: MemoryLimit = None,
    raw_text: RawText = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Run the query, and print or write its rows."""
    chosen = _format(_asked(result_format, as_json=as_json), output)
    if output is not None:
        expect_writable(output, overwrite=force)
    _expect_a_view(query)
    memory_bytes = None if memory_limit is None else parse_size(memory_limit)
    with opened_job(job) as (trace, executor):
        rows = run_query(trace, query, timeout_s=timeout or None, memory_limit_bytes=memory_bytes, executor=executor)
    if output is not None:
        with new_file(output, overwrite=force) as file:
            _write(rows, file, chosen, raw_text=raw_text)
    elif chosen is ResultFormat.table:
        _print(rows)
    else:
        text = io.BytesIO()
        _write(rows, text, chosen, raw_text=raw_text)
        _print_text(text.getvalue().decode().rstrip("\n"), chosen)


def _asked(result_format: ResultFormat | None, *, as_json: bool) -> ResultFormat | None:
    """Return the format that the options request; --json is short for --format json."""
    if as_json and result_format not in (None, ResultFormat.json):
        message = f"--json and --format {result_format.value}: choose one"
        raise InvalidOptionError(message)
    return ResultFormat.json if as_json else result_format


def parse_size(text: str) -> int:
    """Parse an amount of memory such as `500MB` or `4GiB`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        message = f"{text!r} is not an amount of memory; write it like 500MB or 4GiB"
        raise typer.BadParameter(message)
    number, prefix, binary = match.groups()
    return int(float(number) * (1_024 if binary else 1_000) ** _PREFIXES.index(prefix.lower()))


def _print_text(text: str, chosen: ResultFormat) -> None:
    """Print JSON or CSV; on a terminal, replace control characters in CSV."""
    if chosen is ResultFormat.json:
        print_json_text(text)
    else:
        print_text("\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text)


def _format(asked: ResultFormat | None, target: Location | None) -> ResultFormat:
    """Return the format of the output.

    Raises:
        InvalidOptionError: the options contradict each other, or do not determine the format.
    """
    if target is None:
        if asked in (ResultFormat.parquet, ResultFormat.arrow):
            message = f"--format {asked.value} is binary; name a file with --output"
            raise InvalidOptionError(message)
        return asked or ResultFormat.table
    ending = target.name.rpartition(".")[2].lower()
    written = {chosen.value: chosen for chosen in ResultFormat if chosen is not ResultFormat.table}
    known = written.get(ending)
    if asked is ResultFormat.table or not (asked or known):
        message = f"{target}: rows can be written as CSV, JSON, Parquet or Arrow; use one of these suffixes, or choose with --format"
        raise InvalidOptionError(message)
    if asked and known and asked is not known:
        message = f"{target} ends in .{known.value}, but --format is {asked.value}; make both the same"
        raise InvalidOptionError(message)
    return asked or written[ending]


def _expect_a_view(query: str) -> None:
    """Raise InvalidOptionError if `query` is not a query, usually because the arguments are in the wrong order."""
    if not any(named_views(query)) and "select" not in query.lower():
        message = f"{query!r} is not a query over {', '.join(VIEWS)}; put the traces first and the query last"
        raise InvalidOptionError(message)


def _print(rows: pl.DataFrame) -> None:
    """Print the first rows, without units."""
    to, shown = console(), rows.head(_MOST_ROWS)
    cells = tuple(tuple(map(_cell, row)) for row in shown.iter_rows())
    is_cut = len(rows) > len(shown)
    caption = f"the first {len(shown):,} of {len(rows):,} rows" if is_cut else counted(len(rows), "row")
    print_table(to, PrintedTable(caption, tuple(rows.columns), cells, 0, ""))
    if is_cut:
        print_line(to, "to get all rows, use --format or --output", "dim")


def _cell(value: object) -> Cell:
    if value is None:
        return Cell("", is_number=True)
    if isinstance(value, bytes):
        return Cell(value.hex(), is_number=False)
    if isinstance(value, list | dict):
        return Cell(json_text(value), is_number=False)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Cell(f"{value:g}" if isinstance(value, float) else str(value), is_number=is_number)


def _write(rows: pl.DataFrame, file: IO[bytes], chosen: ResultFormat, *, raw_text: bool) -> None:
    if chosen is ResultFormat.csv:
        write_csv(rows, file, escape_formulas=not raw_text)
    elif chosen is ResultFormat.json:
        _write_json(rows, file)
    elif chosen is ResultFormat.parquet:
        rows.write_parquet(file)
    else:
        rows.write_ipc(file)


def _write_json(rows: pl.DataFrame, file: IO[bytes]) -> None:
    """Write an array of objects, with decimals as floats, NaN and infinity as null, and bytes in hexadecimal."""
    plain = rows.with_columns(selectors.decimal().cast(pl.Float64), selectors.binary().bin.encode("hex"))
    if any(column_type.is_nested() for column_type in plain.schema.values()):
        file.write(json.dumps(_finite(plain.to_dicts()), default=_number_or_text, allow_nan=False).encode())
        return
    finite = selectors.float()
    file.write(plain.with_columns(pl.when(finite.is_finite()).then(finite)).write_json().encode())


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number_or_text(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else str(value)
