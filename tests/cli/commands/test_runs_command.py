"""`holotrace runs` lists the runs in a log folder."""

from __future__ import annotations

import gzip
import json

from typer.testing import CliRunner

import holotrace
from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job


def run(*arguments: str) -> str:
    """Run a command that succeeds; return its stdout."""
    result = CliRunner().invoke(app, ["runs", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def job(folder) -> str:
    """Write a run of five ranks, and a run of two spans; worker b recorded only the first span."""
    builder = TraceBuilder()
    for rank in range(5):
        builder.rank(rank).kernel("k", start_us=0, duration_us=1)
    builder.write(folder / "five")
    (folder / "two").mkdir()
    for name in ("a.1", "a.2", "b.1"):
        (folder / "two" / f"{name}.pt.trace.json").write_text('{"traceEvents": []}')
    (folder / "notes.txt").write_text("nothing")
    return str(folder)


def test_every_span_has_a_line(tmp_path) -> None:
    """`runs` prints one line per span; it shows consecutive ranks as `0-4` and names workers without a file."""
    lines = run(job(tmp_path)).splitlines()
    assert lines[0].endswith(": 2 runs with 8 traces, 1 file skipped.")
    assert [line.split()[:3] for line in lines[4:7]] == [["five", "1", "5"], ["two", "1", "2"], ["two", "2", "1"]]
    assert "0-4" in lines[4]
    assert lines[6].split()[-2:] == ["a", "b"]
    assert "notes.txt: not a profiler trace: a text file" in "".join(lines[7:])


def test_json_has_every_recording(tmp_path) -> None:
    """`runs --json` lists every recording under stable keys."""
    answer = json.loads(run(job(tmp_path), "--json"))
    assert list(answer) == ["folder", "runs", "skipped_files"]
    assert [(run["name"], run["workers"][:2], run["spans"]) for run in answer["runs"]] == [
        ("five", ["rank0", "rank1"], [1]),
        ("two", ["a", "b"], [1, 2]),
    ]
    assert list(answer["runs"][0]["recordings"][0]) == [
        "path",
        "worker",
        "span",
        "stamp",
        "rank",
        "byte_count",
        "modified_ns",
    ]


def test_an_empty_folder_is_reported(tmp_path) -> None:
    """`runs` prints one line for an empty folder, not an error."""
    assert run(str(tmp_path)).strip().endswith("no trace, 0 files skipped.")


def test_a_store_is_not_a_folder_of_runs(tmp_path) -> None:
    """`runs` lists a store as one skipped file, and does not list the files in the store."""
    holotrace.write_store(TraceBuilder().kernel("k", start_us=0, duration_us=1).build(), tmp_path / "job.store")
    for folder in (tmp_path, tmp_path / "job.store"):
        text = run(str(folder))
        assert "no trace, 1 file skipped" in text
        assert "job.store: a store of a whole job; open it by its path" in text


def test_an_unreadable_run_stays_in_the_list(tmp_path) -> None:
    """`runs` lists a run whose only trace is unreadable; the first lines of the output give the reason."""
    gpu_job().write(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rank0.json.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 50)
    (tmp_path / "bad" / "config.json").write_text('{"lr": 1}')
    (tmp_path / "neither").mkdir()
    (tmp_path / "neither" / "config.json").write_text('{"lr": 1}')
    lines = run(str(tmp_path)).splitlines()

    assert lines[0] == f"{tmp_path}: 2 runs with 2 traces, 1 unreadable file, 2 files skipped."
    assert lines[1].startswith(f"unreadable  {tmp_path / 'bad' / 'rank0.json.gz'}: cannot be read: ")
    assert [line.split()[0] for line in lines if line.startswith(("bad", "good", "neither"))] == ["bad", "good"]
    answer = json.loads(run(str(tmp_path), "--json"))
    assert [(run["name"], len(run["recordings"]), len(run["unreadable"])) for run in answer["runs"]] == [
        ("bad", 0, 1),
        ("good", 2, 0),
    ]
