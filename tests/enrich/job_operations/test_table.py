"""Tests of the table of operations: accepted columns, defaults and errors."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.job_operations.table import COLUMNS, operations_table
from holotrace.errors import InvalidOperationsError

ROW = {"rank": 0, "kind": "forward-compute", "start_ns": 5, "duration_ns": 10}


def _table(*rows: dict[str, object]) -> pl.DataFrame:
    return operations_table(pl.DataFrame(list(rows)), "job.parquet")


def test_missing_columns_get_their_defaults() -> None:
    """For a table with only the four required columns, step and stage are 0, and each rank is a replica."""
    table = _table({**ROW, "rank": 7}, {**ROW, "rank": 3})

    assert table.schema == COLUMNS
    assert table.select("rank", "dp_rank", "stage", "step", "microbatch", "chunk", "sequence", "instance").rows() == [
        (3, 0, 0, 0, None, 0, 0, None),
        (7, 1, 0, 0, None, 0, 0, None),
    ]


def test_rows_are_sorted_and_numbered_by_start() -> None:
    """Rows may be in any order; `sequence` numbers the operations of each step, rank and kind."""
    late, early, other = ({**ROW, "start_ns": start, "step": step} for start, step in ((9, 1), (2, 1), (0, 2)))

    assert _table(other, late, early).select("step", "start_ns", "sequence").rows() == [(1, 2, 0), (1, 9, 1), (2, 0, 0)]


def test_names_and_units_of_the_published_files_are_accepted() -> None:
    """Files published with the OSDI'25 paper have the columns `optype`, `start_ts` and `duration`.

    The times are in seconds, and the microbatch -1 means that there is none.
    """
    row = {
        "optype": "gc",
        "start_ts": 1.5,
        "duration": 0.25,
        "dp_rank": 1,
        "stage": 2,
        "mb_id": -1,
        "mc": -1,
        "gmc": -1,
    }

    [found] = _table(row).to_dicts()

    assert (found["start_ns"], found["duration_ns"], found["rank"]) == (1_500_000_000, 250_000_000, 5)
    assert (found["kind"], found["microbatch"], found["chunk"], found["global_chunk"]) == ("gc", None, 0, 2)


@pytest.mark.parametrize(("ending", "unit"), [("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)])
def test_times_come_in_any_unit(ending: str, unit: int) -> None:
    """The suffix of a column's name states the unit of the column."""
    [found] = _table({"rank": 0, "kind": "gc", f"start{ending}": 2, f"duration{ending}": 0.5}).to_dicts()

    assert (found["start_ns"], found["duration_ns"]) == (2 * unit, unit // 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"rank": 0, "start_ns": 0}], r"job.parquet lacks kind, duration_ns; its columns are rank, start_ns"),
        ([{**ROW, "rank": None}], "row 0 of job.parquet has no rank"),
        ([ROW, {**ROW, "kind": "forward-computing"}], "row 1 of job.parquet has the unknown kind 'forward-computing'"),
        ([ROW, {**ROW, "kind": None}], "row 1 of job.parquet has no kind"),
        ([{**ROW, "duration_ns": -1}], "row 0 of job.parquet has no start, or its duration is missing or negative"),
        ([{**ROW, "start_ns": float("nan")}], "row 0 of job.parquet has no start"),
        ([{**ROW, "start_ns": "soon"}], "column start_ns of job.parquet has the type String"),
        ([{**ROW, "rank": "first"}], "job.parquet has values of the wrong type"),
        ([{**ROW, "stage": 0}, {**ROW, "stage": 1}], "rank 0 of job.parquet has 2 different pairs"),
    ],
)
def test_a_wrong_table_is_one_error_that_says_what_and_where(rows: list[dict[str, object]], message: str) -> None:
    """The error names the file, gives the column or row, and says what to do."""
    with pytest.raises(InvalidOperationsError, match=message):
        _table(*rows)


def test_an_unknown_kind_is_answered_with_the_nearest_known_ones() -> None:
    """The message lists the known kinds, with the most similar kind first."""
    with pytest.raises(InvalidOperationsError, match=r"Known kinds are: forward-compute, ") as caught:
        _table({**ROW, "kind": "forward-compte"})
    assert "rename the kind or remove its rows" in str(caught.value)


def test_an_empty_table_is_an_error() -> None:
    """A table without rows raises an error, because there is nothing to replay."""
    with pytest.raises(InvalidOperationsError, match="has no rows"):
        operations_table(pl.DataFrame(schema=ROW.keys()))
