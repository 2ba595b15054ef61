"""HTA's methods for launches, operators and kernel sequences, with its columns and units."""

from __future__ import annotations

import inspect
from pathlib import Path

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


@pytest.fixture
def analyzer(tmp_path) -> TraceAnalysis:
    """Open ranks 2 and 5: aten::mm launches kernels a, b and c of 2 µs each; rank 5 also has a copy."""
    builder = TraceBuilder()
    for rank in (2, 5):
        builder.rank(rank).operator("aten::mm", start_us=0, duration_us=30)
        for row, name in enumerate("abc"):
            builder.kernel(name, start_us=20 + 3 * row, duration_us=2, launch_us=6 * row, launch_duration_us=5)
    builder.copy(start_us=60, duration_us=1.5, launch_us=40, launch_duration_us=30)
    builder.write(tmp_path / "job")
    return TraceAnalysis(trace_dir=str(tmp_path / "job"))


def test_signatures_equal_htas() -> None:
    """The methods for launches, operators and kernel sequences have HTA's parameters and defaults."""

    def parameters(method):
        return {
            name: parameter.default
            for name, parameter in inspect.signature(method).parameters.items()
            if name != "self"
        }

    assert parameters(TraceAnalysis.get_cuda_kernel_launch_stats) == {
        "ranks": None,
        "runtime_cutoff": 50,
        "launch_delay_cutoff": 100,
        "include_memory_events": True,
        "visualize": True,
    }
    assert parameters(TraceAnalysis.get_aten_op_kernels_and_delay) == {"ranks": None, "sort_by": None}
    assert parameters(TraceAnalysis.get_frequent_cuda_kernel_sequences) == {
        "operator_name": inspect.Parameter.empty,
        "output_dir": inspect.Parameter.empty,
        "min_pattern_len": 3,
        "rank": 0,
        "top_k": 5,
        "visualize": False,
        "compress_other_kernels": True,
    }


def test_launch_stats_have_a_frame_for_each_rank(analyzer) -> None:
    """Each rank has a frame; the copy starts 10 µs before its launch call ends, so its launch delay is 0."""
    frames = analyzer.get_cuda_kernel_launch_stats(visualize=False)

    assert list(frames) == [2, 5]
    copy = frames[5].to_dict("records")[-1]
    assert pd.isna(copy.pop("operator"))
    assert copy == {
        "correlation": 100_004,
        "cpu_duration": 30.0,
        "gpu_duration": 1.5,
        "launch_delay": 0.0,
        "kernel": "Memcpy HtoD (Pinned -> Device)",
        "stream": 7,
        "rank": 5,
        "launch": "cudaMemcpyAsync",
    }


def test_copies_can_be_left_out_of_the_launch_stats(analyzer) -> None:
    """With `include_memory_events=False`, only the three kernels remain."""
    frames = analyzer.get_cuda_kernel_launch_stats(ranks=[5], include_memory_events=False, visualize=False)
    assert frames[5]["kernel"].tolist() == ["a", "b", "c"]


def test_which_figures_are_shown(analyzer, tmp_path, monkeypatch) -> None:
    """The method for launches shows a figure by default; the method for kernel sequences shows one only if asked to."""
    shown = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure, **_: shown.append(figure))

    analyzer.get_cuda_kernel_launch_stats()
    analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path), rank=2, visualize=True)
    analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path), rank=2)

    assert len(shown) == 2


def test_operators_have_their_kernels_and_delays(analyzer) -> None:
    """Each rank has a frame with a row for each operator and kernel sequence; delays are in microseconds."""
    frames = analyzer.get_aten_op_kernels_and_delay()

    row = {
        "aten_op_name": "aten::mm",
        "kernel_sequence": "a -> b -> c",
        "occurrence_count": 1,
        "avg_aten_op_launch_delay": 0.0,
        "avg_runtime_delay": 20.0,
    }
    assert {rank: frame.to_dict("records") for rank, frame in frames.items()} == {2: [row], 5: [row]}


def test_an_unknown_column_to_sort_by_is_an_error(analyzer) -> None:
    """The error for an unknown `sort_by` lists the columns."""
    with pytest.raises(InvalidOptionError, match=r"sort_by=\['sum'\].*occurrence_count"):
        analyzer.get_aten_op_kernels_and_delay(sort_by=["sum", "occurrence_count"])


def test_sequences_come_with_a_marked_trace(analyzer, tmp_path) -> None:
    """`attrs["overlaid_trace"]` is the path of a trace with marked sequences; a second call replaces it, as in HTA."""
    name = "overlaid_rank2.pt.trace.json"
    for _ in range(2):
        frame = analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path), rank=2)

        assert frame.to_dict("records") == [
            {"pattern": "aten::mm|a|b|c", "count": 1, "GPU kernel duration (us)": 6, "CPU op duration (us)": 30}
        ]
        assert frame.attrs == {"overlaid_trace": str(tmp_path / name)}
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"operator_name": "aten::nothing"}, "no operator's name contains this text"),
        ({"operator_name": "aten::mm", "min_pattern_len": 4}, "no call of 'aten::mm' launches 4 or more kernels"),
    ],
)
def test_without_sequences_the_frame_is_empty_and_says_why(analyzer, tmp_path, options, reason) -> None:
    """If no sequence is found, the frame is empty and gives the reason, and no copy of the trace is written."""
    (tmp_path / "out").mkdir()
    frame = analyzer.get_frequent_cuda_kernel_sequences(output_dir=str(tmp_path / "out"), rank=2, **options)

    assert frame.empty
    assert frame.columns.tolist() == ["pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)"]
    assert reason in frame.attrs["reason"]
    assert list((tmp_path / "out").iterdir()) == []


def test_bad_input_is_an_error_before_work_starts(analyzer, tmp_path) -> None:
    """A missing folder, an empty operator name and an unknown rank raise errors."""
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path / "nowhere"), rank=2)
    with pytest.raises(InvalidOptionError, match="operator_name=''"):
        analyzer.get_frequent_cuda_kernel_sequences("", str(tmp_path), rank=2)
    with pytest.raises(UnknownRankError, match="its ranks are: 2, 5"):
        analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path))


def test_without_gpu_work_frames_are_empty_and_say_why(tmp_path) -> None:
    """Without GPU work, launches, operators and sequences are empty frames with a reason."""
    TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).write(tmp_path / "job")
    analyzer = TraceAnalysis(trace_dir=str(Path(tmp_path, "job")))

    launches = analyzer.get_cuda_kernel_launch_stats()[0]
    operators = analyzer.get_aten_op_kernels_and_delay()[0]
    sequences = analyzer.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path))

    for frame in (launches, operators, sequences):
        assert frame.empty
        assert "has no GPU kernels" in frame.attrs["reason"]
    assert launches.columns[:4].tolist() == ["correlation", "cpu_duration", "gpu_duration", "launch_delay"]
