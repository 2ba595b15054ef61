"""TraceAnalysis has HTA's names, arguments and columns, and HTA's numbers where HTA is correct."""

from __future__ import annotations

import inspect
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from holotrace.errors import InvalidOptionError, TraceNotFoundError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.tensorboard_plugin import PluginViews
from hta.trace_analysis import TraceAnalysis
from jobs import cpu_job, gpu_job

TRACES_OF = {
    "param_dlrm": "dlrm_8rank",
    "trace_filter": "two_rank_128",
    "trace_filter__last": "two_rank_128",
    "trace_diff_control": "diff/control",
    "trace_diff_control__last": "diff/control",
    "df_index_resolver": "single_v100",
    "df_index_resolver__last": "single_v100",
}
"""Folder of HTA's results -> folder of the traces, for traces whose results no known HTA bug affects."""

each_golden = pytest.mark.parametrize("name", TRACES_OF)

NEEDED = inspect.Parameter.empty

SIGNATURES: dict[str, dict[str, object]] = {
    "__init__": {
        "trace_files": None,
        "trace_dir": "/tmp/trace",  # noqa: S108
        "include_last_profiler_step": False,
        "parser_config": None,
    },
    "critical_path_analysis": {
        **dict.fromkeys(("rank", "annotation", "instance_id"), inspect.Parameter.empty),
        "data_load_events": None,
    },
    "overlay_critical_path_analysis": {
        **dict.fromkeys(("rank", "critical_path_graph", "output_dir"), inspect.Parameter.empty),
        "only_show_critical_events": True,
        "show_all_edges": False,
    },
    "generate_trace_with_counters": {
        "time_series": None,
        "ranks": None,
        "output_suffix": "_with_counters",
        "output_dir": None,
        "overwrite": True,
    },
    "get_aten_op_kernels_and_delay": {"ranks": None, "sort_by": None},
    "get_comm_comp_overlap": {"visualize": True},
    "get_cuda_kernel_launch_stats": {
        "ranks": None,
        "runtime_cutoff": 50,
        "launch_delay_cutoff": 100,
        "include_memory_events": True,
        "visualize": True,
    },
    "get_cupti_counter_data_with_operators": {"ranks": None},
    "get_frequent_cuda_kernel_sequences": {
        "operator_name": NEEDED,
        "output_dir": NEEDED,
        "min_pattern_len": 3,
        "rank": 0,
        "top_k": 5,
        "visualize": False,
        "compress_other_kernels": True,
    },
    "get_gpu_kernel_breakdown": {
        "visualize": True,
        "duration_ratio": 0.8,
        "num_kernels": 10,
        "include_memory_kernels": True,
        "image_renderer": "",
    },
    "get_gpu_kernels_with_user_annotations": {
        "rank": NEEDED,
        "expand_names": True,
        "shorten_names": True,
        "shortern_names": None,
    },
    "get_gpu_user_annotation_breakdown": {
        "use_gpu_annotation": True,
        "visualize": True,
        "duration_ratio": 0.8,
        "num_kernels": 1000,
        "allowlist_patterns": None,
        "image_renderer": None,
    },
    "get_idle_time_breakdown": {
        "ranks": None,
        "streams": None,
        "visualize": True,
        "visualize_pctg": True,
        "show_idle_interval_stats": False,
        "consecutive_kernel_delay": 30,
    },
    "get_memory_bw_summary": {"ranks": None},
    "get_memory_bw_time_series": {"ranks": None},
    # The default method compares waiting times; to use HTA's own method, callers pass it as a function.
    "get_potential_stragglers": {
        "profiler_steps": None,
        "num_candidates": 2,
        "visualize": False,
        "straggler_identification_impl": None,
    },
    "get_profiler_steps": {},
    "get_queue_length_summary": {"ranks": None},
    "get_queue_length_summary_from_time_series": {"queue_length_dict": NEEDED},
    "get_queue_length_time_series": {"ranks": None},
    "get_temporal_breakdown": {"visualize": True},
    "get_time_spent_blocked_on_full_queue": {
        "queue_length_dict": NEEDED,
        "max_queue_length": 1024,
    },
}
"""Method -> {parameter: default}, in HTA's order."""


