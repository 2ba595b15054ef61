"""Unknown names and unwritable files raise errors before any work, in every command and function."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.cli.group import app
from holotrace.errors import HolotraceError, InvalidOptionError, UnknownRankError, what_exists
from holotrace.testing.builder import TraceBuilder
from hta.memory_analysis import MemoryAnalysis
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import LabeledTrace, TraceDiff

ANALYSIS_COMMANDS = [analysis.command for analysis in ANALYSES]
RANKS = "there is no rank 9 in this trace; its ranks are: 0, 1$"
STEPS = "there is no step 9 in this trace; its steps are: 3, 4$"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """Return the cache folder, which does not exist until a trace is first read."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def job(tmp_path) -> str:
    """Write a job with two ranks, two steps, an operator and an annotation."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(3, 0, 100).step(4, 100, 100).annotation("forward", start_us=1, duration_us=50)
        builder.operator("aten::linear", start_us=2, duration_us=40)
        builder.kernel("gemm", start_us=10, duration_us=20, launch_us=5)
    builder.write(tmp_path / "job")
    return str(tmp_path / "job")


def run(*arguments: str) -> str:
    """Run a command; exceptions propagate."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False).output


FACADE: dict[str, Callable[[TraceAnalysis], object]] = {
    "get_idle_time_breakdown": lambda t: t.get_idle_time_breakdown([9]),
    "get_cuda_kernel_launch_stats": lambda t: t.get_cuda_kernel_launch_stats([9]),
    "get_aten_op_kernels_and_delay": lambda t: t.get_aten_op_kernels_and_delay([9]),
    "get_frequent_cuda_kernel_sequences": lambda t: t.get_frequent_cuda_kernel_sequences("aten", ".", rank=9),
    "get_queue_length_time_series": lambda t: t.get_queue_length_time_series([9]),
    "get_queue_length_summary": lambda t: t.get_queue_length_summary([9]),
    "get_time_spent_blocked_on_full_queue": lambda t: t.get_time_spent_blocked_on_full_queue({9: pd.DataFrame()}),
    "get_memory_bw_time_series": lambda t: t.get_memory_bw_time_series([9]),
    "get_memory_bw_summary": lambda t: t.get_memory_bw_summary([9]),
    "generate_trace_with_counters": lambda t: t.generate_trace_with_counters(ranks=[9]),
    "get_gpu_kernels_with_user_annotations": lambda t: t.get_gpu_kernels_with_user_annotations(9),
    "get_cupti_counter_data_with_operators": lambda t: t.get_cupti_counter_data_with_operators([9]),
    "t.get_trace": lambda t: t.t.get_trace(9),
    "t.get_iterations": lambda t: t.t.get_iterations(9),
    "t.get_trace_duration": lambda t: t.t.get_trace_duration(9),
    "t.get_trace_start_unixtime_ns": lambda t: t.t.get_trace_start_unixtime_ns(9),
    "t.get_raw_trace_for_one_rank": lambda t: t.t.get_raw_trace_for_one_rank(9),
    "compare_traces": lambda t: TraceDiff.compare_traces(t.t, t.t, test_rank=9),
    "ops_diff": lambda t: TraceDiff.ops_diff(t.t, t.t, control_rank=[0, 9]),
    "extract_ops": lambda t: LabeledTrace("x", t=t.t).extract_ops(rank=9),
    "open_trace": lambda t: holotrace.open_trace(t.t.trace_path, ranks=[0, 9]),
}


@pytest.mark.parametrize("call", FACADE)
def test_the_error_for_an_unknown_rank_lists_the_ranks(job, call) -> None:
    """In every function that takes ranks, rank 9 raises an UnknownRankError that lists 0 and 1."""
    with pytest.raises(UnknownRankError, match=RANKS):
        FACADE[call](TraceAnalysis(trace_dir=job))


@pytest.mark.parametrize("command", ["summary", "report", "check", "export", *ANALYSIS_COMMANDS])
def test_every_command_has_an_error_for_an_unknown_rank(job, tmp_path, command) -> None:
    """With `--ranks 0,9`, every command fails with an error that lists the ranks 0 and 1."""
    extra = {"export": ["--to", "csv", "-o", f"{tmp_path}/out"], "report": ["-o", f"{tmp_path}/report.html"]}
    with pytest.raises(UnknownRankError, match=RANKS):
        run(command, job, "--ranks", "0,9", *extra.get(command, []))


