"""`Rows` sorts, searches and groups the rows of a table."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.catalogue import ANALYSES
from holotrace.web.parts.page import Table
from holotrace.web.tables.rows import (
    MOST_ROWS_AT_ONCE,
    Request,
    Rows,
    Shape,
    column_definitions,
    grouped,
    ordered_rows,
    shaped,
)
from jobs import MARKUP, built_gpu_job

KERNELS = pl.DataFrame(
    {
        "name": ["gemm", "relu", None, "GEMM_big", MARKUP],
        "kind": ["a", "b", "a", "a", "b"],
        "rank": [0, 0, 1, 1, 2],
        "total_ns": [5_000, None, 1_000, 12_345, 5_000],
        "mean_ns": [1.5, None, 2.5, 3.5, 4.5],
        "call_count": [1, 2, 3, 4, 5],
        "max_ns": [7, 8, None, 9, 1],
        "fraction": [0.5, 0.1, 0.1, 0.2, 0.1],
    }
)
ROWS = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from(["ab", "AB", "b", "c"])), max_size=30
)


def rows_of(frame: pl.DataFrame = KERNELS) -> Rows:
    """Return the `Rows` of a table page that shows this data frame."""
    return Rows(Table("kernels", frame, "total_ns"))


@given(ROWS, st.sampled_from(["", "a", "B", "zz", "1"]), st.booleans(), st.booleans())
def test_rows_equal_those_of_a_plain_loop(pairs, search, down, is_sorted) -> None:
    """The rows equal those of a plain loop.

    Searching ignores case, sorting puts nulls last, and rows with equal values keep their order.
    """
    frame = pl.DataFrame(pairs, schema={"number": pl.Int64, "text": pl.String}, orient="row")
    order = ordered_rows(frame, search.lower(), (("number", down),) if is_sorted else ())
    matching = [
        row
        for row, (number, text) in enumerate(pairs)
        if not search or search.lower() in (text or "").lower() or search == str(number)
    ]
    known = [row for row in matching if pairs[row][0] is not None]
    unknown = [row for row in matching if pairs[row][0] is None]
    by_number = sorted(known, key=lambda row: -pairs[row][0] if down else pairs[row][0]) + unknown
    assert order.to_list() == (by_number if is_sorted else matching)


@given(st.integers(0, 40), st.integers(1, 40))
def test_the_blocks_make_up_the_table(first, size) -> None:
    """Each block of rows equals the corresponding rows of the table."""
    rows = rows_of(pl.DataFrame({"rank": range(30)}))
    whole, count = rows.answer(Request(0, 1_000))
    piece, again = rows.answer(Request(first, first + size))
    assert (piece, again, count) == (whole[first : first + size], 30, 30)


def test_a_cell_has_the_text_of_the_terminal_and_the_exact_value() -> None:
    """A cell shows 12.3 µs and stores 12,345 ns; a name with markup stays text, and null becomes a dash."""
    texts, _ = rows_of().answer(Request(sort=(("total_ns", True),)))
    assert (texts[0]["total_ns"], texts[0]["total_ns|exact"]) == ("12.3 µs", "12,345 ns")
    assert texts[2]["name"] == MARKUP
    assert texts[-1]["total_ns"] == "-"


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {"startRow": -5, "endRow": "x"},
        {"startRow": 10**30, "endRow": 10**40},
        {"startRow": float("nan")},
        {"startRow": True},
        {"sortModel": [{"colId": "no such column", "sort": "desc"}, {"colId": {"a": 1}}, 7]},
        {"sortModel": "name", "filterModel": {"name": {"filter": "x"}}},
    ],
)
def test_any_request_returns_rows(raw) -> None:
    """An invalid range, column or search raises no error; the answer has at most the five rows of the table."""
    texts, count = rows_of().answer(Request.from_grid(raw, {"not": "a text"}))
    assert count == 5
    assert len(texts) <= 5


def test_an_answer_has_a_limited_number_of_rows() -> None:
    """A request for ten million rows gets at most MOST_ROWS_AT_ONCE rows, so it does not block the server."""
    assert Request.from_grid({"startRow": 0, "endRow": 10**7}, "").last == MOST_ROWS_AT_ONCE


def test_a_search_is_plain_text() -> None:
    """A search text is not a regular expression: `(` or markup finds the names that contain it."""
    assert rows_of().chosen(MARKUP)["name"].to_list() == [MARKUP]
    assert rows_of().chosen("gem").height == 2
    assert rows_of().chosen("(").height == 1


def test_groups_have_sums_and_maxima() -> None:
    """Grouped rows have sums (of times and counts) and maxima, but no means: a mean of means would be wrong."""
    assert grouped(KERNELS, "kind").to_dicts() == [
        {"kind": "a", "total_ns": 18_345, "call_count": 8, "max_ns": 9, "row_count": 3},
        {"kind": "b", "total_ns": 5_000, "call_count": 7, "max_ns": 8, "row_count": 2},
    ]


def test_the_top_rows_have_the_largest_values_in_table_order() -> None:
    """Of the differences 1, -9 and 5, the top two are the largest by magnitude: -9 and 5, in table order."""
    frame = pl.DataFrame({"name": ["a", "b", "c"], "difference_ns": [1, -9, 5]})
    assert shaped(Table("", frame, "difference_ns"), Shape(top=2)).frame["name"].to_list() == ["b", "c"]
    assert shaped(Table("", frame, "difference_ns"), Shape(by="no such column")).frame.equals(frame)


def test_row_orders_are_cached_and_bounded() -> None:
    """Requests with the same sorting share one order of the rows; at most 16 orders are cached."""
    rows = rows_of()
    assert rows._order(Request(0, 1, sort=(("rank", True),))) is rows._order(Request(1, 2, sort=(("rank", True),)))
    for number in range(100):
        rows.chosen(str(number))
    assert len(rows._orders) == 16


def test_columns_are_as_wide_as_their_content() -> None:
    """A column is wide enough for its numbers and its heading, but a text of 500 characters is cut."""
    frame = pl.DataFrame({"operator": ["aten::mm", "x" * 500], "bytes": [5, 123_456_789], "exposed_ns": [1, 2]})
    widths = {column["field"]: column["minWidth"] for column in column_definitions(frame)}
    assert widths["bytes"] > 7 * len("118 MiB")
    assert widths["exposed_ns"] > 8 * len("exposed")
    assert widths["operator"] < 400


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_every_table_of_the_catalogue_is_served_grouped_and_cut(analysis) -> None:
    """Every table can be sorted and grouped by each of its columns and limited to its top rows."""
    result = analysis.compute(built_gpu_job())
    for view in analysis.views:
        table = Table(view.caption, view.table(result), view.telling)
        for name in table.frame.columns:
            assert Rows(table).answer(Request(sort=((name, True),)))[1] == table.frame.height
            shaped(table, Shape(by=name, top=10))
        assert [column["field"] for column in column_definitions(table.frame)] == table.frame.columns
