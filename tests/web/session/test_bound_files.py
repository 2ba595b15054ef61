"""A file is checked each time it is opened, because it may have been replaced by a link."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the extra `web` is not installed")

import holotrace
from holotrace.errors import UnreadableTraceError
from holotrace.testing.builder import TraceBuilder
from holotrace.web.session import bound_files
from holotrace.web.session.session import Scope, Session
from holotrace.web.shell.app import create_app

HIDDEN = "a line that is in no trace"
TRIALS = 20


class Served:
    """An app that serves a path, with a client that requests the trace file of rank 0."""

    def __init__(self, path: str | Path) -> None:
        self.session = Session([path], cache=False)
        self.client = create_app(self.session).server.test_client()
        self.run = self.session.runs[0].id

    def file(self) -> tuple[int, bytes]:
        """Request the trace file of rank 0; return the status and content of the response."""
        with self.client.get("/timeline/file", query_string={"run": self.run, "rank": 0}) as response:
            return response.status_code, response.data


def write(folder: Path, kernel: str = "gemm") -> Path:
    """Write a trace of one rank."""
    [path] = TraceBuilder().kernel(kernel, start_us=0, duration_us=5).write(folder)
    return path


def put_link(path: Path, target: Path) -> None:
    """Replace a file with a link, atomically."""
    beside = path.with_name("beside")
    beside.symlink_to(target)
    beside.replace(path)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return a folder that contains a folder to serve, a secret file, and a private trace."""
    (tmp_path / "secret.txt").write_text(HIDDEN)
    write(tmp_path / "private", kernel="private_kernel")
    write(tmp_path / "served")
    return tmp_path


@pytest.mark.parametrize("root", ["served", ".", "./served/", "served/../served"])
def test_the_served_folder_may_be_relative(folder, monkeypatch, root) -> None:
    """The path of a served folder may be relative."""
    monkeypatch.chdir(folder / "served" if root == "." else folder)
    [trace] = (folder / "served").iterdir()

    assert Served(root).file() == (200, trace.read_bytes())


def test_a_served_file_may_be_relative(folder, monkeypatch) -> None:
    """The path of a single file, as in `holotrace serve trace.json`, may be relative."""
    [trace] = (folder / "served").iterdir()
    monkeypatch.chdir(trace.parent)

    assert Served(trace.name).file() == (200, trace.read_bytes())


@pytest.mark.parametrize("is_named", [False, True], ids=["in a folder", "named"])
@pytest.mark.parametrize("target", ["secret.txt", "private", "served/secret.txt", "pipe", "nowhere"])
def test_a_replacement_of_a_file_is_not_served(folder, target, is_named) -> None:
    """If a file was replaced by a link or a pipe, the response is 404 and does not name the link's target."""
    [trace] = (folder / "served").iterdir()
    [private] = (folder / "private").iterdir()
    (folder / "served" / "secret.txt").write_text(HIDDEN)
    served = Served(trace if is_named else folder / "served")
    served.session.whole(served.run)
    if target == "pipe":
        trace.unlink()
        os.mkfifo(trace)
    else:
        put_link(trace, private if target == "private" else folder / target)

    status, content = served.file()

    assert status == 404
    assert HIDDEN.encode() not in content
    assert b"private" not in content
    assert str(Path(holotrace.__file__).parent).encode() not in content


@pytest.mark.parametrize("walks", [True, False])
def test_a_race_with_a_link_never_wins(folder, monkeypatch, walks) -> None:
    """While a file is swapped with a link again and again, a request gets the file's own content or 404."""
    monkeypatch.setattr(bound_files, "_WALKS", walks and bound_files._WALKS)
    [trace] = (folder / "served").iterdir()
    [private] = (folder / "private").iterdir()
    content = trace.read_bytes()
    served = Served(folder / "served")
    served.session.whole(served.run)
    is_done = threading.Event()

    def swap() -> None:
        beside = folder / "beside"
        while not is_done.is_set():
            put_link(trace, private)
            beside.write_bytes(content)
            beside.replace(trace)

    swapping = threading.Thread(target=swap)
    swapping.start()
    answers = [served.file() for _ in range(TRIALS)]
    is_done.set()
    swapping.join()

    assert {answer for status, answer in answers if status == 200} <= {content}
    assert {status for status, _ in answers} <= {200, 404}


