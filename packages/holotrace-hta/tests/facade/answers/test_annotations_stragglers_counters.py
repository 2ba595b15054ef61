"""Annotations, stragglers and counters with HTA's columns, and HTA's own numbers for real traces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from hta.trace_analysis import TraceAnalysis
from matrices import slow_except

FOLDERS = {
    "param_dlrm": "dlrm_8rank",
    "trace_filter": "two_rank_128",
    "trace_diff_control": "diff/control",
    "trace_diff_test": "diff/test",
    "df_index_resolver": "single_v100",
    "ns_resolution_trace": "ns_resolution",
    "critical_path_simple_add": "critical_path/simple_add",
    "critical_path_alexnet": "critical_path/alexnet",
    "critical_path_cuda_event_sync": "critical_path/event_sync",
    "cupti_profiler": "cupti",
    "amd_trace": "amd_mi250",
    "mtia_inference_trace": "mtia_inference",
    "triton_example": "triton",
}
BREAKDOWNS = (
    "param_dlrm",
    "trace_filter",
    "trace_filter__last",
    "trace_diff_control__last",
    "trace_diff_test",
    "df_index_resolver",
    "critical_path_simple_add",
    "critical_path_alexnet",
    "critical_path_cuda_event_sync",
    "cupti_profiler",
    "ns_resolution_trace__nsfull",
    "amd_trace__nsfull",
    "mtia_inference_trace__nsfull",
    "triton_example__nsfull",
)
"""Results for traces in whole µs, and for traces in nanoseconds that HTA read without rounding."""


@pytest.fixture
def opened(real_traces: Path, goldens: Path):
    """Open the trace from which HTA computed a golden, and return it with the golden's folder."""

    def open_one(golden: str) -> tuple[TraceAnalysis, Path]:
        name, _, suffix = golden.partition("__")
        last = suffix == "last"
        analysis = TraceAnalysis(trace_dir=str(real_traces / FOLDERS[name]), include_last_profiler_step=last)
        return analysis, goldens / "hta" / golden

    return open_one


def analysis_of(builder: TraceBuilder, folder: Path) -> TraceAnalysis:
    """Write a job and open it with `TraceAnalysis`."""
    builder.write(folder / "job")
    return TraceAnalysis(trace_dir=str(folder / "job"))


def annotated() -> TraceBuilder:
    """Return a job with a kernel inside `forward` and one outside, with their launches."""
    return (
        TraceBuilder()
        .step(4, 0, 50)
        .gpu_annotation("forward", start_us=10, duration_us=10)
        .kernel("void f<int>(int)", start_us=12, duration_us=2, launch_us=3)
        .kernel("g", start_us=25, duration_us=2)
    )


def test_each_kernel_has_its_annotation(tmp_path) -> None:
    """For each kernel, the frame has the launch, the step, and the annotation as symbol id and as text."""
    analysis = analysis_of(annotated(), tmp_path)
    frame = analysis.get_gpu_kernels_with_user_annotations(0)
    table = analysis.t.symbol_table.get_sym_table()
    assert [table[number] for number in frame["name"]] == ["void f<int>(int)", "g"]
    assert [table[number] if number >= 0 else number for number in frame["user_annotation"]] == ["forward", -1]
    columns = ["index", "ts", "dur", "stream", "index_correlation", "iteration", "s_name", "s_cat", "s_user_annotation"]
    assert frame[columns].to_numpy().tolist() == [
        [3, 12, 2, 7, 2, 4, "f", "kernel", "forward"],
        [4, 25, 2, 7, -1, 4, "g", "kernel", ""],
    ]


def test_names_are_expanded_only_on_request(tmp_path) -> None:
    """Without `expand_names`, no text columns are added; without `shorten_names`, names are complete."""
    analysis = analysis_of(annotated(), tmp_path)
    assert not {"s_name", "s_cat"} & set(analysis.get_gpu_kernels_with_user_annotations(0, expand_names=False).columns)
    whole = analysis.get_gpu_kernels_with_user_annotations(0, shorten_names=False)
    assert whole["s_name"].tolist() == ["void f<int>(int)", "g"]