def analysis_of(builder: TraceBuilder, folder: Path, **options) -> TraceAnalysis:
    """Write a job and open it with `TraceAnalysis`."""
    builder.write(folder)
    return TraceAnalysis(trace_dir=str(folder), **options)


@pytest.fixture
def shown(monkeypatch) -> list[str | None]:
    """Record the renderer of each figure that is shown, instead of showing it."""
    renderers: list[str | None] = []
    monkeypatch.setattr(go.Figure, "show", lambda _, renderer=None: renderers.append(renderer))
    return renderers


@pytest.fixture
def small(tmp_path) -> TraceAnalysis:
    """Open the small GPU job."""
    return analysis_of(gpu_job(), tmp_path)


def answer(goldens: Path, name: str, call: str) -> pd.DataFrame:
    """Return HTA's result as a frame."""
    path = goldens / "hta" / name / f"{call}.csv"
    return pd.read_csv(path if path.exists() else path.with_suffix(".csv.gz"), index_col=0).reset_index(drop=True)


def same_job(real_traces: Path, name: str) -> TraceAnalysis:
    """Open the traces of an HTA result with our `TraceAnalysis`."""
    return TraceAnalysis(
        trace_dir=str(real_traces / TRACES_OF[name]), include_last_profiler_step=name.endswith("__last")
    )


@each_golden
def test_temporal_breakdown_equals_htas(real_traces, goldens, name) -> None:
    """All columns and numbers equal HTA's."""
    ours = same_job(real_traces, name).get_temporal_breakdown(visualize=False)
    pd.testing.assert_frame_equal(ours, answer(goldens, name, "get_temporal_breakdown"), check_dtype=False)


@each_golden
def test_overlap_equals_htas(real_traces, goldens, name) -> None:
    """All columns and numbers equal HTA's."""
    ours = same_job(real_traces, name).get_comm_comp_overlap(visualize=False)
    pd.testing.assert_frame_equal(ours, answer(goldens, name, "get_comm_comp_overlap"), check_dtype=False)


@each_golden
def test_kernel_types_equal_htas(real_traces, goldens, name) -> None:
    """The time of each kind of kernel equals HTA's; HTA sometimes also lists kinds with a time of 0."""
    ours = same_job(real_traces, name).get_gpu_kernel_breakdown(visualize=False)[0]
    theirs = answer(goldens, name, "get_gpu_kernel_breakdown.0").query("sum > 0").reset_index(drop=True)
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)


@each_golden
def test_kernels_equal_htas_where_nothing_was_grouped(real_traces, goldens, name) -> None:
    """If all kernels are requested, HTA groups none of them, and its statistics equal ours."""
    facade = same_job(real_traces, name)
    ours = facade.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=10_000)[1]
    theirs = answer(goldens, name, "get_gpu_kernel_breakdown.all.1")
    assert list(ours.columns) == [*theirs.columns, "count"]
    joined = ours.merge(theirs, on=["name", "kernel_type", "rank"], suffixes=("", " of HTA"), how="right")
    for column in ("sum (us)", "max (us)", "min (us)", "mean (us)", "stddev"):
        np.testing.assert_allclose(joined[column], joined[f"{column} of HTA"], rtol=1e-9, err_msg=column)