OTHERS: dict[str, tuple[Callable[[str], object], str]] = {
    "streams": (
        lambda job: TraceAnalysis(trace_dir=job).get_idle_time_breakdown(streams=[9], visualize=False),
        "there is no stream 9 in this trace; its streams are: 7$",
    ),
    "profiler_steps": (lambda job: whole(job).get_potential_stragglers(profiler_steps=[9]), STEPS),
    "steps": (lambda job: holotrace.stragglers(holotrace.open_trace(job), steps=[3, 9]), STEPS),
    "holotrace stragglers --steps": (lambda job: run("stragglers", job, "--steps", "9"), STEPS),
    "control_steps": (lambda job: holotrace.compare_traces(*[holotrace.open_trace(job)] * 2, control_steps=[9]), STEPS),
    "holotrace diff --test-steps": (lambda job: run("diff", job, job, "--test-steps", "3,9"), STEPS),
    "holotrace diff --control-ranks": (lambda job: run("diff", job, job, "--control-ranks", "9"), RANKS),
    "test_iteration": (lambda job: TraceDiff.compare_traces(job, job, test_iteration=9), STEPS),
    "ops_diff iteration": (lambda job: TraceDiff.ops_diff(job, job, control_iteration=[3, 9]), STEPS),
    "extract_ops iteration": (lambda job: LabeledTrace(trace_dir=job).extract_ops(iteration=9), STEPS),
    "annotation": (
        lambda job: holotrace.stragglers(holotrace.open_trace(job), annotation="forwrad"),
        "there is no annotation 'forwrad' in this trace; its annotations are: forward, Profiler",
    ),
    "holotrace stragglers --annotation": (
        lambda job: run("stragglers", job, "--annotation", "forwrad"),
        "its annotations are: forward, Profiler",
    ),
    "holotrace user-annotations --allow": (
        lambda job: run("user-annotations", job, "--allow", "forwrad"),
        "no annotation matches 'forwrad'; available: forward, Profiler",
    ),
    "operator_name": (
        lambda job: holotrace.kernel_sequences(holotrace.open_trace(job), operator_name="aten::linaer"),
        "no operator's name contains this text; available: aten::linear$",
    ),
    "holotrace kernel-sequences --operator": (
        lambda job: run("kernel-sequences", job, "--operator", "aten::linaer"),
        "available: aten::linear$",
    ),
    "sort_by": (
        lambda job: TraceAnalysis(trace_dir=job).get_aten_op_kernels_and_delay(sort_by=["count"]),
        "the columns are: aten_op_name, ",
    ),
}


def whole(job: str) -> TraceAnalysis:
    """Open a job through HTA's interface without dropping the last step."""
    return TraceAnalysis(trace_dir=job, include_last_profiler_step=True)


@pytest.mark.parametrize("case", OTHERS)
def test_the_error_for_an_unknown_name_lists_the_known_ones(job, case) -> None:
    """The error for an unknown stream, step, annotation, operator or column lists the known ones."""
    ask, message = OTHERS[case]
    with pytest.raises(HolotraceError, match=message):
        ask(job)


def test_an_empty_frame_names_the_unknown_operator(job, tmp_path) -> None:
    """For an unknown operator, HTA's method returns an empty frame and a reason that lists the operators."""
    frame = TraceAnalysis(trace_dir=job).get_frequent_cuda_kernel_sequences("aten::linaer", str(tmp_path))
    assert frame.empty
    assert frame.attrs["reason"].endswith("available: aten::linear")


def test_long_lists_are_shortened() -> None:
    """An error lists the 20 nearest numbers or the most similar names, and shortens long names."""
    assert what_exists(range(512), wanted=600).endswith("510, 511 (20 of 512)")
    assert what_exists(range(512), wanted=600).startswith("492, 493")
    assert what_exists(["aten::mm", "aten::linear", "c" * 999], wanted="aten::linaer").startswith("aten::linear, aten")
    assert len(what_exists(["c" * 999], wanted="d")) < 200
    assert what_exists([], wanted=3) == "none"


Write = Callable[[str, Path], object]
"""Takes a job's folder, and the file or folder to write."""

