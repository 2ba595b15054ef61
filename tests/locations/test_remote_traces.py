"""Traces at URLs can be read; the tests use fsspec's memory file system and a local web server."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from click.testing import Result
from typer.testing import CliRunner

import holotrace
from holotrace.cli.group import app
from holotrace.errors import (
    InvalidOptionError,
    NotATraceError,
    TraceNotFoundError,
    UnreachableError,
    UnreadableTraceError,
)
from holotrace.execution.progress import Silent
from holotrace.ingest.execution_trace import read_execution_trace
from holotrace.locations import drafted, located, remote_bytes
from holotrace.store.cache import FOLDER_VARIABLE
from holotrace.store.trace import Trace
from holotrace.web.session.runs import contained
from holotrace.web.session.session import Session
from hta.trace_analysis import TraceAnalysis
from web_files import WebFiles, serving


def trace_json(rank: int, event_count: int = 3) -> bytes:
    """Return a trace of one rank with about 200 bytes per event."""
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 1, "args": {"stream": 7}}
    events = [event | {"ts": 2 * number, "args": {"stream": 7, "pad": "x" * 99}} for number in range(event_count)]
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events}).encode()


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a temporary cache folder, and retry after one millisecond."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    monkeypatch.setattr(remote_bytes, "FIRST_PAUSE_S", 0.001)
    return folder


@pytest.fixture
def web() -> Iterator[WebFiles]:
    """Serve files over HTTP."""
    with serving() as files:
        yield files


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """Yield the memory file system, which is empty before and after the test."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def counts(trace: Trace) -> dict[int, int]:
    """Return the number of events of each rank."""
    return {rank: rank_trace.table("events").height for rank, rank_trace in trace.ranks.items()}


def test_a_folder_of_ranks_is_read_plain_and_compressed(memory) -> None:
    """In a folder at a URL, plain and gzip files open as ranks; other files are skipped, and subfolders ignored."""
    memory.pipe("/job/a.json", trace_json(0))
    memory.pipe("/job/b.json.gz", gzip.compress(trace_json(1, 5)))
    memory.pipe("/job/notes.json", b"[1, 2]")
    memory.pipe("/job/sub/c.json", trace_json(2))
    trace = holotrace.open_trace("memory://job")
    assert counts(trace) == {0: 3, 1: 5}
    assert trace.ranks[1].source == "memory://job/b.json.gz"
    assert trace.ranks[1].health.format == "gzip"
    assert [(file.path, file.reason[:24]) for file in trace.skipped] == [
        ("memory://job/notes.json", "not a profiler trace: a ")
    ]


@pytest.mark.parametrize(
    "source",
    [
        "memory://job/*.json",
        "memory://job/a.json",
        ["memory://job/a.json"],
        {0: "memory://job/a.json"},
        "memory://job/",
    ],
)
def test_every_kind_of_source_may_be_a_url(memory, source) -> None:
    """A file given as a URL, a pattern, a list, a dict or a folder opens as the same rank."""
    memory.pipe("/job/a.json", trace_json(0))
    assert counts(holotrace.open_trace(source)) == {0: 3}


def test_a_file_url_is_a_path(tmp_path) -> None:
    """A `file://` address is a path, in which `%20` means a space."""
    path = tmp_path / "a b.json"
    path.write_bytes(trace_json(0))
    trace = holotrace.open_trace(f"file://{tmp_path}/a%20b.json")
    assert trace.ranks[0].source == str(path)
    assert counts(trace) == {0: 3}


def test_runs_are_found_in_a_tree(memory) -> None:
    """Each folder with traces at a URL is a run, and a refresh reports added files."""
    memory.pipe("/log/one/host_1.1694128201545.pt.trace.json", trace_json(0))
    memory.pipe("/log/two/host_1.1694128201545.pt.trace.json.gz", gzip.compress(trace_json(0, 4)))
    memory.pipe("/log/readme.txt", b"text")
    runs = holotrace.find_runs("memory://log")
    assert [run.name for run in runs.runs] == ["one", "two"]
    assert counts(runs.run("two").open()) == {0: 4}
    assert [file.path for file in runs.skipped] == ["memory://log/readme.txt"]
    memory.pipe("/log/one/host_2.1694128201545.pt.trace.json", trace_json(1))
    refreshed = runs.refresh()
    assert refreshed.changes_since(runs).added == ("memory://log/one/host_2.1694128201545.pt.trace.json",)
    assert refreshed.run("one").workers == ("host_1", "host_2")


