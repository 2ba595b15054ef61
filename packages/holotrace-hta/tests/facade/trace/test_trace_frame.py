"""The frame of a rank, and other attributes of `analyzer.t`."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from holotrace import open_trace
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.facade.trace.trace_frame import COLUMNS
from hta.facade.trace.trace_view import TraceView

GOLDENS = {
    "trace_diff_control": "diff/control",
    "trace_diff_control__last": "diff/control",
    "param_dlrm": "dlrm_8rank",
    "trace_filter": "two_rank_128",
    "cupti_profiler": "cupti",
    "ns_resolution_trace__nsfull": "ns_resolution",
    "amd_trace__nsfull": "amd_mi250",
    "mtia_inference_trace__nsfull": "mtia_inference",
}
"""Folder of HTA's results -> folder of the traces."""


def view_of(builder: TraceBuilder) -> TraceView:
    """Return `analyzer.t` of a job."""
    return TraceView(builder.build(), "folder")


@pytest.mark.parametrize("name", GOLDENS)
def test_the_frames_equal_htas(real_traces, goldens, name) -> None:
    """Ranks, rows by category and stream, steps, columns and durations equal HTA's."""
    trace = open_trace(real_traces / GOLDENS[name], cache=False)
    view = TraceView(trace if name.endswith("__last") else trace.where(before_last_step), "")
    theirs = json.loads((goldens / "hta" / name / "trace_info.json").read_text(encoding="utf-8"))
    assert view.get_ranks() == theirs["ranks"]
    for rank, frame in view.get_all_traces().items():
        texts = view.symbol_table.get_sym_table()
        categories = {texts[number]: count for number, count in frame["cat"].value_counts().items()}
        assert len(frame) == theirs["rows"][str(rank)]
        assert categories == theirs["cats"][str(rank)]
        assert {str(key): count for key, count in frame["stream"].value_counts().items()} == theirs["streams"][
            str(rank)
        ]
        assert sorted(set(frame["iteration"]) - {-1}) == theirs["iterations"][str(rank)]
        assert set(COLUMNS) <= set(theirs["columns"][str(rank)])
        assert frame["ts"].max() - frame["ts"].min() == pytest.approx(theirs["duration"][str(rank)], abs=1)


def test_the_columns_of_a_launch() -> None:
    """`index_correlation` links a kernel and its launch; both have the same step; `ts` starts at the first event."""
    builder = TraceBuilder(base_time_ns=1_000_000)
    builder.step(3, 100, 50).operator("aten::mm", start_us=101, duration_us=9.5, args={"External id": 5, "Stream": 0})
    builder.kernel("gemm", start_us=200, duration_us=7, launch_us=102, correlation=8)
    view = view_of(builder)

    frame = view.get_trace(0)
    view.decode_symbol_ids()

    chosen = ["s_name", "ts", "dur", "end", "stream", "correlation", "iteration", "external_id"]
    assert frame[chosen].to_numpy().tolist() == [
        ["ProfilerStep#3", 0, 50, 50, -1, -1, 3, -1],
        ["aten::mm", 1, 9.5, 10.5, -1, -1, 3, 5],
        ["cudaLaunchKernel", 2, 1, 3, -1, 8, 3, -1],
        ["gemm", 100, 7, 107, 7, 8, 3, -1],
    ]
    launch, kernel = frame["index"].tolist()[2:]
    assert frame["index_correlation"].tolist() == [-1, -1, kernel, launch]
    assert frame.index.tolist() == frame["index"].tolist()
    assert view.min_ts == 100  # in µs on the clock of the file
    assert view.get_trace_start_unixtime_ns(0) == 1_100_000
    assert view.get_trace_duration() == 107


def test_one_launch_of_many_kernels_is_linked_from_each_of_them() -> None:
    """Each kernel of a CUDA graph is linked to the launch call, but this call is linked only to the first kernel."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=1, correlation=5)
    for start in (10, 20):
        builder.kernel("node", start_us=start, duration_us=5, correlation=5)
    assert view_of(builder).get_trace(0)["index_correlation"].tolist() == [1, 0, 0]


def test_args_become_columns_with_htas_defaults() -> None:
    """Args are columns; events without an arg have HTA's default value."""
    builder = TraceBuilder()
    builder.operator("aten::mm", start_us=0, duration_us=1, args={"Input Dims": [[2, 3]], "Input type": ["float"]})
    builder.collective("allreduce", start_us=5, duration_us=1)
    frame = view_of(builder).get_trace(0)
    operator, collective = (frame.iloc[row] for row in (0, 1))
    assert (operator["input_dims"], operator["input_strides"], operator["collective_name"]) == ([[2, 3]], "-1", "")
    assert (collective["collective_name"], collective["input_dims"], collective["bytes"]) == ("allreduce", "-1", -1)


def test_a_name_has_the_same_symbol_id_on_all_ranks() -> None:
    """The same name has the same symbol id on every rank."""
    builder = TraceBuilder().operator("b", start_us=0, duration_us=1)
    builder.rank(1).operator("a", start_us=0, duration_us=1).operator("b", start_us=5, duration_us=1)
    view = view_of(builder)
    texts = view.symbol_table.get_sym_table()
    names = [[texts[number] for number in frame["name"]] for frame in view.traces.values()]
    assert names == [["b"], ["a", "b"]]


def test_an_empty_rank_has_an_empty_frame() -> None:
    """The frame of a rank without events has all columns and no rows."""
    view = view_of(TraceBuilder())
    assert list(view.get_trace(0).columns) == list(COLUMNS)
    assert view.get_trace_duration(0) == 0


def test_the_frame_is_the_scripts_own() -> None:
    """A frame keeps the columns that a script adds to it."""
    view = view_of(TraceBuilder().operator("a", start_us=0, duration_us=1))
    view.get_trace(0)["mine"] = 1
    assert "mine" in view.get_trace(0)


def test_the_raw_file_can_be_read(tmp_path) -> None:
    """`get_raw_trace_for_one_rank` returns parsed JSON; for a damaged file, it raises an error."""
    (path,) = TraceBuilder().operator("a", start_us=0, duration_us=1).write(tmp_path)
    view = TraceView(open_trace(path, cache=False), "")
    assert view.get_raw_trace_for_one_rank(0)["traceEvents"][-1]["name"] == "a"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidOptionError, match="not valid JSON"):
        view.get_raw_trace_for_one_rank(0)


def test_a_rank_that_does_not_exist_is_an_error() -> None:
    """Reading the frame, steps or start time of an unknown rank raises UnknownRankError."""
    view = view_of(TraceBuilder())
    for method in (view.get_trace, view.get_iterations, view.get_trace_start_unixtime_ns):
        with pytest.raises(UnknownRankError):
            method(5)
    assert isinstance(view.get_trace(0), pd.DataFrame)
