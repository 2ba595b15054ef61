"""Once a script has changed `analyzer.t.traces`, every analysis uses the changes or refuses them with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from hta.common.trace import Trace
from hta.common.trace_call_graph import CallGraph
from hta.facade.trace.symbols import TraceSymbolTable
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import LabeledTrace, TraceDiff
from matrices import slow_except

STEP_US = 400


def job(
    *, scale: int = 1, gemm: str = "gemm", with_copies: bool = True, ranks: tuple[int, ...] = (0, 1)
) -> TraceBuilder:
    """Return a job of two steps with every kind of event; rank 1 enters the collective late."""
    builder = TraceBuilder()
    for rank in ranks:
        builder.rank(rank)
        for step in (0, 1):
            _step(builder, step, rank, scale, gemm, with_copies=with_copies)
    return builder


def _step(builder: TraceBuilder, step: int, rank: int, scale: int, gemm: str, *, with_copies: bool) -> None:
    def at(offset: int) -> dict[str, int]:
        return {"start_us": scale * (step * STEP_US + offset)}

    def lasts(duration: int) -> dict[str, int]:
        return {"duration_us": scale * duration}

    def launched(offset: int) -> dict[str, int]:
        return {"launch_us": scale * (step * STEP_US + offset), "launch_duration_us": scale * 2}

    builder.step(step, at(0)["start_us"], scale * 380)
    builder.annotation("## forward ##", **at(5), **lasts(150))
    builder.gpu_annotation("## forward ##", **at(30), **lasts(150))
    builder.operator("aten::linear", **at(10), **lasts(40), args={"External id": step})
    builder.operator("aten::addmm", **at(12), **lasts(30))
    for number in range(3):
        builder.kernel(gemm, **at(40 + 30 * number), **lasts(20), **launched(14 + 3 * number), stream=7)
    builder.operator("c10d::allreduce_", **at(200), **lasts(20))
    builder.collective("allreduce", **at(220 + 10 * rank), **lasts(60 - 10 * rank), **launched(202), stream=20)
    builder.kernel("relu", **at(230), **lasts(30), **launched(206), stream=7)
    if with_copies:
        builder.copy("Memcpy DtoD (Device -> Device)", **at(300), **lasts(10), **launched(290))
    memory = {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512}
    track = {"pid": 1000 + rank, "tid": 1}
    builder.event(ph="i", cat="cpu_instant_event", name="[memory]", ts=at(15)["start_us"], s="t", args=memory, **track)


def opened(builder: TraceBuilder, folder: Any, **options: Any) -> TraceAnalysis:
    """Write a job and open it with all steps."""
    builder.write(folder)
    return TraceAnalysis(trace_dir=str(folder), include_last_profiler_step=True, **options)


CALLS: dict[str, Callable[[TraceAnalysis], object]] = {
    "temporal": lambda a: a.get_temporal_breakdown(visualize=False),
    "overlap": lambda a: a.get_comm_comp_overlap(visualize=False),
    "kernel types": lambda a: a.get_gpu_kernel_breakdown(visualize=False),
    "idle": lambda a: a.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True),
    "launches": lambda a: a.get_cuda_kernel_launch_stats(visualize=False),
    "operator kernels": lambda a: a.get_aten_op_kernels_and_delay(),
    "queue": lambda a: a.get_queue_length_time_series(),
    "queue summary": lambda a: a.get_queue_length_summary(),
    "blocked": lambda a: a.get_time_spent_blocked_on_full_queue(a.get_queue_length_time_series(), 1),
    "bandwidth": lambda a: a.get_memory_bw_time_series(),
    "bandwidth summary": lambda a: a.get_memory_bw_summary(),
    "kernels with annotations": lambda a: a.get_gpu_kernels_with_user_annotations(1),
    "gpu annotations": lambda a: a.get_gpu_user_annotation_breakdown(visualize=False),
    "cpu annotations": lambda a: a.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False),
    "stragglers": lambda a: a.get_potential_stragglers(),
    "stragglers of HTA": lambda a: a.get_potential_stragglers(
        straggler_identification_impl=find_stragglers_with_late_start_comm_kernels
    ),
    "steps": lambda a: a.get_profiler_steps(),
    "step time": lambda a: a.get_step_time_breakdown(visualize=False),
    "gpus": lambda a: a.get_gpu_summary(visualize=False),
    "kernels": lambda a: a.get_kernel_summary(visualize=False),
    "operators": lambda a: a.get_operator_summary(visualize=False),
    "modules": lambda a: a.get_module_summary(visualize=False),
    "distributed": lambda a: a.get_distributed_summary(visualize=False),
    "collectives": lambda a: a.get_communication_operations(),
    "memory curve": lambda a: a.get_memory_curve(visualize=False),
    "memory events": lambda a: a.get_memory_events(),
    "memory statistics": lambda a: a.get_memory_statistics(),
    "recommendations": lambda a: a.get_recommendations(compat="torch_tb_profiler"),
    "counters": lambda a: a.get_cupti_counter_data_with_operators(),
    "critical path": lambda a: a.critical_path_analysis(0, "ProfilerStep", 0)[0].get_critical_path_breakdown(),
    "call stacks": lambda a: stacks_of(a, 1),
    "comparison": lambda a: TraceDiff.compare_traces(LabeledTrace("a", t=a.t), LabeledTrace("b", t=a.t)),
}
"""Name of an analysis -> call."""


def stacks_of(analyzer: TraceAnalysis, rank: int) -> pd.DataFrame:
    """Return the columns that a call graph adds to a frame."""
    CallGraph(analyzer.t, [rank])
    return analyzer.t.get_trace(rank)[list(CallGraph.stack_columns)]


def assert_same(actual: object, expected: object) -> None:
    """Assert that two answers have equal values; ignore symbol ids, and treat 1 and 1.0 as equal."""
    if isinstance(expected, pd.DataFrame):
        assert isinstance(actual, pd.DataFrame)
        shown = [
            name
            for name in expected.columns
            if name not in {"cat", "name", "user_annotation"} or expected[name].dtype == object
        ]
        pd.testing.assert_frame_equal(actual[shown], expected[shown], check_dtype=False)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key, value in expected.items():
            assert_same(actual[key], value)
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    else:
        assert actual == expected


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> TraceAnalysis:
    """Open the unchanged job."""
    return opened(job(), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def doubled(tmp_path_factory) -> TraceAnalysis:
    """Open a job that was written with all times doubled."""
    return opened(job(scale=2), tmp_path_factory.mktemp("doubled"))


def doubled_in_place(analyzer: TraceAnalysis) -> None:
    """Double the start and the duration of every event."""
    for frame in analyzer.t.traces.values():
        for column in ("ts", "dur", "end"):
            frame[column] = 2 * frame[column]


@pytest.fixture(scope="module")
def edited_in_place(tmp_path_factory) -> TraceAnalysis:
    """Double the times in the frames of a job after all analyses have run."""
    analyzer = opened(job(), tmp_path_factory.mktemp("edited"))
    for call in CALLS.values():
        call(analyzer)
    doubled_in_place(analyzer)
    return analyzer


@pytest.fixture(scope="module")
def assigned(tmp_path_factory) -> TraceAnalysis:
    """Replace a job's frames with copies that have doubled times as floats, another row order, and no column `end`."""
    analyzer = opened(job(), tmp_path_factory.mktemp("assigned"))
    for rank in analyzer.t.get_ranks():
        frame = analyzer.t.traces[rank].copy()
        frame = frame.assign(ts=2.0 * frame["ts"], dur=2.0 * frame["dur"]).drop(columns="end")
        analyzer.t.traces[rank] = frame.sample(frac=1, random_state=1)
    return analyzer


