"""The output of the commands, as text and as JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.catalogue import ANALYSES
from holotrace.cli.group import app
from holotrace.ingest.file_health import FileHealth
from holotrace.testing.builder import TraceBuilder
from holotrace.whole_job.summary import FIRST
from jobs import MARKUP, cpu_job, gpu_job
from matrices import each_command

ANALYSIS_COMMANDS = [analysis.command for analysis in ANALYSES]


@pytest.fixture
def job(tmp_path) -> str:
    """Write the small GPU job to a folder."""
    gpu_job().write(tmp_path / "job")
    return str(tmp_path / "job")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    """Use a temporary cache folder."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))


def run(*arguments: str) -> str:
    """Run a command that succeeds; return its stdout."""
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_summary_begins_with_the_verdict(job) -> None:
    """The summary starts with the verdict, shows four analyses, and names the commands of all other analyses."""
    output = run("summary", job)
    assert output.startswith("The recording takes 75 µs, and the GPUs are busy ")
    shown = [entry.name for entry in ANALYSES if entry.question in output]
    assert shown == ["temporal_breakdown", "kernel_breakdown", "communication_overlap", "idle_time"]
    assert all(entry.command in output for entry in ANALYSES if entry.name not in shown)


def test_the_summary_lists_the_headline_numbers_below_the_verdict(job) -> None:
    """Without steps, the line below the verdict shows the 75 µs of the recording and percentages of that time."""
    line = run("summary", job).splitlines()[1]
    assert line.startswith("recording 75 µs (no steps recorded) · GPU busy ")
    assert "of the recording" in line


def test_the_summary_as_json_has_stable_keys(job) -> None:
    """The JSON summary contains the tables of the diagnosis and of the analyses shown, with times in nanoseconds."""
    answer = json.loads(run("summary", job, "--json"))
    keys = ["doubts", "verdict", "ranks", "analyses", "missing", "cpu_side", "findings", "skipped_files"]
    assert list(answer) == keys
    assert answer["doubts"] == []
    assert answer["ranks"] == [0, 1]
    assert answer["analyses"]["temporal_breakdown"]["per_device"][0]["idle_ns"] == 40_000
    assert set(answer["analyses"]) == {"diagnosis", *FIRST}


def test_rows_sort_and_csv_choose_what_a_command_prints(job) -> None:
    """`--rows 1` prints one row, `--sort` puts the largest value first, and `--csv` prints all rows and raw numbers."""
    assert "1 of 2 rows" in run("temporal-breakdown", job, "--rows", "1")

    rows = list(csv.DictReader(run("temporal-breakdown", job, "--csv", "--sort", "idle_ns").splitlines()))
    idle = [int(row["idle_ns"]) for row in rows]
    assert len(idle) == 2
    assert idle == sorted(idle, reverse=True)


def test_sorting_by_an_unknown_column_lists_those_that_exist(job) -> None:
    """`--sort nonsense` fails with a list of the columns; --csv and --json together fail too."""
    result = CliRunner().invoke(app, ["temporal-breakdown", job, "--sort", "nonsense"])
    assert "idle_ns" in str(result.exception)

    both = CliRunner().invoke(app, ["temporal-breakdown", job, "--json", "--csv"])
    assert "choose one" in str(both.exception)


def test_a_table_without_rows_is_one_line(job) -> None:
    """An empty table prints its caption and `none`, without headings."""
    assert "Warm-up and outlier steps, and what took longer than usual: none" in run("step-time", job).splitlines()


@pytest.mark.slow
def test_the_summary_of_a_cpu_job_shows_its_cpu_side(tmp_path) -> None:
    """The summary of a job without GPU work says so and shows its steps on the CPU."""
    cpu_job().write(tmp_path / "cpu")
    output = run("summary", str(tmp_path / "cpu"))
    assert "and no GPU work was recorded" in output
    assert "mean step" in output


@pytest.mark.parametrize("command", ANALYSIS_COMMANDS)
def test_every_analysis_prints_a_table(job, command) -> None:
    """The output of an analysis starts with its question."""
    assert run(command, job).splitlines()[0].endswith("?")


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_every_analysis_prints_json(job, analysis) -> None:
    """The JSON of an analysis contains its name, ranks, tables, findings and, for some analyses, single numbers."""
    answer = json.loads(run(analysis.command, job, "--json"))
    others = {name: value for name, value in answer.items() if name not in {"analysis", "ranks", "findings"}}
    tables = {name: value for name, value in others.items() if isinstance(value, list)}
    assert (answer["analysis"], answer["ranks"]) == (analysis.name, [0, 1])
    assert tables
    assert all(isinstance(row, dict) for table in tables.values() for row in table)
    assert all(value is None or isinstance(value, float) for name, value in others.items() if name not in tables)