def test_a_missing_file_suggests_its_neighbours(memory) -> None:
    """The error for the missing rank1.json suggests rank0.json."""
    memory.pipe("/job/rank0.json", trace_json(0))
    with pytest.raises(
        TraceNotFoundError, match=r"^memory://job/rank1.json does not exist; did you mean rank0\.json\?$"
    ):
        holotrace.open_trace("memory://job/rank1.json")
    with pytest.raises(TraceNotFoundError, match=r"does not exist"):
        holotrace.open_trace("memory://nothing/at/all.json")
    memory.pipe("/job/x.json", b"hello")
    with pytest.raises(NotATraceError, match=r"^memory://job/x.json is not a profiler trace: "):
        holotrace.open_trace("memory://job/x.json")


def test_an_unknown_scheme_and_a_missing_extra_are_one_line_errors(monkeypatch) -> None:
    """The error for an unknown scheme contains the URL; the error for a missing package contains the pip command."""
    with pytest.raises(UnreachableError, match=r"^nosuch://host cannot be opened: .*nosuch"):
        holotrace.open_trace("nosuch://host/a.json")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "s3fs" else object())
    with pytest.raises(UnreachableError, match=r"needs s3fs: pip install 'holotrace\[s3\]'$"):
        holotrace.open_trace("s3://another-bucket/a.json")


def test_a_web_file_is_fetched_in_parts(web) -> None:
    """A large file is fetched in byte ranges; the server sends at most 2 MiB more than the file's size."""
    content = trace_json(0, 20_000)
    web.files["/traces/rank0.json"] = content
    trace = holotrace.open_trace(f"{web.url}/traces/rank0.json", cache=False)
    assert counts(trace) == {0: 20_000}
    assert trace.ranks[0].health.bytes_read == len(content)
    ranges = [byte_range for method, _, byte_range in web.requests if method == "GET"]
    assert ranges[0] == "bytes=0-262143"
    assert web.sent_bytes < len(content) + 2 * (1 << 20)  # `peek` reads the first MiB once more


def test_a_web_folder_is_read_from_its_links(web) -> None:
    """A web page whose address ends in `/` is read as a folder: the links on the page are its files."""
    web.files |= {"/job/rank0.json": trace_json(0), "/job/rank1.json.gz": gzip.compress(trace_json(1))}
    assert counts(holotrace.open_trace(f"{web.url}/job/")) == {0: 3, 1: 3}
    assert all("elsewhere" not in file.path for file in holotrace.open_trace(f"{web.url}/job/").skipped)


def test_reading_resumes_after_a_lost_connection(web) -> None:
    """A file is read completely although three connections break in the middle."""
    web.files["/rank0.json"] = trace_json(0, 20_000)
    trace = holotrace.open_trace(f"{web.url}/rank0.json", cache=False)
    web.cuts = 3
    assert counts(trace) == {0: 20_000}
    assert web.cuts == 0
    assert trace.ranks[0].health.is_clean


def test_a_connection_that_always_breaks_fails_and_leaves_no_files(web, cache_folder) -> None:
    """If every connection breaks, the error contains the URL and the cache stays empty; a later attempt succeeds."""
    web.files["/rank0.json"] = trace_json(0, 20_000)
    trace = holotrace.open_trace(f"{web.url}/rank0.json")
    web.cuts = 1_000_000
    with pytest.raises(UnreadableTraceError, match=rf"^{web.url}/rank0.json cannot be read: "):
        counts(trace)
    assert list(cache_folder.rglob("*")) == []
    web.cuts = 0
    assert counts(trace) == {0: 20_000}


@pytest.mark.parametrize("size", [3, 20_000])
def test_without_byte_ranges_a_file_is_read_in_order(web, size) -> None:
    """A file from a server that ignores the Range header is read completely."""
    web.has_ranges = False
    web.files["/rank0.json"] = trace_json(0, size)
    assert counts(holotrace.open_trace(f"{web.url}/rank0.json", cache=False)) == {0: size}