QUICK = (
    "temporal",
    "idle",
    "launches",
    "queue",
    "blocked",
    "stragglers",
    "kernels with annotations",
    "step time",
    "operators",
    "memory curve",
)
"""The analyses that the quick tests run: one per table of the trace."""

ARE_NOT_IN_FRAMES = ("memory curve", "memory events", "memory statistics")
"""Analyses of memory events. Frames do not contain these events, so changed frames do not change the results."""


@pytest.mark.parametrize("name", slow_except([call for call in CALLS if call not in ARE_NOT_IN_FRAMES], QUICK))
def test_every_analysis_sees_times_changed_in_place(name, edited_in_place, doubled) -> None:
    """Doubling the times in the frames has the same effect as doubling them in the file."""
    assert_same(CALLS[name](edited_in_place), CALLS[name](doubled))


@pytest.mark.parametrize(
    "name", slow_except([call for call in CALLS if call not in {*ARE_NOT_IN_FRAMES, "call stacks"}], QUICK)
)
def test_every_analysis_sees_assigned_frames(name, assigned, doubled) -> None:
    """Analyses use the frames that a script assigns, even with reordered rows, without `end`, or with floats for integers."""
    assert_same(CALLS[name](assigned), CALLS[name](doubled))


@pytest.mark.parametrize("name", slow_except(CALLS, QUICK))
def test_a_copy_of_a_frame_changes_nothing(name, plain, tmp_path) -> None:
    """Replacing a frame with a copy that has added columns changes no result."""
    analyzer = opened(job(), tmp_path)
    analyzer.t.decode_symbol_ids()
    for rank in analyzer.t.get_ranks():
        analyzer.t.traces[rank] = analyzer.t.traces[rank].copy()
    assert_same(CALLS[name](analyzer), CALLS[name](plain))


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_rows_dropped_from_a_frame_are_gone(tmp_path) -> None:
    """Rows dropped in place or by a filter are missing from every analysis."""
    expected = opened(job(with_copies=False), tmp_path / "without")
    analyzer = opened(job(), tmp_path / "with")
    analyzer.t.decode_symbol_ids(use_shorten_name=False)
    first, second = (analyzer.t.traces[rank] for rank in (0, 1))
    is_copy = first["s_name"].str.contains("Memcpy")
    first.drop(index=first.index[is_copy], inplace=True)  # noqa: PD002 -- as scripts do
    analyzer.t.traces[1] = second[~second["s_name"].str.contains("Memcpy")]
    for name in ("temporal", "kernel types", "idle", "queue summary", "bandwidth", "gpu annotations"):
        assert_same(CALLS[name](analyzer), CALLS[name](expected))


