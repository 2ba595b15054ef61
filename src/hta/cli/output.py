"""What the commands print: tables that fit the terminal, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from hta.catalogue import Result
from hta.figures.names import printable
from hta.tables import PrintedTable

WIDTH_OF_A_PIPE = 120
MOST_FINDINGS = 8
_NARROWEST_TEXT = 24
_FEWEST_COLUMNS = 2
_BETWEEN = 3


def console() -> Console:
    """Return the console on stdout; where that is no terminal, lines are `WIDTH_OF_A_PIPE` long."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=WIDTH_OF_A_PIPE)


def print_line(to: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped at the width of the terminal; markup in it is text."""
    to.print(Text(printable(text), style=style))


def print_findings(to: Console, findings: Sequence[str]) -> None:
    """Print what was noticed, one finding a line; of many, the first."""
    for finding in findings[:MOST_FINDINGS]:
        print_line(to, f"· {finding}", "yellow")
    if len(findings) > MOST_FINDINGS:
        print_line(to, f"· and {len(findings) - MOST_FINDINGS:,} more; --json prints all", "yellow")


def print_table(to: Console, table: PrintedTable) -> None:
    """Print a table; columns that a narrow terminal has no room for are left out from the right, and named."""
    widths = _fitting_widths(table, to.width)
    to.print(Text(table.caption, style="dim"))
    to.print(_rich_table(table, widths))
    for note in _notes(table, len(widths)):
        print_line(to, note, "dim")


def print_json(value: dict[str, Any]) -> None:
    """Print JSON on stdout: valid everywhere, so unknown and infinite numbers are null."""
    typer.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def tables_of(result: Result) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a result as rows, under their names."""
    return {name: value.to_dicts() for name, value in vars(result).items() if isinstance(value, pl.DataFrame)}


def _rich_table(table: PrintedTable, widths: list[int]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, width in enumerate(widths):
        justify: JustifyMethod = "right" if _is_number(table, index) else "left"
        shown.add_column(Text(table.headings[index]), justify=justify, no_wrap=True, width=width)
    for row in table.rows:
        shown.add_row(*(Text(cell.text, overflow="ellipsis") for cell in row[: len(widths)]))
    return shown


def _fitting_widths(table: PrintedTable, room: int) -> list[int]:
    """Return the width of each column that fits; where all do not, the widest text gives way first."""
    widths = [_width(table, index) for index in range(len(table.headings))]
    while _taken(widths) > room and len(widths) > _FEWEST_COLUMNS:
        widest = _widest_text(table, widths)
        missing = _taken(widths) - room
        if widest is None or widths[widest] - missing < _NARROWEST_TEXT:
            widths.pop()
        else:
            widths[widest] -= missing
    return widths


def _widest_text(table: PrintedTable, widths: list[int]) -> int | None:
    texts = [index for index in range(len(widths)) if not _is_number(table, index)]
    return max(texts, key=widths.__getitem__, default=None)


def _taken(widths: list[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _width(table: PrintedTable, index: int) -> int:
    return max(map(cell_len, [table.headings[index], *(row[index].text for row in table.rows)]))


def _is_number(table: PrintedTable, index: int) -> bool:
    return bool(table.rows) and all(row[index].is_number for row in table.rows)


def _notes(table: PrintedTable, count: int) -> list[str]:
    notes = []
    if table.left_out:
        shown, rows = len(table.rows), len(table.rows) + table.left_out
        notes.append(f"{shown} of {rows:,} rows, those with the largest “{table.chosen_by}”; --json prints all")
    if count < len(table.headings):
        notes.append(f"no room for: {', '.join(table.headings[count:])}")
    return notes


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