@each_golden
def test_idle_time_of_a_stream_equals_htas_in_sum(real_traces, goldens, name) -> None:
    """A stream's total idle time equals HTA's, although the times of the categories differ.

    HTA assigns each gap to one category; we split the gap at the launch of the next work.
    """
    of_ranks = sorted((goldens / "hta" / name).glob("get_idle_time_breakdown.rank*.0.csv"))
    theirs = pd.concat([pd.read_csv(path, index_col=0) for path in of_ranks])
    ours, _ = same_job(real_traces, name).get_idle_time_breakdown(visualize=False)
    keys = ["rank", "stream"]
    sums = [frame.groupby(keys)["idle_time"].sum() for frame in (ours, theirs)]
    pd.testing.assert_series_equal(*sums, check_dtype=False)


@each_golden
def test_profiler_steps_equal_htas(real_traces, goldens, name) -> None:
    """The step numbers equal HTA's, without the last step unless it is requested."""
    path = goldens / "hta" / name / "get_profiler_steps.json"
    assert same_job(real_traces, name).get_profiler_steps() == pd.read_json(path, typ="series").tolist()


def test_signatures_equal_htas() -> None:
    """Parameters, their order and their defaults equal HTA's, so positional calls of old scripts still work."""
    methods = dict(inspect.getmembers(TraceAnalysis, inspect.isfunction))
    public = {name: method for name, method in methods.items() if not name.startswith("_") or name == "__init__"}
    not_of_hta = {"dashboard", *vars(PluginViews)}
    of_hta = {name: defaults_of(method) for name, method in public.items() if name not in not_of_hta}
    assert of_hta == SIGNATURES


def defaults_of(method: Callable[..., object]) -> dict[str, object]:
    """Return {parameter: default}, without the parameter `self`."""
    return {parameter.name: parameter.default for parameter in list(inspect.signature(method).parameters.values())[1:]}


def test_whole_times_are_integers(small) -> None:
    """Times in whole microseconds are integers, such as 40 for an idle time of 40 µs."""
    frame = small.get_temporal_breakdown(visualize=False)
    assert frame.iloc[0].to_dict() == {
        "rank": 0,
        "idle_time(us)": 40,
        "compute_time(us)": 50,
        "non_compute_time(us)": 20,
        "kernel_time(us)": 110,
        "idle_time_pctg": 36.36,
        "compute_time_pctg": 45.45,
        "non_compute_time_pctg": 18.18,
    }
    assert frame["idle_time(us)"].dtype == np.int64


def test_times_have_exact_thousandths(tmp_path) -> None:
    """The result contains the full 1.234 µs of a kernel; HTA would round this time to 0 or 1 µs."""
    builder = TraceBuilder().kernel("gemm", start_us=0.001, duration_us=1.234)
    frame = analysis_of(builder, tmp_path).get_temporal_breakdown(visualize=False)
    assert frame["compute_time(us)"].to_list() == [1.234]


def test_devices_of_a_rank_are_added_up(tmp_path) -> None:
    """A rank with two devices has one row; kernels of 10 and 30 µs add up to 40."""
    builder = (
        TraceBuilder().kernel("gemm", start_us=0, duration_us=10).kernel("gemm", start_us=0, duration_us=30, device=1)
    )
    frame = analysis_of(builder, tmp_path).get_temporal_breakdown(visualize=False)
    assert frame["kernel_time(us)"].to_list() == [40]


def test_a_silent_rank_has_no_overlap(small) -> None:
    """A rank that does not communicate has an overlap of NaN, without a division warning."""
    frame = small.get_comm_comp_overlap(visualize=False)
    assert frame["comp_comm_overlap_pctg"].to_list() == [50.0, pytest.approx(float("nan"), nan_ok=True)]


