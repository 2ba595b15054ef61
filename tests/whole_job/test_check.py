"""`check` returns the health of a job's files."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.cli.group import app
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.whole_job.check import Check

CUT_OFF = '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b"'


@pytest.fixture
def checked(tmp_path: Path) -> Check:
    """Check a clean file, a truncated file, a file without events, and a text file."""
    (sound,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path)
    sound.rename(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text(CUT_OFF, encoding="utf-8")
    (tmp_path / "rank2.json").write_text('[{"no": "event"}]', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("a text", encoding="utf-8")
    return holotrace.check(holotrace.open_trace(tmp_path, cache=False), strict=True)


def test_the_verdict_counts_the_files(checked: Check) -> None:
    """The verdict counts clean files, files with losses, unreadable files and skipped files."""
    assert checked.verdict == "4 files: 1 clean, 1 with losses, 1 unreadable, 1 skipped."
    assert [file.state for file in checked.files] == ["clean", "with losses", "unreadable"]


def test_rules_are_checked_if_strict(checked: Check, tmp_path: Path) -> None:
    """With `strict=True`, the unreadable file breaks a rule and the clean file breaks none."""
    assert {(violation.rank, violation.rule) for violation in checked.violations or ()} >= {(2, "readable")}
    assert not checked.is_sound
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False)).violations is None
    assert holotrace.check(holotrace.open_trace(tmp_path / "rank0.json", cache=False), strict=True).is_sound


def test_a_check_becomes_plain_python(checked: Check) -> None:
    """`to_dict` returns the output of `holotrace check --json`: verdict, files, skipped files, violations and trust."""
    content = checked.to_dict()

    assert list(content) == ["verdict", "files", "skipped_files", "violations", "trust"]
    assert content["files"][0]["event_count"] == 1
    assert content["skipped_files"][0]["reason"] == "not a profiler trace: a text file"


def test_a_notebook_shows_a_row_per_file(tmp_path: Path) -> None:
    """A notebook shows the verdict and one row per file, and escapes markup in file names."""
    path = tmp_path / "<img src=x>rank0.json"
    (written,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path / "written")
    written.rename(path)
    html = holotrace.check(holotrace.open_trace(path, cache=False))._repr_html_()

    assert html.count("<tr>") == 2
    assert "1 file: 1 clean." in html
    assert "<img" not in html


def test_a_doubt_makes_a_job_unsound() -> None:
    """Overlapping work on a stream is a doubt, not a violation; a job with a doubt is not sound."""
    builder = TraceBuilder().kernel("a", start_us=10, duration_us=10, launch_us=0)
    checked = holotrace.check(builder.kernel("b", start_us=15, duration_us=10, launch_us=1).build(), strict=True)

    assert checked.violations == ()
    assert [doubt["rule"] for doubt in checked.doubts] == ["overlapping_work"]
    assert not checked.is_sound
    assert checked.to_dict()["trust"]["per_rank"][0]["doubtful_ns"] == 5_000
    assert "overlapping_work: Work on device 0, stream 7 overlaps once" in checked._repr_html_()


def test_a_doubt_that_a_rule_reports_is_not_repeated() -> None:
    """Work that starts before its launch is listed as a violation and not again as a doubt."""
    builder = TraceBuilder().kernel("a", start_us=5, duration_us=1, launch_us=9)
    checked = holotrace.check(builder.build(), strict=True)

    assert [violation.rule for violation in checked.violations or ()] == ["starts_before_launch"]
    assert checked.doubts == ()
    assert checked.trust is not None
    assert len(checked.trust.doubts) == 1


def test_the_command_prints_doubts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`holotrace check --strict` prints each doubt and the trusted share of the time, and exits with 1."""
    builder = TraceBuilder().kernel("a", start_us=10, duration_us=10, launch_us=0)
    (path,) = builder.kernel("b", start_us=15, duration_us=10, launch_us=1).write(tmp_path)

    with pytest.raises(SystemExit) as ended:
        app(["check", "--strict", str(path)])

    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1
    assert any(line.startswith("doubt: rank 0, overlapping_work: Work on device 0, stream 7 ") for line in lines)
    assert any(line.startswith("strict: 80.0 % of the recorded time can be trusted; ") for line in lines)


def test_ranks_that_the_user_left_out_are_not_missing() -> None:
    """A rank without a file is reported as missing, but a rank that `select` excluded is not."""
    builder = TraceBuilder()
    for rank in range(3):
        builder.rank(rank).step(0, 0, 100).operator("aten::mm", start_us=1, duration_us=90)
    job = builder.build()
    without_a_file = Trace({rank: job.ranks[rank] for rank in (0, 1)})

    assert [doubt["rule"] for doubt in holotrace.check(without_a_file, strict=True).doubts] == ["missing_ranks"]
    assert holotrace.check(job.select([0, 1]), strict=True).is_sound
