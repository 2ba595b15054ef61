"""Jobs in each of the stores: read as from a disk, written to, and refused in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scripts.store_trials import failed, race
from typer.testing import CliRunner

import holotrace
from holotrace.cli.group import app
from holotrace.export.tables import export_tables
from holotrace.schema import TABLES
from holotrace.store.trace import Trace
from remote.stores import Store

pytestmark = [
    pytest.mark.stores,
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),  # what gcsfs and adlfs hand to aiohttp
]

_SERVER_OF = {"s3": "s3", "gcs": "gcs", "azure": "azure", "hdfs": "hdfs", "webhdfs": "hdfs"}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(of)) for name, of in _SERVER_OF.items()])
def store(request, monkeypatch) -> Store:
    """A store, and its user's environment."""
    found: Store = request.getfixturevalue(request.param)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def job_url(store, job_folder, request) -> str:
    """The job, in a folder of the store that is this test's alone."""
    folder = re.sub(r"\W+", "-", request.node.name)
    for path in job_folder.iterdir():
        store.put(f"{folder}/{path.name}", path.read_bytes())
    return f"{store.root}/{folder}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run([sys.executable, "-m", "holotrace", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def expect_same(remote: Trace, local: Trace) -> None:
    """Compare all that is known about every rank."""
    assert list(remote.ranks) == list(local.ranks)
    for rank, expected in local.ranks.items():
        found = remote.ranks[rank]
        assert found.header == expected.header
        assert found.health.findings == expected.health.findings
        for name in TABLES:
            assert_frame_equal(found.table(name), expected.table(name))


def test_a_folder_of_ranks_reads_as_from_a_disk(store, job_url, job_folder) -> None:
    """Plain and gzip, and the file beside them that is no trace."""
    remote, local = holotrace.open_trace(job_url, cache=False), holotrace.open_trace(job_folder, cache=False)
    expect_same(remote, local)
    assert [Path(each.path).name for each in remote.skipped] == [Path(each.path).name for each in local.skipped]
    assert all(each.source.startswith(store.root) for each in remote.ranks.values())


def test_a_file_is_kept_and_read_again_when_it_changes(store, job_folder, tmp_path) -> None:
    """The second opening takes the kept tables; a file of that name with other bytes is another file."""
    first, second = (path.read_bytes() for path in sorted(job_folder.glob("*.gz")))
    store.put("changing/trace.json.gz", first)
    events = [events_of(f"{store.root}/changing/trace.json.gz")]
    kept = files_in(tmp_path / "cache")
    events.append(events_of(f"{store.root}/changing/trace.json.gz"))
    assert kept
    assert files_in(tmp_path / "cache") == kept
    store.put("changing/trace.json.gz", second)
    events.append(events_of(f"{store.root}/changing/trace.json.gz"))
    assert events[0].equals(events[1])
    assert not events[0].equals(events[2])


def events_of(url: str) -> pl.DataFrame:
    """Read a trace of one rank, anew or from what is kept."""
    (rank_trace,) = holotrace.open_trace(url).ranks.values()
    return rank_trace.table("events")


def files_in(folder: Path) -> dict[Path, int]:
    """Return the files of a folder, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.arrow")}


def test_commands_read_and_write_there(store, job_url, job_folder, tmp_path) -> None:
    """`holotrace report` and `holotrace export` leave there what they leave on a disk."""
    reported = CliRunner().invoke(app, ["report", job_url, "-o", f"{store.root}/written/report.html", "--force"])
    exported = run("export", job_url, "--to", "csv", "-o", f"{store.root}/written/tables", "--force")
    assert (reported.exception, exported.stderr) == (None, "")
    assert store.get("written/report.html").endswith(b"</html>")
    export_tables(holotrace.open_trace(job_folder), tmp_path / "tables", "csv")
    tables = [path.relative_to(tmp_path) for path in (tmp_path / "tables").rglob("*.csv")]
    assert len(tables) > len(TABLES)
    assert [store.get(f"written/{path.as_posix()}") for path in tables] == [
        (tmp_path / path).read_bytes() for path in tables
    ]


def test_a_job_is_kept_there_as_a_store(job_url, job_folder) -> None:
    """Written there, read from there, and not written twice."""
    written = [holotrace.write_store(holotrace.open_trace(job_url), f"{job_url}/job.store") for _ in range(2)]
    assert [(len(each.written), len(each.unchanged)) for each in written] == [(3, 0), (0, 3)]
    expect_same(holotrace.open_trace(f"{job_url}/job.store"), holotrace.open_trace(job_folder))


def test_processes_write_a_store_at_once(store) -> None:
    """Each some of the ranks, as the tasks of a job array do: all of them are there afterwards."""
    seen = race(2, 3, address=f"{store.root}/race{{folder}}/job.store")
    assert (seen["written: True"], seen["store: whole"], failed(seen)) == (6, 2, False), seen


def test_processes_that_write_the_same_ranks_do_not_mix(store) -> None:
    """They are refused, or one of them wins."""
    seen = race(2, 2, same=True, address=f"{store.root}/race-same{{folder}}/job.store")
    assert seen["written: True"] + seen["written: refused"] == 4, seen
    assert not failed(seen), seen


def test_somebody_without_rights_is_told_so_in_one_line(store, job_url, monkeypatch) -> None:
    """With the address and the way in, without any of the secrets."""
    with store.stranger() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        found = run("summary", job_url)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.count("\n") == 1, found.stderr
    assert found.stderr.startswith(f"holotrace: {job_url} cannot be read: access was refused ("), found.stderr
    assert not any(secret in found.stderr for secret in secrets_of(environment))


def secrets_of(environment: dict[str, str]) -> list[str]:
    """Return the values that nobody may see."""
    return [
        part
        for name, value in environment.items()
        if name in {"AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING"}
        for part in value.replace("AccountKey=", ";").split(";")
        if len(part) > 20 and not part.startswith(("BlobEndpoint", "DefaultEndpoints"))
    ]


def test_what_is_not_there_is_told_in_one_line(store) -> None:
    """A file, a folder, a bucket to read from and one to write to."""
    for url in (f"{store.root}/nowhere/rank0.json", f"{store.root}/nowhere/", f"{store.missing}/rank0.json"):
        with pytest.raises((holotrace.errors.TraceNotFoundError, holotrace.errors.UnreachableError)) as told:
            holotrace.open_trace(url)
        assert url.rstrip("/") in str(told.value)
        assert "\n" not in str(told.value)
