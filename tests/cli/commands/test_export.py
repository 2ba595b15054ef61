"""`holotrace export`: formats, folders and `--force`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from jobs import gpu_job


@pytest.fixture
def job(tmp_path) -> Path:
    """Write the small GPU job to a folder."""
    gpu_job().write(tmp_path / "job")
    return tmp_path / "job"


def run(*arguments: object) -> str:
    """Run `holotrace export`; return its stdout."""
    result = CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("to", "pattern"), [("perfetto", "*_with_counters.json*"), ("csv", "*/*.csv"), ("parquet", "*/*.parquet")]
)
def test_files_are_written_and_listed(job, tmp_path, to, pattern) -> None:
    """`export` creates the folder and lists each file that it writes."""
    output = run(job, "--to", to, "-o", tmp_path / "out")
    exported = list((tmp_path / "out").glob(pattern))
    assert len(exported) >= 2
    assert all(str(path) in output for path in exported)


def test_a_second_run_needs_force(job, tmp_path) -> None:
    """`export` replaces existing files only with `--force`."""
    arguments = (job, "--to", "perfetto", "-o", tmp_path / "out", "--ranks", "1")
    run(*arguments)
    with pytest.raises(InvalidOptionError, match="already exists"):
        run(*arguments)
    run(*arguments, "--force")


def test_the_folder_is_checked_before_anything_is_read(tmp_path) -> None:
    """`export` to a folder whose parent is missing fails before it opens the traces."""
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        run(tmp_path / "no_job", "--to", "csv", "-o", tmp_path / "missing" / "out")


def test_ranks_are_merged_into_one_file(job, tmp_path) -> None:
    """`--merge` writes one file with all ranks."""
    output = run(job, "--to", "perfetto", "--merge", "-o", tmp_path / "out")
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == "merged_ranks.json.gz"
    assert str(path) in output


def test_tables_are_not_merged(job, tmp_path) -> None:
    """`--merge` with a table format is refused before anything is written."""
    with pytest.raises(InvalidOptionError, match="use --to perfetto"):
        run(job, "--to", "csv", "--merge", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