def test_kernel_types_leave_out_other_work_and_memory_on_request(tmp_path) -> None:
    """The overlap of a kernel and a copy is a separate type, and disappears if memory kernels are left out."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=10).copy(start_us=5, duration_us=15, stream=8)
    facade = analysis_of(builder, tmp_path)
    with_memory, _ = facade.get_gpu_kernel_breakdown(visualize=False)
    assert dict(zip(with_memory["kernel_type"], with_memory["sum"], strict=True)) == {
        "MEMORY": 10,
        "COMPUTATION": 5,
        "COMPUTATION overlapping MEMORY": 5,
    }
    without, kernels = facade.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=False)
    assert without.to_dict("list") == {"kernel_type": ["COMPUTATION"], "sum": [10], "percentage": [100.0]}
    assert kernels["name"].to_list() == ["gemm"]


def many_kernels() -> tuple[TraceBuilder, dict[str, list[int]]]:
    """Return 12 kernels and the durations of their calls; k0 takes about half of the time."""
    durations = {"k0": [60, 61], **{f"k{n}": [10 - n // 2, 11] for n in range(1, 12)}}
    builder, start = TraceBuilder(), 0
    for name, lengths in durations.items():
        for length in lengths:
            builder.kernel(name, start_us=start, duration_us=length)
            start += length
    return builder, durations


def test_others_have_the_statistics_of_their_calls(tmp_path) -> None:
    """The row `others` has statistics of all merged calls; HTA computes these statistics from the sums per name."""
    builder, durations = many_kernels()
    frame = analysis_of(builder, tmp_path).get_gpu_kernel_breakdown(visualize=False, num_kernels=3, duration_ratio=1)[1]
    kept = [name for name in frame["name"] if name != "others"]
    assert len(kept) == 3
    others = frame.set_index("name").loc["others"]
    calls = [length for name, lengths in durations.items() if name not in kept for length in lengths]
    assert others["count"] == len(calls)
    assert others["sum (us)"] == sum(calls)
    assert (others["min (us)"], others["max (us)"]) == (min(calls), max(calls))
    assert others["mean (us)"] == pytest.approx(statistics.mean(calls))
    assert others["stddev"] == pytest.approx(statistics.stdev(calls))


def test_the_duration_ratio_is_a_share_of_time(tmp_path) -> None:
    """With a ratio of 0.3, k0 alone covers 30 % of the time; the rest becomes `others`."""
    builder, _ = many_kernels()
    frame = analysis_of(builder, tmp_path).get_gpu_kernel_breakdown(visualize=False, duration_ratio=0.3)[1]
    assert frame["name"].to_list() == ["k0", "others"]


def test_few_kernels_are_never_grouped(tmp_path) -> None:
    """Up to `num_kernels` kernels are shown one by one, regardless of `duration_ratio`."""
    builder, durations = many_kernels()
    facade = analysis_of(builder, tmp_path)
    frame = facade.get_gpu_kernel_breakdown(visualize=False, duration_ratio=0.1, num_kernels=12)[1]
    assert set(frame["name"]) == set(durations)


def test_kernels_are_sorted_by_type_name_and_rank(small) -> None:
    """Kernels are sorted by type, name and rank, as in HTA."""
    frame = small.get_gpu_kernel_breakdown(visualize=False)[1]
    keys = list(zip(frame["kernel_type"], frame["name"], frame["rank"], strict=True))
    assert keys == sorted(keys)
    assert frame.index.to_list() == list(range(4))


def test_idle_time_has_htas_columns(small) -> None:
    """Each stream has a row for each of HTA's three categories, with its fraction of the stream's idle time."""
    frame, statistics_ = small.get_idle_time_breakdown(visualize=False)
    assert statistics_ is None
    assert list(frame.columns) == ["rank", "stream", "idle_category", "idle_time", "idle_time_ratio", "device"]
    of_stream = frame[(frame["rank"] == 0) & (frame["stream"] == 7)]
    assert of_stream[["idle_category", "idle_time", "idle_time_ratio"]].to_numpy().tolist() == [
        ["host_wait", 40, 0.67],
        ["kernel_wait", 20, 0.33],
        ["other", 0, 0.0],
    ]


def test_idle_statistics_have_htas_columns(small) -> None:
    """Statistics of idle intervals have HTA's columns in microseconds, indexed by category."""
    _, frame = small.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True)
    columns = ["rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max", "device"]
    assert (list(frame.columns), frame.index.name) == (columns, "idle_category")
    assert frame.loc["host_wait"].query("rank == 0 and stream == 7")["mean"].to_list() == [40.0]


