"""Print tables, sentences and JSON.

Control characters in names are printed as escapes (`holotrace.visible_text`). On a terminal, tables are fitted to its
width. In a pipe or file, every row is one line with all columns and complete names, for `grep`; the variable COLUMNS
has no effect.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from holotrace.cli.stdout import UNLIMITED, print_text, writing_to_stdout
from holotrace.export.csv_text import write_csv
from holotrace.questions.tables import Cell, PrintedTable
from holotrace.visible_text import bounded, visible, visible_json

MOST_FINDINGS = 8
_NARROWEST_TEXT = 24
_FEWEST_COLUMNS = 2
_BETWEEN = 3
_WIDEST_PADDING = 80
"""In a pipe, cells are padded to at most this width; a longer cell shifts the rest of its row to the right."""


def console() -> Console:
    """Return the console on stdout; it wraps and cuts lines only on a terminal."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=UNLIMITED, force_jupyter=False)


def print_line(to: Console, text: str, style: str = "") -> None:
    """Print a sentence as plain text without markup, wrapped on a terminal."""
    with writing_to_stdout():
        to.print(Text(visible(text), style=style), soft_wrap=to.width >= UNLIMITED)


def print_findings(to: Console, findings: Sequence[str]) -> None:
    """Print the first few findings, one per line."""
    for finding in findings[:MOST_FINDINGS]:
        print_line(to, f"· {bounded(finding)}", "yellow")
    if len(findings) > MOST_FINDINGS:
        print_line(to, f"· and {len(findings) - MOST_FINDINGS:,} more; --json prints all", "yellow")


def print_table(to: Console, table: PrintedTable) -> None:
    """Print a table; if a terminal is too narrow, omit columns from the right and list them."""
    print_line(to, table.caption, "dim")
    shown = len(table.headings) if to.width >= UNLIMITED else _print_fitting(to, table)
    if to.width >= UNLIMITED:
        for line in _whole_lines(table):
            print_line(to, line)
    for note in _notes(table, shown):
        print_line(to, note, "dim")


def print_json(value: dict[str, Any]) -> None:
    """Print strict JSON, with null instead of NaN and infinity."""
    print_text(json.dumps(_plain(value), indent=2, allow_nan=False))


def print_csv(rows: pl.DataFrame) -> None:
    """Print rows as CSV; on a terminal, show control characters as escapes."""
    text = io.BytesIO()
    write_csv(rows, text)
    lines = text.getvalue().decode().rstrip("\n")
    print_text("\n".join(map(visible, lines.split("\n"))) if sys.stdout.isatty() else lines)


def print_json_text(text: str) -> None:
    """Print a string that is already JSON."""
    print_text(visible_json(text))


def _print_fitting(to: Console, table: PrintedTable) -> int:
    """Print as many columns as fit the terminal; return their count."""
    widths = _fitting_widths(table, to.width)
    with writing_to_stdout():
        to.print(_rich_table(table, widths))
    return len(widths)


def _rich_table(table: PrintedTable, widths: list[int]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, width in enumerate(widths):
        justify: JustifyMethod = "right" if _is_number(table, index) else "left"
        shown.add_column(Text(visible(table.headings[index])), justify=justify, no_wrap=True, width=width)
    for row in table.rows:
        shown.add_row(*(Text(visible(cell.text), overflow="ellipsis") for cell in row[: len(widths)]))
    return shown


def _whole_lines(table: PrintedTable) -> Iterator[str]:
    """Yield the lines of a table with all columns aligned and names complete."""
    rows = [[_whole(cell) for cell in row] for row in table.rows]
    headings = list(map(visible, table.headings))
    are_numbers = [_is_number(table, index) for index in range(len(headings))]
    widths = [min(_WIDEST_PADDING, max(map(cell_len, column))) for column in zip(headings, *rows, strict=True)]
    yield _aligned(headings, widths, are_numbers)
    yield (" " * _BETWEEN).join("─" * width for width in widths)
    for row in rows:
        yield _aligned(row, widths, are_numbers)


def _aligned(cells: Sequence[str], widths: Sequence[int], are_numbers: Sequence[bool]) -> str:
    padded = []
    for text, width, is_number in zip(cells, widths, are_numbers, strict=True):
        padding = " " * (width - cell_len(text))
        padded.append(padding + text if is_number else text + padding)
    return (" " * _BETWEEN).join(padded).rstrip()


def _whole(cell: Cell) -> str:
    return visible(bounded(cell.whole or cell.text))


def _fitting_widths(table: PrintedTable, room: int) -> list[int]:
    """Return the widths of the columns that fit.

    If the table is too wide, narrow the widest text column; if that is not enough, omit the last column.
    """
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
    return max(map(cell_len, map(visible, [table.headings[index], *(row[index].text for row in table.rows)])))


def _is_number(table: PrintedTable, index: int) -> bool:
    return bool(table.rows) and all(row[index].is_number for row in table.rows)


def _notes(table: PrintedTable, count: int) -> list[str]:
    notes = []
    if table.left_out:
        shown, rows = len(table.rows), len(table.rows) + table.left_out
        notes.append(f"the {shown} of {rows:,} rows with the largest “{table.chosen_by}”; --json prints all")
    if count < len(table.headings):
        notes.append(f"no room for: {', '.join(table.headings[count:])}")
    return notes


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