@pytest.mark.slow
def test_names_changed_in_a_frame_are_the_names_of_kernels(tmp_path) -> None:
    """If a script changes names in a frame, analyses use the new names, whether they are symbol ids or texts."""
    expected = opened(job(gemm="sgemm"), tmp_path / "expected")
    for as_texts in (False, True):
        analyzer = opened(job(), tmp_path / f"texts_{as_texts}")
        symbols = analyzer.t.symbol_table
        symbols.add_symbols(["sgemm"])
        for frame in analyzer.t.traces.values():
            numbers = frame["name"].replace(symbols.sym_index["gemm"], symbols.sym_index["sgemm"])
            frame["name"] = numbers.map(symbols.get_sym_table_series()) if as_texts else numbers
        for name in ("kernel types", "launches", "operator kernels", "kernels"):
            assert_same(CALLS[name](analyzer), CALLS[name](expected))


def test_a_renamed_symbol_renames_the_kernels(tmp_path) -> None:
    """If a script assigns a symbol table that maps an id to a new text, events with this id get the new name."""
    expected = opened(job(gemm="sgemm"), tmp_path / "expected")
    analyzer = opened(job(), tmp_path / "renamed")
    analyzer.t.get_all_traces()
    texts = ["sgemm" if text == "gemm" else text for text in analyzer.t.symbol_table.get_sym_table()]
    table = TraceSymbolTable()
    table.add_symbols(texts)
    analyzer.t.symbol_table = table
    assert_same(CALLS["kernel types"](analyzer), CALLS["kernel types"](expected))


def test_rows_added_to_a_frame_are_events(tmp_path) -> None:
    """Analyses include a row that a script adds to a frame: a kernel of 1 ms on a new stream."""
    analyzer = opened(job(ranks=(0,)), tmp_path)
    before = analyzer.get_gpu_kernel_breakdown(visualize=False)[1]
    frame = analyzer.t.traces[0]
    symbols = analyzer.t.symbol_table.get_sym_index()
    kernel = frame[frame["name"] == symbols["relu"]].iloc[[0]].assign(ts=2_000, dur=1_000, end=3_000, stream=99)
    analyzer.t.traces[0] = pd.concat([frame, kernel.assign(index=-1, correlation=-1, index_correlation=-1)])
    _, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False)
    relu = kernels[kernels["name"] == "relu"].iloc[0]
    assert (relu["count"], relu["max (us)"]) == (before[before["name"] == "relu"]["count"].iloc[0] + 1, 1_000)
    assert set(analyzer.get_idle_time_breakdown(visualize=False)[0]["stream"]) >= {99}


def test_duplicated_rows_are_two_events(tmp_path) -> None:
    """Analyses treat duplicated rows as two events, both with the recorded values."""
    analyzer = opened(job(ranks=(0,)), tmp_path)
    expected = analyzer.get_kernel_summary(visualize=False)[1]
    analyzer.t.traces[0] = pd.concat([analyzer.t.traces[0]] * 2)
    kernels = analyzer.get_kernel_summary(visualize=False)[1]
    assert kernels["call_count"].sum() == 2 * expected["call_count"].sum()
    assert kernels["name"].tolist() == expected["name"].tolist()