def test_idle_time_of_chosen_ranks_and_streams(small) -> None:
    """Ranks and streams can be selected. By default, all ranks are analysed; HTA analyses only rank 0."""
    everything, _ = small.get_idle_time_breakdown(visualize=False)
    assert sorted(set(everything["rank"])) == [0, 1]
    chosen, _ = small.get_idle_time_breakdown(ranks=[0], streams=[20], visualize=False)
    assert set(zip(chosen["rank"], chosen["stream"], strict=True)) == {(0, 20)}
    with pytest.raises(UnknownRankError):
        small.get_idle_time_breakdown(ranks=[9], visualize=False)
    with pytest.raises(InvalidOptionError, match=r"there is no stream 9 in this trace; its streams are: 7, 20$"):
        small.get_idle_time_breakdown(streams=[7, 9], visualize=False)


def test_the_kernel_delay_is_in_microseconds(small) -> None:
    """A wait of 20 µs is `kernel_wait` only if `consecutive_kernel_delay` is above 20; otherwise, it is `other`."""
    frame, _ = small.get_idle_time_breakdown(ranks=[0], streams=[7], visualize=False, consecutive_kernel_delay=20)
    assert frame["idle_time"].to_list() == [40, 0, 20]


def test_figures_are_shown_by_default(small, shown) -> None:
    """Methods show figures by default, with plotly's default renderer or the given one."""
    small.get_temporal_breakdown()
    small.get_comm_comp_overlap()
    small.get_gpu_kernel_breakdown(image_renderer="png")
    small.get_idle_time_breakdown()
    assert shown == [None, None, "png", None]
    small.get_temporal_breakdown(visualize=False)
    assert len(shown) == 4


def test_the_last_step_is_kept_only_on_request(tmp_path) -> None:
    """The last step, in which recordings often end, is dropped unless requested."""
    builder = TraceBuilder().step(1, 0, 10).step(2, 10, 10)
    builder.kernel("gemm", start_us=5, duration_us=1, launch_us=2).kernel(
        "gemm", start_us=15, duration_us=2, launch_us=12
    )
    without, whole = (analysis_of(builder, tmp_path, include_last_profiler_step=last) for last in (False, True))
    assert (without.get_profiler_steps(), whole.get_profiler_steps()) == ([1], [1, 2])
    assert without.get_temporal_breakdown(visualize=False)["compute_time(us)"].to_list() == [1]
    assert whole.get_temporal_breakdown(visualize=False)["compute_time(us)"].to_list() == [3]


def test_trace_files_may_be_given_with_their_ranks(tmp_path) -> None:
    """File names are relative to the folder; absolute paths are allowed."""
    first, second = gpu_job().write(tmp_path)
    facade = TraceAnalysis(trace_files={4: first.name, 6: str(second)}, trace_dir=str(tmp_path))
    assert facade.t.get_ranks() == [4, 6]
    assert facade.t.trace_files == {4: str(first), 6: str(second)}


def test_trace_files_may_be_a_list(tmp_path, monkeypatch) -> None:
    """A path like `./name` is relative to the current folder; the ranks are read from the files."""
    paths = gpu_job().write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert TraceAnalysis(trace_files=[f"./{path.name}" for path in paths]).t.get_ranks() == [0, 1]


def test_a_missing_folder_is_a_clear_error(tmp_path) -> None:
    """The error says that the folder does not exist; HTA raises an AssertionError without a message."""
    with pytest.raises(TraceNotFoundError, match="missing does not exist"):
        TraceAnalysis(trace_dir=str(tmp_path / "missing"))