def test_an_unknown_rank_is_an_error_that_lists_the_ranks(tmp_path) -> None:
    """The error for the unknown rank 5 lists the only rank of the trace, 0."""
    with pytest.raises(UnknownRankError, match="its ranks are: 0"):
        analysis_of(annotated(), tmp_path).get_gpu_kernels_with_user_annotations(5)


def test_a_rank_without_device_work_has_an_empty_frame(tmp_path) -> None:
    """The frame of a rank without device work is empty and has the usual columns."""
    builder = TraceBuilder().annotation("load", start_us=0, duration_us=5)
    frame = analysis_of(builder, tmp_path).get_gpu_kernels_with_user_annotations(0)
    assert len(frame) == 0
    assert {"ts", "user_annotation", "s_user_annotation"} <= set(frame.columns)


@pytest.mark.parametrize("golden", ["amd_trace__nsfull", "ns_resolution_trace__nsfull"])
def test_annotations_of_kernels_equal_htas(opened, golden) -> None:
    """Every kernel has the same name, annotation, stream and correlation as in HTA."""
    analysis, folder = opened(golden)
    (path,) = folder.glob("get_gpu_kernels_with_user_annotations.rank0.csv*")
    theirs = pd.read_csv(path, index_col=0, keep_default_na=False).sort_values("index")
    ours = analysis.get_gpu_kernels_with_user_annotations(0, shorten_names=False).sort_values("index")
    columns = ["index", "s_name", "s_user_annotation", "stream", "correlation"]
    assert ours[columns].to_numpy().tolist() == theirs[columns].to_numpy().tolist()


@pytest.mark.parametrize("golden", slow_except(BREAKDOWNS, BREAKDOWNS[:3]))
@pytest.mark.parametrize("side", ["cpu", "gpu"])
def test_statistics_of_annotations_equal_htas(opened, golden, side) -> None:
    """The statistics of every name equal HTA's; without GPU annotations, HTA has no answer to compare with."""
    analysis, folder = opened(golden)
    ours = analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=side == "gpu", visualize=False)
    path = folder / f"get_gpu_user_annotation_breakdown.{side}.csv"
    assert list(ours.columns) == ["name", "sum (us)", "max (us)", "min (us)", "stddev", "mean (us)", "rank"]
    if not path.exists():
        return
    theirs = pd.read_csv(path, index_col=0)
    pd.testing.assert_frame_equal(
        ours.sort_values(["rank", "name"], ignore_index=True),
        theirs.sort_values(["rank", "name"], ignore_index=True),
        check_dtype=False,
        rtol=1e-6,
    )


def many() -> TraceBuilder:
    """Return a job with host annotations of 50, 20, 20, 10 and 5 µs."""
    builder = TraceBuilder()
    parts = [("a", 50), ("b", 20), ("b", 20), ("c", 10), ("step 5", 5)]
    for row, (name, duration) in enumerate(parts):
        builder.annotation(name, start_us=100 * row, duration_us=duration)
    return builder


def test_names_beyond_the_cut_off_become_others(tmp_path) -> None:
    """Names beyond the cut-off become `others`, with statistics over their calls; names on the allowlist are kept."""
    analysis = analysis_of(many(), tmp_path)
    options = {"use_gpu_annotation": False, "visualize": False, "num_kernels": 1, "duration_ratio": 0.9}
    frame = analysis.get_gpu_user_annotation_breakdown(**options)
    assert frame[["name", "sum (us)", "max (us)", "min (us)", "mean (us)"]].to_numpy().tolist() == [
        ["a", 50, 50, 50, 50],
        ["others", 55, 20, 5, 55 / 4],
    ]
    assert frame["stddev"].tolist() == [0, pytest.approx(np.std([20, 20, 10, 5], ddof=1))]
    allowed = analysis.get_gpu_user_annotation_breakdown(**options, allowlist_patterns=[r"^step \d$"])
    assert allowed["name"].tolist() == ["a", "others", "step 5"]


def test_an_invalid_pattern_is_an_error(tmp_path) -> None:
    """A pattern that is not a regular expression raises an error that names `allowlist_patterns`."""
    with pytest.raises(InvalidOptionError, match="allowlist_patterns"):
        analysis_of(many(), tmp_path).get_gpu_user_annotation_breakdown(allowlist_patterns=["("], visualize=False)