def test_ranks_are_left_out_and_added(tmp_path) -> None:
    """Scripts can remove ranks with `del` and `pop`, and add ranks without files."""
    analyzer = opened(job(), tmp_path)
    kernels = analyzer.get_temporal_breakdown(visualize=False)
    analyzer.t.traces[5] = analyzer.t.traces[0].copy()
    del analyzer.t.traces[0]
    assert analyzer.t.get_ranks() == [1, 5]
    breakdown = analyzer.get_temporal_breakdown(visualize=False)
    assert breakdown["rank"].tolist() == [1, 5]
    assert (
        breakdown.drop(columns="rank").to_numpy().tolist() == kernels.drop(columns="rank").to_numpy()[[1, 0]].tolist()
    )
    analyzer.t.traces.pop(1)
    assert analyzer.get_temporal_breakdown(visualize=False)["rank"].tolist() == [5]
    with pytest.raises(UnknownRankError):
        analyzer.t.get_trace(0)
    with pytest.raises(UnknownRankError):
        del analyzer.t.traces[0]


def test_all_frames_at_once(tmp_path) -> None:
    """Assigning a dict to `t.traces` replaces all frames."""
    analyzer = opened(job(), tmp_path)
    frames = {rank: frame[frame["stream"] >= 0] for rank, frame in analyzer.t.traces.items()}
    expected = analyzer.get_temporal_breakdown(visualize=False)
    analyzer.t.traces = frames
    assert_same(analyzer.get_temporal_breakdown(visualize=False), expected)
    assert analyzer.t.traces[0] is frames[0]
    assert analyzer.get_cuda_kernel_launch_stats(visualize=False)[0].empty


def test_a_frame_made_by_hand_is_a_rank() -> None:
    """A script can add a rank that has no file, as a frame with the columns that analyses need."""
    trace = Trace(trace_files={}, trace_dir="")
    frame = pd.DataFrame(
        {"cat": "kernel", "name": ["gemm", "nccl_allreduce"], "ts": [0, 5], "dur": [10.5, 10], "stream": [7, 8]}
    )
    trace.traces[3] = frame.assign(pid=0, tid=frame["stream"])
    analyzer = TraceAnalysis.__new__(TraceAnalysis)
    analyzer.t = trace
    overlap = analyzer.get_comm_comp_overlap(visualize=False)
    assert overlap.to_numpy().tolist() == [[3, 55.0]]


def test_a_subclass_brings_its_own_trace(tmp_path) -> None:
    """If a subclass assigns a trace to `self.t`, its analyses use that trace."""
    job().write(tmp_path)

    class OfOneRank(TraceAnalysis):
        def __init__(self, folder: str) -> None:
            self.t = Trace(trace_dir=folder)
            self.t.parse_single_rank(1)
            self.t.align_and_filter_trace(include_last_profiler_step=True)

    analyzer = OfOneRank(str(tmp_path))
    assert analyzer.get_temporal_breakdown(visualize=False)["rank"].tolist() == [1]
    analyzer.t = TraceAnalysis(trace_dir=str(tmp_path)).t
    assert analyzer.get_temporal_breakdown(visualize=False)["rank"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda frame: frame.assign(end=frame["end"] + 1), "the column end in the frame of rank 0 was changed"),
        (
            lambda frame: frame.assign(index_correlation=5),
            "column index_correlation in the frame of rank 0 was changed",
        ),
        (lambda frame: frame.drop(columns="dur"), "has no column dur"),
        (lambda frame: frame.assign(dur=-1), "negative durations"),
        (lambda frame: frame.assign(ts=np.nan), "ts of rank 0 contains"),
        (lambda frame: frame.assign(name=10_000_000), "neither text nor an id of symbol_table"),
    ],
)
def test_changes_that_no_analysis_can_use_are_an_error(change, what, tmp_path) -> None:
    """Changes that no analysis can use raise an error that names the column."""
    analyzer = opened(job(), tmp_path)
    analyzer.t.traces[0] = change(analyzer.t.traces[0])
    for name in ("temporal", "launches", "stragglers"):
        with pytest.raises(InvalidOptionError, match=what):
            CALLS[name](analyzer)


def test_steps_without_events_are_an_error_for_analyses_of_steps(tmp_path) -> None:
    """If the column `iteration` disagrees with the step events, only analyses of steps fail."""
    analyzer = opened(job(), tmp_path)
    analyzer.t.traces[0]["iteration"] += 10
    assert len(CALLS["temporal"](analyzer)) == 2
    for name in ("stragglers", "step time", "distributed", "comparison"):
        with pytest.raises(InvalidOptionError, match="ProfilerStep#N"):
            CALLS[name](analyzer)