def test_refused_and_missing_files_have_different_errors(web) -> None:
    """Status 404 gives the error "does not exist", and status 403 "access was refused"."""
    with pytest.raises(TraceNotFoundError, match="does not exist"):
        holotrace.open_trace(f"{web.url}/rank0.json")
    web.status = 403
    with pytest.raises(UnreachableError, match="access was refused"):
        holotrace.open_trace(f"{web.url}/rank0.json")


def test_an_unreachable_server_is_a_one_line_error() -> None:
    """If no server listens on the port, the error is one line with the URL."""
    with pytest.raises(UnreachableError, match=r"^http://127\.0\.0\.1:9/a\.json cannot be read: "):
        holotrace.open_trace("http://127.0.0.1:9/a.json")


def test_a_file_that_changes_while_it_is_read_is_refused(web, monkeypatch) -> None:
    """If the ETag changes between two parts, reading fails instead of mixing two versions."""
    web.files["/rank0.json"] = trace_json(0, 20_000)
    trace = holotrace.open_trace(f"{web.url}/rank0.json", cache=False)
    fetch = remote_bytes.RemoteBytes.fetch

    def fetch_and_change(self, start: int, end: int) -> bytes:
        web.etag = "v2"
        return fetch(self, start, end)

    monkeypatch.setattr(remote_bytes.RemoteBytes, "fetch", fetch_and_change)
    with pytest.raises(UnreadableTraceError, match=r"was changed while it was being read"):
        counts(trace)


class _Interrupting(Silent):
    """A progress display that raises KeyboardInterrupt at its first update, as if the user pressed Ctrl-C."""

    def advance(self, byte_count: int, /) -> None:
        """Raise KeyboardInterrupt."""
        raise KeyboardInterrupt(byte_count)


def test_ctrl_c_does_not_wait_for_a_silent_server(web, monkeypatch) -> None:
    """Ctrl-C stops reading at once, although the server sends nothing more."""
    web.files["/rank0.json"] = trace_json(0, 20_000)
    trace = holotrace.open_trace(f"{web.url}/rank0.json", cache=False, progress=_Interrupting())
    fetch, go_on = remote_bytes.RemoteBytes.fetch, threading.Event()

    def fetch_only_the_first(self, start: int, end: int) -> bytes:
        return fetch(self, start, end) if start == 0 or go_on.wait(60) else b""

    monkeypatch.setattr(remote_bytes.RemoteBytes, "fetch", fetch_only_the_first)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        counts(trace)
    waited = time.monotonic() - begin
    go_on.set()
    assert waited < 50


def test_the_cache_identifies_a_file_by_its_version(web) -> None:
    """A file is read again only if its ETag or, without ETags, its content has changed."""
    address = f"{web.url}/rank0.json"
    web.files["/rank0.json"] = trace_json(0)
    assert counts(holotrace.open_trace({0: address})) == {0: 3}
    web.requests.clear()
    assert counts(holotrace.open_trace({0: address})) == {0: 3}
    assert sum(method == "GET" for method, _, _ in web.requests) == 1  # `peek` reads the beginning of the file
    web.files["/rank0.json"], web.etag = trace_json(0).replace(b'"k"', b'"j"'), "v2"
    assert holotrace.open_trace({0: address}).ranks[0].strings.is_in(["j"]).any()
    web.files["/rank0.json"], web.etag = trace_json(0).replace(b'"k"', b'"m"'), ""
    assert holotrace.open_trace({0: address}).ranks[0].strings.is_in(["m"]).any()


def test_a_cache_behind_a_url_is_shared(memory, web, monkeypatch, tmp_path) -> None:
    """With a shared cache, a second machine does not fetch the trace again."""
    web.files["/rank0.json"] = trace_json(0)
    address = f"{web.url}/rank0.json"
    assert counts(holotrace.open_trace({0: address}, cache="memory://cache")) == {0: 3}
    assert [Path(name).name for name in memory.find("/cache") if name.endswith(".json")] == ["manifest.json"]
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "other"))
    trace = holotrace.open_trace({0: address}, cache="memory://cache")
    web.requests.clear()
    assert counts(trace) == {0: 3}
    assert [method for method, _, _ in web.requests] == ["HEAD"]


