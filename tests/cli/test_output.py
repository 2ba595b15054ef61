"""Tables fit the terminal, and JSON is valid."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from holotrace.cli.output import print_findings, print_json, print_line, print_table
from holotrace.questions.tables import Cell, PrintedTable

NAME = "a_kernel_with_a_name_of_fifty_characters_or_more_00"


def table(columns: int = 6) -> PrintedTable:
    """Return a table with a long name and some numbers."""
    numbers = tuple(Cell("123.4 ms", is_number=True) for _ in range(columns - 1))
    row = (Cell(NAME, is_number=False), *numbers)
    return PrintedTable("Kernels", ("kernel", *(f"n{index}" for index in range(1, columns))), (row, row))


def printed(shown: PrintedTable, width: int) -> list[str]:
    """Return the lines of a table printed on a terminal of the given width."""
    stream = io.StringIO()
    print_table(Console(file=stream, width=width), shown)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_table_fits_the_terminal(width) -> None:
    """No line of a table is wider than the terminal, and numbers are never cut."""
    lines = printed(table(), width)
    assert max(map(len, lines)) <= width
    assert not any("123.…" in line for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    """A table on a terminal of 200 characters shows the complete name and all columns."""
    lines = printed(table(), 200)
    assert NAME in lines[3]
    assert lines[3].count("123.4 ms") == 5


def test_long_names_are_cut_before_numbers() -> None:
    """On a terminal of 90 characters, a table shortens the long name and keeps all numbers."""
    lines = printed(table(), 90)
    assert "…" in lines[3]
    assert lines[3].count("123.4 ms") == 5


def test_columns_without_room_are_named() -> None:
    """On a narrow terminal, a line below the table lists the columns that do not fit."""
    assert printed(table(), 50)[-1] == "no room for: n3, n4, n5"


def test_left_out_rows_are_counted() -> None:
    """The last line of a shortened table says which rows are shown and how to print all."""
    shown = PrintedTable("Kernels", ("n",), ((Cell("1", is_number=True),),), left_out=3, chosen_by="n")
    assert printed(shown, 80)[-1] == "the 1 of 4 rows with the largest “n”; --json prints all"


def test_an_empty_table_is_printed() -> None:
    """A table without rows shows its headings."""
    assert any("kernel" in line for line in printed(PrintedTable("Kernels", ("kernel",), ()), 80))


def test_lines_are_text_and_not_markup() -> None:
    """Square brackets in a finding are not rich markup."""
    stream = io.StringIO()
    print_line(Console(file=stream, width=80), "leave the rank out with ranks=[1] [bold]x[/bold]")
    assert stream.getvalue() == "leave the rank out with ranks=[1] [bold]x[/bold]\n"


def test_many_findings_are_counted() -> None:
    """The findings of a job with thousands of ranks do not hide the verdict."""
    stream = io.StringIO()
    print_findings(Console(file=stream, width=80), [f"rank {rank} is silent" for rank in range(100)])
    lines = stream.getvalue().splitlines()
    assert (len(lines), lines[0], lines[-1]) == (9, "· rank 0 is silent", "· and 92 more; --json prints all")


def test_json_is_valid_everywhere(capsys) -> None:
    """NaN and infinity become null, at any depth."""
    print_json({"a": [float("nan"), {"b": float("inf")}], "c": ("x", 1.5)})
    assert json.loads(capsys.readouterr().out) == {"a": [None, {"b": None}], "c": ["x", 1.5]}