def test_a_replacement_by_a_link_is_not_read(folder) -> None:
    """If a file was replaced by a link after its run was opened, reading it raises an error."""
    [trace] = (folder / "served").iterdir()
    [private] = (folder / "private").iterdir()
    served = Served(folder / "served")
    rank = served.session.whole(served.run).ranks[0]
    put_link(trace, private)

    with pytest.raises(UnreadableTraceError, match=r"has been replaced since it was opened") as refusal:
        rank.table("events")
    assert str(trace) in str(refusal.value)


def test_a_folder_on_the_path_must_not_become_a_link(folder) -> None:
    """If the folder of a file was replaced by a link, reading the file raises an error."""
    run = folder / "served" / "run"
    write(run)
    served = Served(folder / "served")
    below = next(run.id for run in served.session.runs if run.name == "run")
    rank = served.session.whole(below).ranks[0]
    run.rename(folder / "gone")
    run.symlink_to(folder / "private")

    with pytest.raises(UnreadableTraceError, match=r"has been replaced since it was opened"):
        rank.table("events")


def test_errors_name_the_path_as_given(folder) -> None:
    """The error for a damaged file names its path, not the file descriptor."""
    [trace] = (folder / "served").iterdir()
    served = Served(folder / "served")
    rank = served.session.whole(served.run).ranks[0]
    trace.write_bytes(b"{")

    with pytest.raises(holotrace.HolotraceError) as error:
        rank.table("events")
    assert "/proc/" not in str(error.value)
    assert str(trace) in str(error.value)


def test_links_within_the_folder_are_followed(folder) -> None:
    """A run may consist of links to files in the same served folder."""
    [trace] = (folder / "served").iterdir()
    (folder / "served" / "linked").mkdir()
    (folder / "served" / "linked" / "rank0.json").symlink_to(trace)
    session = Session([folder / "served"], cache=False)
    run = next(info.id for info in session.runs if info.name == "linked")

    assert len(session.trace(Scope(run)).ranks[0].table("events")) > 0


def test_a_served_link_may_lead_elsewhere_later(folder) -> None:
    """If the served path is itself a link, a request gets the file that the link points to at that time."""
    latest = folder / "latest.json"
    [trace] = (folder / "served").iterdir()
    [private] = (folder / "private").iterdir()
    latest.symlink_to(trace)
    served = Served(latest)
    assert served.file() == (200, trace.read_bytes())
    put_link(latest, private)
    served.session._scanned_at = float("-inf")

    assert served.file() == (200, private.read_bytes())


def test_captures_outside_the_served_folder_are_left_out(tmp_path) -> None:
    """A graph capture next to the trace is used, unless it is a link to a file outside the served folder."""
    folder = tmp_path / "served"
    builder = TraceBuilder().runtime("hipGraphLaunch", start_us=0, duration_us=1, correlation=5)
    builder.kernel("gemm", start_us=9, duration_us=1, correlation=5).write(folder)
    captured = TraceBuilder().operator(HIDDEN, start_us=0, duration_us=9)
    captured.runtime("hipLaunchKernel", start_us=1, duration_us=2, args={"kernel": "gemm"})
    (outside,) = captured.write(tmp_path / "outside")
    (folder / "capture_traces").mkdir()
    (folder / "capture_traces" / "bs_1_rank0.json").symlink_to(outside)
    session = Session([folder], cache=False)
    (run,) = (run for run in session.runs if run.name == "served")
    assert HIDDEN not in session.trace(Scope(run.id)).ranks[0].strings

    (folder / "capture_traces" / "bs_1_rank0.json").unlink()
    (folder / "capture_traces" / "bs_1_rank0.json").write_bytes(outside.read_bytes())
    session = Session([folder], cache=False)
    (run,) = (run for run in session.runs if run.name == "served")
    assert HIDDEN in session.trace(Scope(run.id)).ranks[0].strings
