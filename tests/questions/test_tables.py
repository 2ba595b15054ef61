"""Tables of results are printed with units, headings and a limited number of rows."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.questions.tables import Cell, cell, heading, print_frame
from holotrace.units import percent_text


@pytest.mark.parametrize(
    ("column", "value", "printed"),
    [
        ("idle_ns", 1_234_567, Cell("1.23 ms", is_number=True)),
        ("mean_ns", 1_500.5, Cell("1.5 µs", is_number=True)),
        ("idle_fraction", 0.125, Cell("12.5 %", is_number=True)),
        ("call_count", 12_345, Cell("12,345", is_number=True)),
        ("mean_bytes_per_s", 12_345_678_901.5, Cell("12.3 GB/s", is_number=True)),
        ("bytes", 3 << 20, Cell("3 MiB", is_number=True)),
        ("mfu_fraction", 0.00031, Cell("0.03 %", is_number=True)),
        ("slowdown", 1.90424, Cell("1.9", is_number=True)),
        ("my_number", 1.90424, Cell("1.90424", is_number=True)),
        ("idle_fraction", None, Cell(percent_text(None), is_number=True)),
        ("device", -1, Cell("-", is_number=True)),
        ("device", 1, Cell("1", is_number=True)),
        ("state", "memory", Cell("memory", is_number=False)),
        ("name", "void f<int>(int)", Cell("f<int>", is_number=False, whole="void f<int>(int)")),
        ("event", "void f<int>(int)", Cell("f<int>", is_number=False, whole="void f<int>(int)")),
        ("event", "aten::mm", Cell("aten::mm", is_number=False)),
        ("event", "torch::autograd::CppNode<Lookup>", Cell("torch::autograd::CppNode<Lookup>", is_number=False)),
        ("name", "\x1b[31mred", Cell(r"\x1b[31mred", is_number=False)),
    ],
)
def test_a_cell_is_printed_with_the_unit_of_its_column(column: str, value: float | str | None, printed: Cell) -> None:
    """Durations, fractions and bytes get units, null becomes a dash, and names are shortened and made printable."""
    assert cell(column, value) == printed


def test_a_column_without_a_heading_uses_its_name() -> None:
    """`overlap_fraction` has the heading `hidden share`; the undeclared `some_thing` becomes `some thing`."""
    assert (heading("overlap_fraction"), heading("some_thing")) == ("hidden share", "some thing")


def test_a_long_table_keeps_the_rows_with_the_largest_values_in_order() -> None:
    """Of four rows, the two with the largest values are kept in their original order, and two are counted as hidden."""
    frame = pl.DataFrame({"rank": [0, 1, 2, 3], "idle_ns": [5, None, 9, 7]})
    table = print_frame("Idle", frame, 2, telling="idle_ns")
    assert [row[0].text for row in table.rows] == ["2", "3"]
    assert (table.left_out, table.chosen_by) == (2, "idle for")


def test_a_short_table_is_complete() -> None:
    """A table of one row with a limit of one is complete, and no row is counted as hidden."""
    table = print_frame("Idle", pl.DataFrame({"rank": [0]}), 1, telling="rank")
    assert (len(table.rows), table.left_out, table.chosen_by) == (1, 0, "")


def test_kernels_that_look_alike_have_different_names_in_a_table() -> None:
    """Two kernels with long, similar names get different short names; the cells keep the full names."""
    names = [f"void at::f<{'x' * 200}, {number}>(int)" for number in range(2)]

    printed = print_frame("", pl.DataFrame({"name": names, "total_ns": [2, 1]}), 9, telling="total_ns")

    assert [row[0] for row in printed.rows] == [
        Cell("f<…0…>", is_number=False, whole=names[0]),
        Cell("f<…1…>", is_number=False, whole=names[1]),
    ]
