"""Matrices of coloured cells."""

from __future__ import annotations

import pytest

from holotrace.drawing.matrices import AROUND_PX, cells, column_axis, matrix_height, row_axis


def test_a_cell_lies_in_its_column_and_row() -> None:
    """The cell in row `b`, the second of two rows, extends from 0.5 to 1.5, minus a small gap at each end."""
    drawn = cells(["x"], ["b"], ["a", "b"], marker={"color": [1.0]}, hovers=["told"])

    assert (drawn.x, drawn.customdata) == (("x",), ("told",))
    assert drawn.base[0] == pytest.approx(0.54)
    assert drawn.base[0] + drawn.y[0] == pytest.approx(1.46)


def test_rows_are_named_at_their_numbers() -> None:
    """The first row is at the top; of 64 rows, every 4th is labelled, and the title says so."""
    few, many = row_axis(["a", "b"], "rank"), row_axis(list(map(str, range(64))), "rank")

    assert (few["tickvals"], few["ticktext"], few["range"]) == ([0, 1], ["a", "b"], [1.5, -0.5])
    assert (many["tickvals"][1], many["ticktext"][1]) == (4, "4")
    assert many["title"]["text"] == "rank (every 4th is named)"


def test_a_single_column_is_not_as_wide_as_the_figure() -> None:
    """A single column takes one eighth of the figure's width; nine columns fill the figure."""
    assert column_axis(["0"], "step")["range"] == [-0.5, 7.5]
    assert column_axis(list("012345678"), "step")["range"] == [-0.5, 8.5]


@pytest.mark.parametrize(("rows", "height"), [(1, 120), (8, 320), (512, 510)])
def test_the_height_follows_the_number_of_rows(rows: int, height: int) -> None:
    """Each row is 40 px high, but the height of all rows together is between 120 and 510 px."""
    assert matrix_height(rows) == AROUND_PX + height
