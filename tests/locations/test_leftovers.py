"""Leftovers of killed processes are removed, and files of running processes are kept."""

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
    """Run a process that kills itself while it writes a file and a scratch folder."""
    subprocess.run(  # noqa: S603 -- the test's own code
        [sys.executable, "-c", KILLED, str(target)], env={**os.environ, "TMPDIR": str(temporary)}, check=False
    )


def test_the_next_writer_removes_drafts_of_a_killed_process(tmp_path, monkeypatch) -> None:
    """Writing a file removes the draft of it that a killed process left.

    Creating a scratch folder removes the scratch folder that the process left.
    """
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
        assert list((tmp_path / "temporary").iterdir()) == [folder]
    assert not left.exists()


def test_files_of_a_running_process_stay(tmp_path) -> None:
    """Files of this process are not leftovers, nor are files whose names contain no valid process number."""
    own = tmp_path / temporary_name()
    process = own.name.split("-")[2]
    too_large = own.with_name(own.name.replace(process, 20 * "9"))
    notes = tmp_path / ".tmp-notes"
    assert [is_left_behind(path) for path in (own, too_large, notes)] == [False, False, False]
