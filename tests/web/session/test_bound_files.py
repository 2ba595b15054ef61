"""Files are looked at again when they are opened: what a run held may since be a link to anything."""

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
    """Pages over a path, asked for the file of rank 0."""

    def __init__(self, path: str | Path) -> None:
        self.session = Session([path], cache=False)
        self.client = create_app(self.session).server.test_client()
        self.run = self.session.runs[0].id

    def file(self) -> tuple[int, bytes]:
        """Return status and content."""
        with self.client.get("/timeline/file", query_string={"run": self.run, "rank": 0}) as response:
            return response.status_code, response.data


def write(folder: Path, kernel: str = "gemm") -> Path:
    """Write a trace of one rank."""
    [path] = TraceBuilder().kernel(kernel, start_us=0, duration_us=5).write(folder)
    return path


def put_link(path: Path, target: Path) -> None:
    """Put a link in the place of a file, at once."""
    beside = path.with_name("beside")
    beside.symlink_to(target)
    beside.replace(path)


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder that is served, beside a secret and a trace that are not."""
    (tmp_path / "secret.txt").write_text(HIDDEN)
    write(tmp_path / "private", kernel="private_kernel")
    write(tmp_path / "served")
    return tmp_path


@pytest.mark.parametrize("root", ["served", ".", "./served/", "served/../served"])
def test_the_folder_may_be_named_from_here(place, monkeypatch, root) -> None:
    """The file is that below the current folder, not one below the installation."""
    monkeypatch.chdir(place / "served" if root == "." else place)
    [trace] = (place / "served").iterdir()

    assert Served(root).file() == (200, trace.read_bytes())


def test_a_file_may_be_named_from_here(place, monkeypatch) -> None:
    """As `holotrace serve trace.json` does."""
    [trace] = (place / "served").iterdir()
    monkeypatch.chdir(trace.parent)

    assert Served(trace.name).file() == (200, trace.read_bytes())


@pytest.mark.parametrize("is_named", [False, True], ids=["in a folder", "named"])
@pytest.mark.parametrize("target", ["secret.txt", "private", "served/secret.txt", "pipe", "nowhere"])
def test_what_was_put_in_the_place_of_a_file_is_not_given(place, target, is_named) -> None:
    """A link out of the folder, to a trace or not; one that stays inside; a pipe; nothing. Nor does an error name it."""
    [trace] = (place / "served").iterdir()
    [private] = (place / "private").iterdir()
    (place / "served" / "secret.txt").write_text(HIDDEN)
    served = Served(trace if is_named else place / "served")
    served.session.whole(served.run)
    if target == "pipe":
        trace.unlink()
        os.mkfifo(trace)
    else:
        put_link(trace, private if target == "private" else place / target)

    status, content = served.file()

    assert status == 404
    assert HIDDEN.encode() not in content
    assert b"private" not in content
    assert str(Path(holotrace.__file__).parent).encode() not in content


@pytest.mark.parametrize("walks", [True, False])
def test_no_moment_is_right_for_a_link(place, monkeypatch, walks) -> None:
    """While the file becomes a link and a file again all the time, only its own content is ever given."""
    monkeypatch.setattr(bound_files, "_WALKS", walks and bound_files._WALKS)
    [trace] = (place / "served").iterdir()
    [private] = (place / "private").iterdir()
    content = trace.read_bytes()
    served = Served(place / "served")
    served.session.whole(served.run)
    is_done = threading.Event()

    def swap() -> None:
        beside = place / "beside"
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


def test_a_link_is_not_read_either(place) -> None:
    """Pages read a file when they first need it: what has become a link since the run was opened is not followed."""
    [trace] = (place / "served").iterdir()
    [private] = (place / "private").iterdir()
    served = Served(place / "served")
    rank = served.session.whole(served.run).ranks[0]
    put_link(trace, private)

    with pytest.raises(UnreadableTraceError, match=r"was replaced since it was opened") as refusal:
        rank.table("events")
    assert str(trace) in str(refusal.value)


def test_a_folder_on_the_way_is_not_a_link_either(place) -> None:
    """Nor is a folder between the one served and the file."""
    run = place / "served" / "run"
    write(run)
    served = Served(place / "served")
    below = next(each.id for each in served.session.runs if each.name == "run")
    rank = served.session.whole(below).ranks[0]
    run.rename(place / "gone")
    run.symlink_to(place / "private")

    with pytest.raises(UnreadableTraceError, match=r"was replaced since it was opened"):
        rank.table("events")


def test_errors_name_the_path_as_given(place) -> None:
    """Not the descriptor that it is read through."""
    [trace] = (place / "served").iterdir()
    served = Served(place / "served")
    rank = served.session.whole(served.run).ranks[0]
    trace.write_bytes(b"{")

    with pytest.raises(holotrace.HolotraceError) as error:
        rank.table("events")
    assert "/proc/" not in str(error.value)
    assert str(trace) in str(error.value)


def test_links_within_the_folder_are_followed(place) -> None:
    """A run may be made of links to files elsewhere in the folder served."""
    [trace] = (place / "served").iterdir()
    (place / "served" / "linked").mkdir()
    (place / "served" / "linked" / "rank0.json").symlink_to(trace)
    session = Session([place / "served"], cache=False)
    run = next(each.id for each in session.runs if each.name == "linked")

    assert len(session.trace(Scope(run)).ranks[0].table("events")) > 0


def test_a_link_that_was_named_may_lead_elsewhere_later(place) -> None:
    """Whoever names `latest.json` means what it leads to."""
    latest = place / "latest.json"
    [trace] = (place / "served").iterdir()
    [private] = (place / "private").iterdir()
    latest.symlink_to(trace)
    served = Served(latest)
    assert served.file() == (200, trace.read_bytes())
    put_link(latest, private)
    served.session._scanned_at = float("-inf")

    assert served.file() == (200, private.read_bytes())
