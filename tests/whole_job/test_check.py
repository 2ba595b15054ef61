"""The health of a job's files as a result."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder
from holotrace.whole_job.check import Check

CUT_OFF = '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b"'


@pytest.fixture
def checked(tmp_path: Path) -> Check:
    """A sound file, one that ends too early, one without events, and a text."""
    (sound,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path)
    sound.rename(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text(CUT_OFF, encoding="utf-8")
    (tmp_path / "rank2.json").write_text('[{"no": "event"}]', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("a text", encoding="utf-8")
    return holotrace.check(holotrace.open_trace(tmp_path, cache=False), strict=True)


def test_the_verdict_counts_the_files(checked: Check) -> None:
    """By their state, and those that are not part of the job."""
    assert checked.verdict == "4 files: 1 clean, 1 with losses, 1 unreadable, 1 skipped."
    assert [file.state for file in checked.files] == ["clean", "with losses", "unreadable"]


def test_rules_are_checked_when_asked_for(checked: Check, tmp_path: Path) -> None:
    """An unreadable file breaks one; a sound one breaks none."""
    assert {(each.rank, each.rule) for each in checked.violations or ()} >= {(2, "readable")}
    assert not checked.is_sound
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False)).violations is None
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False), strict=True).is_sound


def test_it_becomes_plain_python(checked: Check) -> None:
    """As `holotrace check --json` prints it."""
    content = checked.to_dict()

    assert list(content) == ["verdict", "files", "skipped_files", "violations"]
    assert content["files"][0]["event_count"] == 1
    assert content["skipped_files"][0]["reason"] == "not a profiler trace: a text file"


def test_a_notebook_shows_a_row_per_file(tmp_path: Path) -> None:
    """Names are text, not markup."""
    path = tmp_path / "<img src=x>rank0.json"
    (written,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path / "written")
    written.rename(path)
    html = holotrace.check(holotrace.open_trace(path, cache=False))._repr_html_()

    assert html.count("<tr>") == 2
    assert "1 file: 1 clean." in html
    assert "<img" not in html