@pytest.mark.parametrize("golden", ["param_dlrm", "trace_filter", "trace_filter__last"])
@pytest.mark.parametrize("count", [1, 2])
def test_htas_own_method_gives_its_answer(opened, golden, count) -> None:
    """With `find_stragglers_with_late_start_comm_kernels`, `get_potential_stragglers` returns the same ranks as HTA."""
    analysis, folder = opened(golden)
    theirs = json.loads((folder / f"get_potential_stragglers.n{count}.json").read_text())
    ranks = analysis.get_potential_stragglers(
        num_candidates=count, straggler_identification_impl=find_stragglers_with_late_start_comm_kernels
    )
    assert ranks == theirs


def late_rank() -> TraceBuilder:
    """Return a job with three steps; rank 1 is late in step 0, and rank 0 in step 1."""
    builder = TraceBuilder()
    for rank, durations in enumerate([(30, 5, 5), (10, 45, 5)]):
        builder.rank(rank)
        for step, duration in enumerate(durations):
            builder.step(step, 100 * step, 100).collective(start_us=100 * step + 20, duration_us=duration)
    return builder


def test_the_default_compares_waits(tmp_path) -> None:
    """The default method compares waits, drops the last step (step 2), and ignores steps that do not exist."""
    analysis = analysis_of(late_rank(), tmp_path)
    assert analysis.get_potential_stragglers(num_candidates=1) == [0]
    assert analysis.get_potential_stragglers([0, 99], 0) == [1]


def test_steps_that_do_not_exist_are_an_error(tmp_path) -> None:
    """If no given step exists, a ValueError lists the existing steps, as in HTA."""
    with pytest.raises(ValueError, match="its steps are: 0, 1"):
        analysis_of(late_rank(), tmp_path).get_potential_stragglers([99])


def test_another_method_gets_the_events_of_the_steps(tmp_path) -> None:
    """A method passed as an argument receives four things: events, symbol table, number of candidates, `visualize`."""
    seen = []

    def longest(frame: pd.DataFrame, symbols: object, count: int, visualize: bool) -> pd.Series:  # noqa: FBT001
        seen.append((set(frame["rank"]), set(frame["iteration"]), symbols, count, visualize))
        return frame.groupby("rank")["dur"].max()

    analysis = analysis_of(late_rank(), tmp_path)
    assert analysis.get_potential_stragglers([0], 1, straggler_identification_impl=longest) == [0]
    assert seen == [({0, 1}, {0}, analysis.t.symbol_table, 1, False)]


def test_figures_are_shown_on_request(tmp_path, monkeypatch) -> None:
    """The method for annotations shows a figure by default; the method for stragglers shows one only if asked to."""
    shown = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure, **_: shown.append(figure.layout.title.text))
    analysis = analysis_of(late_rank(), tmp_path)
    analysis.get_potential_stragglers(visualize=True)
    analysis.get_gpu_user_annotation_breakdown()
    assert shown == ["Which rank do the others wait for?", "How long do the annotated parts take?"]


def test_counters_with_operators_equal_htas(opened) -> None:
    """Counters, times and operators equal HTA's in every row."""
    analysis, folder = opened("cupti_profiler")
    (ours,) = analysis.get_cupti_counter_data_with_operators([0])
    theirs = pd.read_csv(folder / "get_cupti_counter_data_with_operators.0.csv.gz", index_col=0)
    theirs["op_stack"] = theirs["op_stack"].map(lambda text: json.loads(text.replace("'", '"')))
    columns = [name for name in theirs.columns if name.startswith("smsp__")]
    columns += ["index", "cat", "name", "ts", "dur", "index_runtime", "op_stack", "top_level_op", "bottom_level_op"]
    pd.testing.assert_frame_equal(ours[columns], theirs[columns], check_dtype=False)


def test_a_job_without_counters_has_no_frames(tmp_path) -> None:
    """For a job without hardware counters, the list is empty, as in HTA."""
    assert analysis_of(late_rank(), tmp_path).get_cupti_counter_data_with_operators() == []