def test_unknown_numbers_are_null_in_json(job) -> None:
    """JSON shows NaN as null: rank 1 does not communicate, so the overlapped share of its communication is unknown."""
    rows = json.loads(run("communication-overlap", job, "--json"))["per_rank"]
    assert [row["overlap_fraction"] for row in rows] == [0.5, None]


@each_command(ANALYSIS_COMMANDS)
def test_every_analysis_writes_its_figure(job, tmp_path, command) -> None:
    """The figure is an HTML page that works offline."""
    path = tmp_path / "figure.html"
    run(command, job, "--figure", str(path))
    assert "plotly.js" in path.read_text(encoding="utf-8")


def test_ranks_can_be_chosen(job) -> None:
    """`--ranks 1` excludes rank 0."""
    assert json.loads(run("temporal-breakdown", job, "--ranks", "1", "--json"))["ranks"] == [1]


def test_the_gap_threshold_is_in_microseconds(job) -> None:
    """A launch delay of 20 µs is not below a threshold of 20 µs, so the gap counts as `other`."""
    rows = json.loads(run("idle-time", job, "--gap-threshold-us", "20", "--json"))["per_device"]
    assert {row["category"]: row["idle_ns"] for row in rows[:3]} == {
        "host_wait": 20_000,
        "kernel_wait": 0,
        "other": 20_000,
    }


def test_workers_give_the_same_answer(job) -> None:
    """The output with two worker processes equals that with one process."""
    assert run("temporal-breakdown", job, "--json", "--workers", "2") == run("temporal-breakdown", job, "--json")


@each_command(["summary", *ANALYSIS_COMMANDS])
def test_a_file_that_fails_late_does_not_hide_the_others(job, command) -> None:
    """A file that starts like a trace but contains no events is skipped; ranks 0 and 1 are analysed."""
    (Path(job) / "rank7.json").write_text('[{"no": "event"}]', encoding="utf-8")
    assert json.loads(run(command, job, "--json"))["ranks"] == [0, 1]
    assert "1 unreadable" in run("check", job)


def test_a_summary_names_a_skipped_file(job) -> None:
    """The summary names a skipped file if it is the only one; otherwise, it gives the number of skipped files."""
    (Path(job) / "truth.json").write_text("{}", encoding="utf-8")
    assert "· truth.json was skipped; holotrace check lists the reason\n" in run("summary", job)
    (Path(job) / "notes.json").write_text("{}", encoding="utf-8")
    assert "· 2 files were skipped; holotrace check lists the reasons\n" in run("summary", job)


@pytest.mark.slow
def test_a_report_shows_the_file_that_fails_late(job, tmp_path) -> None:
    """The output and the report warn about the unreadable file first, and then show the verdict on the other ranks."""
    (Path(job) / "rank7.json").write_text('[{"no": "event"}]', encoding="utf-8")
    lines = run("report", job, "-o", str(tmp_path / "r.html")).splitlines()
    doubt = "1 file could not be read and is left out: rank7.json (is not a profiler trace: none of its elements is an event)."
    assert lines[0] == doubt
    assert lines[1].startswith("The recording takes")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.index(doubt) < page.index("The recording takes")


@pytest.mark.slow
def test_a_summary_begins_with_problems_of_the_files(job) -> None:
    """The summary begins with three warnings: ranks of different jobs, a file that is cut off, an unreadable file."""
    folder = Path(job)
    other = (
        TraceBuilder()
        .rank(2)
        .header(distributedInfo={"rank": 2, "world_size": 64})
        .kernel("gemm", start_us=0, duration_us=9)
    )
    [path] = other.write(folder / "other")
    path.rename(folder / "rank2.json")
    first = min(folder.glob("*rank*0*.json"))
    first.write_bytes(first.read_bytes()[:-40])
    (folder / "rank3.json").write_bytes(b"")
    lines = run("summary", job).splitlines()
    assert "do not look like one job: the world sizes are " in lines[0]
    assert lines[1].startswith("Rank 0's file is cut off after ")
    assert lines[2] == "1 file could not be read and is left out: rank3.json (not a profiler trace: an empty file)."
    assert lines[3].startswith("These files belong to 2 different jobs, so no single verdict applies to all of them; ")
    assert "The numbers behind these findings" not in "\n".join(lines)
    assert run("diagnose", job).splitlines()[1:] == lines[:4]