FIGURES: dict[str, Write] = {
    command: lambda job, path, command=command: run(command, job, "--figure", str(path))
    for command in ANALYSIS_COMMANDS
}
FILES: dict[str, Write] = {
    **FIGURES,
    "diff": lambda job, path: run("diff", job, job, "--figure", str(path)),
    "compare-operators": lambda job, path: run("compare-operators", job, job, "--figure", str(path)),
    "report": lambda job, path: run("report", job, "-o", str(path)),
    "sql": lambda job, path: run("sql", job, "select 1", "--format", "csv", "-o", str(path)),
    "visualize_counts_diff": lambda job, path: TraceDiff.visualize_counts_diff(
        TraceDiff.compare_traces(job, job), show_image=False, export_image_path=str(path)
    ),
    "visualize_duration_diff": lambda job, path: TraceDiff.visualize_duration_diff(
        TraceDiff.compare_traces(job, job), show_image=False, export_image_path=str(path)
    ),
}
FOLDERS: dict[str, Write] = {
    **{f"export {to}": lambda job, path, to=to: run("export", job, "--to", to, "-o", str(path / "out"))
       for to in ("perfetto", "csv", "parquet")},
    "ingest": lambda job, path: run("ingest", job, "-o", str(path / "out")),
    "generate_trace_with_counters": lambda job, path: TraceAnalysis(trace_dir=job).generate_trace_with_counters(
        output_dir=str(path)
    ),
    "get_frequent_cuda_kernel_sequences": lambda job, path: TraceAnalysis(
        trace_dir=job
    ).get_frequent_cuda_kernel_sequences("aten", str(path), min_pattern_len=1),
}  # fmt: skip


EXPECTED = {"missing": "is not a folder", "a file": "is not a folder", "not writable": "cannot be written"}
"""{problem with the target: message of the error}."""


def test_every_command_that_writes_is_tested() -> None:
    """Each command with `--figure`, `--output` or `-o` is in FILES or FOLDERS and has `--force`."""
    commands = get_command(app)
    options = {
        name: {option for parameter in commands.get_command(None, name).params for option in parameter.opts}
        for name in commands.list_commands(None)
    }
    writing = {command for command, names in options.items() if names & {"--figure", "--output", "-o"}}
    assert writing == {name for name in FILES if name in options} | {"export", "ingest"}
    assert all("--force" in options[name] for name in writing)


@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
@pytest.mark.parametrize("fault", EXPECTED)
def test_an_unwritable_file_is_an_error_before_work_starts(job, tmp_path, cache, name, fault) -> None:
    """A bad output folder raises an error before a trace is read, except in functions that draw an existing result."""
    folder = tmp_path / "target"
    if fault == "a file":
        folder.write_text("mine")
    elif fault == "not writable":
        folder.mkdir()
    write: Write = FILES[name] if name in FILES else FOLDERS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda path, _: Path(path) != folder)  # os.access is always true for root
        with pytest.raises(InvalidOptionError, match=EXPECTED[fault]):
            write(job, folder / "page.html" if name in FILES else folder)
    assert name.startswith("visualize") or not cache.exists()


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("visualize")])
def test_an_existing_file_stays(job, tmp_path, cache, name) -> None:
    """If the output file already exists, a command fails before it reads any trace, and the file stays as it is."""
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(InvalidOptionError, match=r"page\.html already exists"):
        FILES[name](job, path)
    assert path.read_text() == "mine"
    assert not cache.exists()


@pytest.mark.parametrize("name", ["visualize_counts_diff", "visualize_duration_diff"])
def test_methods_of_hta_replace_a_figure(job, tmp_path, name) -> None:
    """HTA's methods replace an existing figure, because scripts written for HTA may run twice."""
    path = tmp_path / "page.html"
    path.write_text("mine")
    FILES[name](job, path)
    assert "<html" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["idle-time", "diff", "compare-operators", "report"])
def test_force_replaces_a_file(job, tmp_path, command) -> None:
    """`--force` replaces an existing file."""
    path = tmp_path / "page.html"
    path.write_text("mine")
    sources = [job, job] if command in {"diff", "compare-operators"} else [job]
    run(command, *sources, "--output" if command == "report" else "--figure", str(path), "--force")
    assert "<html" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FOLDERS)
def test_existing_files_in_a_folder_stay(job, tmp_path, name) -> None:
    """Writing to a folder a second time fails or uses other file names, and does not change the first files."""
    FOLDERS[name](job, tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "cache" not in path.parts}
    try:
        FOLDERS[name](job, tmp_path)
    except InvalidOptionError as error:
        assert "exist" in str(error)  # noqa: PT017 -- one function chooses another name instead
    assert {path: path.read_bytes() for path in files} == files


def test_an_unwritable_plot_is_an_error_before_it_is_shown(tmp_path, monkeypatch) -> None:
    """HTA's `save_graph` checks the folder `images` before it shows the plot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.json").write_text("[[7, 1, 3, 4]]")
    (tmp_path / "images").write_text("mine")
    shown: list[Any] = []
    monkeypatch.setattr(go.Figure, "show", shown.append)
    with pytest.raises(InvalidOptionError, match="images is not a folder"):
        MemoryAnalysis("raw.json").plot_memory_timeline(save_graph=True)
    assert shown == []
    assert (tmp_path / "images").read_text() == "mine"