def test_a_shared_cache_distinguishes_files_with_the_same_path(memory, monkeypatch, tmp_path) -> None:
    """Files with the same path, size and time on two machines do not share a cache entry if their bytes differ."""
    path = tmp_path / "rank0.json"
    path.write_bytes(trace_json(0))
    os.utime(path, (1, 1))
    assert counts(holotrace.open_trace(path, cache="memory://cache")) == {0: 3}
    path.write_bytes(trace_json(0).replace(b'"k"', b'"j"'))
    os.utime(path, (1, 1))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "other"))
    assert holotrace.open_trace(path, cache="memory://cache").ranks[0].strings.is_in(["j"]).any()
    assert len(memory.find("/cache")) > 0


def test_secrets_are_never_shown(web, tmp_path) -> None:
    """A signature is sent to the server and to workers, but no name, message, repr or cache entry contains it."""
    web.files["/rank0.json"] = trace_json(0)
    signed = f"{web.url}/rank0.json?sv=2024&sig=SECRETSECRET%3D"
    trace = holotrace.open_trace(signed, cache=tmp_path / "cache")
    assert trace.ranks[0].source == f"{web.url}/rank0.json"
    assert counts(pickle.loads(pickle.dumps(trace))) == {0: 3}  # noqa: S301 -- the test pickled it
    assert all("sig=SECRETSECRET%3D" in path for _, path, _ in web.requests)
    assert "SECRET" not in repr(trace) + repr(trace.ranks[0])
    assert not any(b"SECRET" in path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file())
    web.status = 403
    with pytest.raises(UnreachableError) as caught:
        holotrace.open_trace(signed.replace("SECRETSECRET", "OTHERSECRET"))
    assert "SECRET" not in str(caught.value)


def test_pickled_ranks_are_small(memory) -> None:
    """A rank whose tables are in memory pickles to less than 1,000 bytes, because the tables are not pickled."""
    memory.pipe("/job/a.json", trace_json(0))
    rank_trace = holotrace.open_trace("memory://job/a.json").ranks[0]
    assert counts(Trace({0: rank_trace})) == {0: 3}
    assert len(pickle.dumps(rank_trace)) < 1_000


def run_hta(*arguments: str) -> Result:
    """Run the command line in this process, where memory:// files exist; errors propagate."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.mark.slow
def test_commands_read_urls_and_write_to_them(memory) -> None:
    """Reports, figures, tables and copies can be written to URLs; reports omit secrets; --force replaces files."""
    memory.pipe("/job/a.json", trace_json(0))
    memory.pipe("/job/b.json.gz", gzip.compress(trace_json(1)))
    assert "memory://job: 1 run with 2 traces" in run_hta("runs", "memory://job").stdout
    assert (
        "memory://out/report.html"
        in run_hta("report", "memory://job?sig=SECRETSECRET", "-o", "memory://out/report.html").stdout
    )
    assert b"memory://job" in memory.cat("/out/report.html")
    assert b"SECRET" not in memory.cat("/out/report.html")
    run_hta("kernel-breakdown", "memory://job", "--figure", "memory://out/figure.html")
    run_hta("export", "memory://job", "--to", "parquet", "-o", "memory://out/tables")
    run_hta("export", "memory://job", "--to", "perfetto", "-o", "memory://out/copies")
    assert {"/out/figure.html", "/out/tables/rank_1/events.parquet", "/out/copies/b_with_counters.json.gz"} <= set(
        memory.find("/out")
    )
    assert gzip.decompress(memory.cat("/out/copies/b_with_counters.json.gz")).startswith(b'{"distributedInfo"')
    with pytest.raises(InvalidOptionError, match=r"^memory://out/report.html already exists"):
        run_hta("report", "memory://job", "-o", "memory://out/report.html")
    assert run_hta("report", "memory://job", "-o", "memory://out/report.html", "--force").exit_code == 0


def test_web_addresses_are_read_only(memory) -> None:
    """For an http:// address, the error says that it is read-only."""
    memory.pipe("/job/a.json", trace_json(0))
    with pytest.raises(UnreachableError, match=r"is a web address, which is read-only"):
        run_hta("report", "memory://job", "-o", "http://127.0.0.1:9/report.html")
    with pytest.raises(UnreachableError, match="is a web address"), drafted(located("http://127.0.0.1:9/a.txt")):
        pass


