"""`holotrace critical-path`: windows, copies, graphs and predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def job(tmp_path) -> Path:
    """Write two ranks with 3 steps of 100 µs: mm (10-30 µs) launches gemm (40-80), and a call waits for it (50-90)."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank)
        for number in (1, 2, 3):
            begin = 100 * number
            builder.step(number, begin, 100)
            builder.operator("aten::mm", start_us=begin + 10, duration_us=20)
            builder.kernel("gemm", start_us=begin + 40, duration_us=40, launch_us=begin + 15)
            builder.runtime("cudaDeviceSynchronize", start_us=begin + 50, duration_us=40, correlation=number)
    builder.write(tmp_path / "job")
    return tmp_path / "job"


def run(*arguments: object) -> str:
    """Run `holotrace critical-path`; return its stdout."""
    result = CliRunner().invoke(app, ["critical-path", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer_of(*arguments: object) -> dict:
    """Run `holotrace critical-path --json`; return the parsed JSON."""
    return json.loads(run(*arguments, "--json"))


def test_the_default_is_the_step_before_the_last(job) -> None:
    """By default the command analyses step 2 of 3; its ten classes add up to 100 µs per rank."""
    answer = answer_of(job)
    assert [(row["rank"], row["window"], row["duration_ns"]) for row in answer["per_rank"]] == [
        (0, "ProfilerStep#2", 100_000),
        (1, "ProfilerStep#2", 100_000),
    ]
    assert sum(row["total_ns"] for row in answer["per_class"]) == 200_000
    assert len(answer["per_class"]) == 20
    assert answer["written"] == []
    assert "what_if" not in answer


@pytest.mark.parametrize(
    ("options", "window", "duration_ns"),
    [
        (["--instance", "3"], "ProfilerStep#3", 100_000),
        (["--instance", "1-3"], "ProfilerStep#1 to #3", 300_000),
        (["--annotation", "ProfilerStep", "--instance", "0"], "ProfilerStep, instance 0", 100_000),
        (["--annotation", "ProfilerStep", "--instance", "0-1"], "ProfilerStep, instances 0 to 1", 200_000),
        (["--annotation", ""], "whole recording", 300_000),
        (["--time-range-ms", "0.05-0.15"], "time range", 130_000),  # ends with the last kernel launched in the range
    ],
)
def test_windows_are_chosen_by_options(job, options, window, duration_ns) -> None:
    """Options select one step, consecutive steps, annotations, the whole recording or a time range."""
    (row,) = answer_of(job, "--ranks", "0", *options)["per_rank"]
    assert (row["window"], row["duration_ns"]) == (window, duration_ns)


def test_a_pattern_marks_data_loading(job) -> None:
    """With `--data-loading aten::m`, the time of `aten::mm` counts as data loading."""
    per_class = answer_of(job, "--ranks", "1", "--data-loading", "aten::m")["per_class"]
    assert {row["path_class"]: row["total_ns"] for row in per_class}["data_loading"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--annotation", "ProfilerStap"], "nearest names: 'ProfilerStep#"),
        (["--annotation", "ProfilerStep", "--instance", "3"], "has 3 instances of 'ProfilerStep'"),
        (["--instance", "9"], "has no step 9; its 3 steps are: 1, 2, 3"),
        (["--time-range-ms", "5000-6000"], "is outside the recording"),
    ],
)
def test_an_unknown_window_is_an_error_that_lists_the_known_ones(job, options, message) -> None:
    """The error for an unknown name or step lists the valid names or steps."""
    with pytest.raises(InvalidOptionError, match=message):
        run(job, *options)


@pytest.mark.parametrize(
    "options",
    [
        ["--instance", "first"],
        ["--time-range-ms", "10"],
        ["--scale", "gemm"],
        ["--scale", "gemm=fast"],
        ["--replace", "gemm=-1"],
        ["--scale", "=1"],
        ["--remove", "["],
    ],
)
def test_malformed_options_are_usage_errors(job, options) -> None:
    """A malformed option ends the command with exit code 2."""
    result = CliRunner().invoke(app, ["critical-path", str(job), *options])
    assert result.exit_code == 2


def test_copies_and_graphs_are_written_for_each_rank(job, tmp_path) -> None:
    """`--overlay` and `--save` create missing folders; only `--force` replaces existing files."""
    options = (job, "--overlay", tmp_path / "copies", "--save", tmp_path / "graphs")

    output = run(*options)

    names = [f"copies/overlaid_critical_path_rank{rank}.pt.trace.json" for rank in (0, 1)]
    written = [tmp_path / name for name in (*names, "graphs/critical_path_rank0.zip", "graphs/critical_path_rank1.zip")]
    assert all(path.is_file() and str(path) in output for path in written)
    with pytest.raises(InvalidOptionError, match="already exists"):
        run(*options)
    assert sorted(answer_of(*options, "--force")["written"]) == sorted(map(str, written))


def test_copies_with_all_events_and_all_edges_are_larger(job, tmp_path) -> None:
    """The overlaid copy is larger with `--all-events`, and larger still with `--all-edges`."""

    def size(*options: str) -> int:
        folder = tmp_path / "-".join(["out", *options])
        run(job, "--ranks", "0", "--overlay", folder, *options)
        return sum(path.stat().st_size for path in folder.iterdir())

    assert size() < size("--all-events") < size("--all-edges")


def test_folders_are_checked_before_any_work(job, tmp_path) -> None:
    """If one output folder is not usable, the command does not create the other."""
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        run(job, "--save", tmp_path / "graphs", "--overlay", tmp_path / "missing" / "out")
    assert not (tmp_path / "graphs").exists()


def test_predictions_are_made_for_each_rank(job) -> None:
    """Shortening gemm from 40 to 20 µs, with --replace or with --scale, saves 20 µs."""
    halved = answer_of(job, "--scale", "^gemm$=0.5")["what_if"]
    assert [(row["rank"], row["predicted_ns"], row["replayed_ns"]) for row in halved] == [
        (0, 80_000, 100_000),
        (1, 80_000, 100_000),
    ]
    (replaced,) = answer_of(job, "--ranks", "1", "--replace", "gemm=20")["what_if"]
    assert (replaced["saved_ns"], replaced["saved_fraction"]) == (20_000, 0.2)
    assert answer_of(job, "--no-launch-overhead", "--perfect-overlap")["what_if"][0]["saved_ns"] > 0
    assert "What if" in run(job, "--remove", "gemm")


def test_a_change_that_matches_no_kernel_is_a_finding(job) -> None:
    """A change that matches no kernel adds a finding, and the path is still printed."""
    answer = answer_of(job, "--remove", "nothing like it")
    assert answer["what_if"] == []
    assert "none of the" in answer["findings"][-1]
    assert len(answer["per_rank"]) == 2


def test_the_figure_replaces_a_file_only_with_force(job, tmp_path) -> None:
    """`--figure` replaces an existing file only with `--force`."""
    run(job, "--figure", tmp_path / "path.html")
    assert "What bounds the step?" in (tmp_path / "path.html").read_text(encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="already exists"):
        run(job, "--figure", tmp_path / "path.html")
    run(job, "--figure", tmp_path / "path.html", "--force")
