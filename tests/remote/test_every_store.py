"""Every store can be read and written like a disk, and each error message is one line."""

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
    pytest.mark.filterwarnings(
        "ignore:Sending a large body:ResourceWarning"
    ),  # aiohttp warns about the large request bodies that gcsfs and adlfs send
]

_SERVER_OF = {"s3": "s3", "gcs": "gcs", "azure": "azure", "hdfs": "hdfs", "webhdfs": "hdfs"}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(server)) for name, server in _SERVER_OF.items()]
)
def store(request, monkeypatch) -> Store:
    """Return each store in turn, and set the environment variables that give access to it."""
    running: Store = request.getfixturevalue(request.param)
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def job_url(store, job_folder, request) -> str:
    """Put the job into a folder of the store, named after the test; return the URL."""
    folder = re.sub(r"\W+", "-", request.node.name)
    for path in job_folder.iterdir():
        store.put(f"{folder}/{path.name}", path.read_bytes())
    return f"{store.root}/{folder}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `holotrace` in a process."""
    return subprocess.run([sys.executable, "-m", "holotrace", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def expect_same(remote: Trace, local: Trace) -> None:
    """Check that headers, findings and tables of every rank are equal."""
    assert list(remote.ranks) == list(local.ranks)
    for rank, expected in local.ranks.items():
        actual = remote.ranks[rank]
        assert actual.header == expected.header
        assert actual.health.findings == expected.health.findings
        for name in TABLES:
            assert_frame_equal(actual.table(name), expected.table(name))


def test_a_folder_of_ranks_is_read_as_from_a_disk(store, job_url, job_folder) -> None:
    """A folder in a store has the same ranks and the same skipped files as a local copy of the folder."""
    remote, local = holotrace.open_trace(job_url, cache=False), holotrace.open_trace(job_folder, cache=False)
    expect_same(remote, local)
    assert [Path(file.path).name for file in remote.skipped] == [Path(file.path).name for file in local.skipped]
    assert all(rank_trace.source.startswith(store.root) for rank_trace in remote.ranks.values())


def test_a_file_is_cached_and_read_again_when_it_changes(store, job_folder, tmp_path) -> None:
    """The second read comes from the cache; after the file changes, it is read again."""
    first, second = (path.read_bytes() for path in sorted(job_folder.glob("*.gz")))
    store.put("changing/trace.json.gz", first)
    events = [events_of(f"{store.root}/changing/trace.json.gz")]
    cached = files_in(tmp_path / "cache")
    events.append(events_of(f"{store.root}/changing/trace.json.gz"))
    assert cached
    assert files_in(tmp_path / "cache") == cached
    store.put("changing/trace.json.gz", second)
    events.append(events_of(f"{store.root}/changing/trace.json.gz"))
    assert events[0].equals(events[1])
    assert not events[0].equals(events[2])


def events_of(url: str) -> pl.DataFrame:
    """Read the events of a trace with one rank, from the file or from the cache."""
    (rank_trace,) = holotrace.open_trace(url).ranks.values()
    return rank_trace.table("events")


def files_in(folder: Path) -> dict[Path, int]:
    """Return {file: time of its last change}."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.arrow")}


def test_commands_read_from_and_write_to_a_store(store, job_url, job_folder, tmp_path) -> None:
    """`holotrace report` and `holotrace export` write the same files into a store as on a disk."""
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


def test_a_job_can_be_written_to_a_store(job_url, job_folder) -> None:
    """`write_store` writes three ranks to a store; a second run writes none, and the ranks open from the store."""
    written = [holotrace.write_store(holotrace.open_trace(job_url), f"{job_url}/job.store") for _ in range(2)]
    assert [(len(run.written), len(run.unchanged)) for run in written] == [(3, 0), (0, 3)]
    expect_same(holotrace.open_trace(f"{job_url}/job.store"), holotrace.open_trace(job_folder))


def test_processes_write_one_job_at_once(store) -> None:
    """Three processes write different ranks at once, like tasks of a job array; all ranks are stored."""
    counts = race(2, 3, address=f"{store.root}/race{{folder}}/job.store")
    assert (counts["written: True"], counts["store: whole"], failed(counts)) == (6, 2, False), counts


def test_processes_that_write_the_same_ranks_do_not_mix(store) -> None:
    """Of two processes that write the same ranks, one may be refused; all files of a rank come from one process."""
    counts = race(2, 2, same=True, address=f"{store.root}/race-same{{folder}}/job.store")
    assert counts["written: True"] + counts["written: refused"] == 4, counts
    assert not failed(counts), counts


def test_a_refused_user_gets_a_one_line_error(store, job_url, monkeypatch) -> None:
    """A user without access gets a one-line error with the URL and the reason, without secrets."""
    with store.stranger() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        result = run("summary", job_url)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith(f"holotrace: {job_url} cannot be read: access was refused ("), result.stderr
    assert not any(secret in result.stderr for secret in secrets_of(environment))


def secrets_of(environment: dict[str, str]) -> list[str]:
    """Return the secret parts of the environment variables' values."""
    return [
        part
        for name, value in environment.items()
        if name in {"AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING"}
        for part in value.replace("AccountKey=", ";").split(";")
        if len(part) > 20 and not part.startswith(("BlobEndpoint", "DefaultEndpoints"))
    ]


def test_a_missing_file_folder_or_bucket_is_a_one_line_error(store) -> None:
    """The error for a missing file, folder or bucket is one line with its URL."""
    for url in (f"{store.root}/nowhere/rank0.json", f"{store.root}/nowhere/", f"{store.missing}/rank0.json"):
        with pytest.raises((holotrace.errors.TraceNotFoundError, holotrace.errors.UnreachableError)) as caught:
            holotrace.open_trace(url)
        assert url.rstrip("/") in str(caught.value)
        assert "\n" not in str(caught.value)
