"""Tests of reading tables of operations from files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from holotrace.enrich.job_operations.reading import read_operations
from holotrace.errors import InvalidOperationsError, TraceNotFoundError

TABLE = pl.DataFrame({"rank": [1, 0], "kind": ["gc", "optimizer"], "start_ns": [3, 1], "duration_ns": [4, 2]})


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "ndjson"])
def test_every_format_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    """Parquet, CSV, Arrow and line-delimited JSON files with the same rows give the same table."""
    path = tmp_path / f"job.{ending}"
    write = {"arrow": "write_ipc"}.get(ending, f"write_{ending}")
    getattr(TABLE, write)(path)

    assert read_operations(path).select("rank", "kind", "start_ns", "duration_ns").rows() == [
        (0, "optimizer", 1, 2),
        (1, "gc", 3, 4),
    ]


def test_a_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(TraceNotFoundError, match=r"nothing\.parquet"):
        read_operations(tmp_path / "nothing.parquet")


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    """A trace, a text file named `.parquet`, and a table with other columns raise errors that name the file."""
    (tmp_path / "trace.json").write_text("{}")
    (tmp_path / "text.parquet").write_text("no table")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")

    for name, reason in (
        ("trace.json", "its name does not end in .parquet"),
        ("text.parquet", "cannot be read as parquet"),
        ("other.csv", r"lacks kind, rank \(or dp_rank and stage\), start_ns, duration_ns"),
    ):
        with pytest.raises(InvalidOperationsError, match=rf"{name}.*{reason}"):
            read_operations(tmp_path / name)