def test_a_failed_write_leaves_nothing(memory) -> None:
    """A failed write keeps the existing file and leaves no partial file."""
    memory.pipe("/out/a.txt", b"old")

    def write() -> None:
        with drafted(located("memory://out/a.txt")) as file:
            file.write(b"new")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write()
    assert memory.find("/out") == ["/out/a.txt"]
    assert memory.cat("/out/a.txt") == b"old"


def test_the_interface_of_hta_takes_urls(memory) -> None:
    """HTA's `trace_dir` may be a URL; `trace_files` are relative to it, and traces with counters are written there."""
    memory.pipe("/job/a.json", trace_json(0))
    memory.pipe("/job/b.json", trace_json(1))
    analysis = TraceAnalysis(trace_dir="memory://job")
    assert analysis.get_gpu_kernel_breakdown(visualize=False)[1]["rank"].tolist() == [0, 1]
    assert len(analysis.t.get_raw_trace_for_one_rank(1)["traceEvents"]) == 3
    some = TraceAnalysis(trace_files={5: "b.json"}, trace_dir="memory://job")
    assert some.t.get_ranks() == [5]
    analysis.generate_trace_with_counters(output_suffix="_counted")
    assert memory.exists("/job/a_counted.json")


def test_an_execution_trace_may_be_a_url(memory) -> None:
    """An execution trace at a URL can be read."""
    memory.pipe("/et.json.gz", gzip.compress(json.dumps({"schema": "1.0", "nodes": [{"id": 1, "name": "a"}]}).encode()))
    read = read_execution_trace("memory://et.json.gz")
    assert (read.source, read.nodes["node_id"].to_list()) == ("memory://et.json.gz", [1])


def test_a_server_shows_runs_behind_a_url(memory, web) -> None:
    """A server lists the runs in a folder at a URL and in its subfolders, and serves no file outside a run's folder."""
    memory.pipe("/log/one/a.json", trace_json(0))
    memory.pipe("/log/b.json", trace_json(1))
    session = Session(["memory://log"])
    assert sorted(run.name for run in session.runs) == ["log", "one"]
    assert {run.name: list(session.whole(run.id).ranks) for run in session.runs} == {"log": [1], "one": [0]}
    with pytest.raises(TraceNotFoundError, match="are outside the served folder"):
        contained(holotrace.open_trace("memory://log/b.json"), "memory://log/one")
    assert list(contained(holotrace.open_trace("memory://log/b.json"), "memory://log").ranks) == [1]
    web.files["/job/rank0.json"] = trace_json(0)
    session = Session([f"{web.url}/job/"])
    assert {run.name: list(session.whole(run.id).ranks) for run in session.runs} == {"job": [0]}


def test_the_tensorboard_tab_finds_traces_behind_urls(memory) -> None:
    """For a log folder at a URL, TensorBoard shows the tab once the folder contains a trace."""
    plugin = pytest.importorskip("holotrace.web.tensorboard.plugin")
    memory.pipe("/log/one/readme.md", b"text")
    assert not plugin._may_hold_traces("memory://log")
    memory.pipe("/log/one/a.json.gz", b"")
    assert plugin._may_hold_traces("memory://log")


@pytest.mark.slow
def test_local_paths_never_load_fsspec(tmp_path) -> None:
    """Opening a local trace does not import fsspec, because that takes longer than reading a small trace."""
    (tmp_path / "a.json").write_bytes(trace_json(0))
    code = f"import sys, holotrace; holotrace.open_trace({str(tmp_path)!r}).ranks[0].health; sys.exit('fsspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 -- own code


def test_members_of_an_archive_are_read(tmp_path) -> None:
    """With a chained fsspec URL such as `zip://job::/job.zip`, a zip archive opens as a folder of traces."""
    with zipfile.ZipFile(tmp_path / "job.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("job/a.json", trace_json(0, 5_000))
        archive.writestr("job/b.json.gz", gzip.compress(trace_json(1)))
    assert counts(holotrace.open_trace(f"zip://job::{tmp_path}/job.zip")) == {0: 5_000, 1: 3}
    assert [run.name for run in holotrace.find_runs(f"zip://::{tmp_path}/job.zip").runs] == ["job"]