def test_several_files_are_one_job(tmp_path) -> None:
    """Several files on the command line, such as those matching `*.json`, are opened as one job."""
    paths = gpu_job().write(tmp_path / "job")
    assert json.loads(run("temporal-breakdown", *map(str, paths), "--json"))["ranks"] == [0, 1]


@pytest.mark.slow
def test_the_cache_can_be_turned_off(job, tmp_path) -> None:
    """With `--no-cache`, a command creates no cache folder."""
    run("summary", job, "--no-cache")
    assert not (tmp_path / "cache").exists()
    run("summary", job)
    assert (tmp_path / "cache").exists()


def test_names_from_a_trace_are_plain_text(job) -> None:
    """A kernel name with markup is printed as plain text."""
    assert MARKUP in run("kernel-breakdown", job)


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "\x1b[2Jgone", "[link=http://x]y"])
def test_names_cannot_control_the_terminal(tmp_path, name) -> None:
    """Escape sequences and markup in a kernel's name are printed as text."""
    TraceBuilder().kernel(name, start_us=0, duration_us=1).write(tmp_path / "job")
    output = run("kernel-breakdown", str(tmp_path / "job"))
    assert "\x1b" not in output
    assert name.replace("\x1b", r"\x1b") in output


def test_the_report_command_writes_the_file_and_prints_the_verdict(job, tmp_path) -> None:
    """`holotrace report` prints the verdict and the path of the HTML file."""
    path = tmp_path / "out.html"
    output = run("report", job, "-o", str(path))
    assert output.startswith("The recording takes")
    assert str(path) in output
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_check_describes_each_file(tmp_path) -> None:
    """`check` prints each file's options and events, and the source of its rank number; it also lists skipped files."""
    builder = gpu_job().rank(0).header(with_stack=1)
    builder.write(tmp_path / "job")
    (tmp_path / "job" / "notes.txt").write_text("hello")
    output = run("check", str(tmp_path / "job"))
    assert output.splitlines()[0] == "3 files: 2 clean, 1 skipped."
    assert "rank from distributedInfo; options on: with_stack" in output
    assert "events, 3 of them GPU work" in output
    assert "notes.txt" in output


def test_check_lists_repairs(tmp_path) -> None:
    """`check` prints the kind, count and byte offset of each repair."""
    content = gpu_job().json()
    (tmp_path / "rank0.json").write_bytes(content[: len(content) // 2])
    output = run("check", str(tmp_path))
    assert output.startswith("1 file: 1 with losses.")
    assert "dropped: 1 time truncated_json at byte" in output
    assert "at byte" in output


def test_check_prints_json(tmp_path) -> None:
    """`check --json` prints the verdict, each file's rank and the source of the rank, and the skipped files."""
    gpu_job().write(tmp_path / "job")
    answer = json.loads(run("check", str(tmp_path / "job"), "--json"))
    assert list(answer) == ["verdict", "files", "skipped_files"]
    assert [(file["rank"], file["rank_origin"]) for file in answer["files"]] == [
        (0, "distributedInfo"),
        (1, "distributedInfo"),
    ]


def test_check_fails_only_if_no_file_can_be_read(job, monkeypatch) -> None:
    """`check` exits with 0 if one of two files is readable, and with 1 if none is."""
    good, bad = FileHealth("a.json", 0, "file name"), FileHealth("b.json", 1, "file name", error="b.json: denied")
    for files, code, verdict in (
        ((good, bad), 0, "2 files: 1 clean, 1 unreadable."),
        ((bad,), 1, "1 file: 1 unreadable."),
    ):
        monkeypatch.setattr(
            "holotrace.whole_job.check.health_of_rank", lambda rank_trace, files=files: files[rank_trace.rank]
        )
        result = CliRunner().invoke(app, ["check", job, "--ranks", ",".join(map(str, range(len(files))))])
        assert (result.exit_code, result.stdout.splitlines()[0]) == (code, verdict)


@each_command(["summary", "report", "check", *ANALYSIS_COMMANDS])
def test_every_command_has_help(command) -> None:
    """The help of every command lists its options, such as `--ranks` and `--workers`."""
    output = run(command, "--help")
    assert "--ranks" in output
    assert "--workers" in output


def test_the_version_is_an_option_of_the_application() -> None:
    """`--version` also works if typer parses the arguments."""
    assert run("--version").startswith("holotrace ")
