"""`check` returns the health of a job's files."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder
from holotrace.whole_job.check import Check

CUT_OFF = '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b"'


@pytest.fixture
def checked(tmp_path: Path) -> Check:
    """Check a sound file, a truncated one, one without events, and a text."""
    (sound,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path)
    sound.rename(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text(CUT_OFF, encoding="utf-8")
    (tmp_path / "rank2.json").write_text('[{"no": "event"}]', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("a text", encoding="utf-8")
    return holotrace.check(holotrace.open_trace(tmp_path, cache=False), strict=True)


def test_the_verdict_counts_the_files(checked: Check) -> None:
    """The verdict counts clean files, files with losses, unreadable ones and skipped ones."""
    assert checked.verdict == "4 files: 1 clean, 1 with losses, 1 unreadable, 1 skipped."
    assert [file.state for file in checked.files] == ["clean", "with losses", "unreadable"]


def test_rules_are_checked_if_strict(checked: Check, tmp_path: Path) -> None:
    """With `strict=True`, the unreadable file breaks a rule and the sound file breaks none."""
    assert {(violation.rank, violation.rule) for violation in checked.violations or ()} >= {(2, "readable")}
    assert not checked.is_sound
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False)).violations is None
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False), strict=True).is_sound


def test_a_check_becomes_plain_python(checked: Check) -> None:
    """`to_dict` returns what `holotrace check --json` prints: verdict, files, skipped files and violations."""
    content = checked.to_dict()

    assert list(content) == ["verdict", "files", "skipped_files", "violations"]
    assert content["files"][0]["event_count"] == 1
    assert content["skipped_files"][0]["reason"] == "not a profiler trace: a text file"


def test_a_notebook_shows_a_row_per_file(tmp_path: Path) -> None:
    """A notebook shows the verdict and a row per file, with markup in file names escaped."""
    path = tmp_path / "<img src=x>rank0.json"
    (written,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path / "written")
    written.rename(path)
    html = holotrace.check(holotrace.open_trace(path, cache=False))._repr_html_()

    assert html.count("<tr>") == 2
    assert "1 file: 1 clean." in html
    assert "<img" not in html