def tables_of(facade: TraceAnalysis) -> list[pd.DataFrame]:
    """Return the frames of four analyses."""
    return [
        facade.get_temporal_breakdown(),
        *facade.get_gpu_kernel_breakdown(),
        *facade.get_idle_time_breakdown(show_idle_interval_stats=True),
        facade.get_comm_comp_overlap(),
    ]


def test_a_job_without_gpu_work_says_why(tmp_path, shown) -> None:
    """Without GPU work, frames are empty with a reason and the usual types, and no figure is shown; HTA fails."""
    without = tables_of(analysis_of(cpu_job(), tmp_path / "cpu"))
    assert shown == []
    for empty, with_work in zip(without, tables_of(analysis_of(gpu_job(), tmp_path / "gpu")), strict=True):
        assert re.search(r"has no GPU kernels .*ProfilerActivity\.CUDA", empty.attrs["reason"])
        assert empty.dtypes.to_dict() == with_work.dtypes.to_dict()
        assert empty.index.name == with_work.index.name
    *tables, overlap = without
    assert [len(table) for table in tables] == [0] * 5
    assert overlap["rank"].tolist() == [0, 1]
    assert overlap["comp_comm_overlap_pctg"].isna().all()


def test_idle_statistics_need_a_request_without_gpu_work_too(tmp_path) -> None:
    """The second result, the statistics, is None unless requested, even for a job without GPU work."""
    assert analysis_of(cpu_job(), tmp_path).get_idle_time_breakdown(visualize=False)[1] is None


def test_t_has_the_attributes_that_scripts_read(tmp_path) -> None:
    """`analyzer.t` has the folder, ranks, steps and metadata of the files."""
    facade = analysis_of(cpu_job().rank(0).header(traceName="mine"), tmp_path)
    assert facade.t.is_parsed
    assert facade.t.trace_path == str(tmp_path)
    assert facade.t.get_ranks() == [0, 1]
    assert facade.t.get_iterations() == facade.t.get_iterations(1) == [3]
    assert facade.t.meta_data[0]["distributedInfo"]["rank"] == 0
    with pytest.raises(UnknownRankError):
        facade.t.get_iterations(9)


@pytest.mark.slow
def test_a_script_with_one_question_does_not_load_figures(tmp_path) -> None:
    """A breakdown without a figure imports neither plotly nor the modules of other analyses."""
    TraceBuilder().kernel("gemm", start_us=0, duration_us=1).write(tmp_path)
    script = (
        "import sys\n"
        "from hta.trace_analysis import TraceAnalysis\n"
        f"TraceAnalysis(trace_dir={str(tmp_path)!r}).get_temporal_breakdown(visualize=False)\n"
        "print(sorted(name for name in sys.modules if name in {'plotly', 'jinja2', 'networkx', 'holotrace.whole_job.summary',"
        " 'hta.tensorboard_plugin.recommendations', 'hta.facade.graphs.critical_path', 'holotrace.analyses.idle_time.compute'}))\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert process.stdout == "[]\n"


def test_the_facade_imports_no_pandas_before_it_reads() -> None:
    """`import hta.trace_analysis` does not import pandas; the first read of a trace does."""
    script = "import sys, hta.trace_analysis; print({'pandas', 'pyarrow'} & {*sys.modules})"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert process.stdout == "set()\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_forked_while_pandas_is_imported_can_import_it() -> None:
    """A fork waits until another thread has imported pandas, because that thread would not exist in the child."""
    script = (
        "import os\n"
        "import hta.trace_analysis\n"
        "from hta.facade.imports.modules_later import import_pandas_aside\n"
        "import_pandas_aside()\n"
        "child = os.fork()\n"
        "import pandas\n"
        "sum = int(pandas.Series([40, 2]).sum())\n"
        "os._exit(sum) if child == 0 else print(sum, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    quiet = "ignore::DeprecationWarning"  # Python 3.12 warns of forks of processes with threads
    command = [sys.executable, "-W", quiet, "-c", script]
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    assert (process.stdout, process.stderr) == ("42 42\n", "")
