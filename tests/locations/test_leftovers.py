"""Leftovers of killed processes are removed by the next one; files of running processes stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from holotrace.locations import drafted, is_left_behind, scratch_folder, temporary_name

KILLED = """
import os, sys
from pathlib import Path
from holotrace.locations import drafted, scratch_folder

with scratch_folder() as folder, drafted(Path(sys.argv[1])) as file:
    (folder / "events.arrow").write_bytes(b"half")
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), 9)
"""


def kill_a_writer(target: Path, temporary: Path) -> None:
    """Kill a process while it writes a file and a temporary folder."""
    subprocess.run(  # noqa: S603 -- our own code
        [sys.executable, "-c", KILLED, str(target)], env={**os.environ, "TMPDIR": str(temporary)}, check=False
    )


def test_a_draft_of_a_killed_process_goes_with_the_next_one(tmp_path, monkeypatch) -> None:
    """Drafts of the same file are removed; others are not touched."""
    (tmp_path / "temporary").mkdir()
    kill_a_writer(tmp_path / "report.html", tmp_path / "temporary")
    assert len(list(tmp_path.glob(".report.html.*.tmp"))) == 1
    (tmp_path / ".report.html.mine.tmp").write_text("mine")
    with drafted(tmp_path / "report.html") as file:
        file.write(b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", ".report.html.mine.tmp", "temporary"}
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (left,) = (tmp_path / "temporary").iterdir()
    with scratch_folder() as folder:
        assert [each.name for each in (tmp_path / "temporary").iterdir()] == [folder.name]
    assert not left.exists()


def test_what_a_living_process_writes_stays(tmp_path) -> None:
    """Files that this module did not name stay, too."""
    mine = tmp_path / temporary_name()
    mine.mkdir()
    other = tmp_path / ".tmp-notes"
    other.mkdir()
    assert (is_left_behind(mine), is_left_behind(other)) == (False, False)
