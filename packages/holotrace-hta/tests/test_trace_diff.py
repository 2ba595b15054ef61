"""TraceDiff has HTA's names, arguments and columns, and HTA's numbers where HTA is correct."""

from __future__ import annotations

import gzip
import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import polars as pl
import pytest

from holotrace import open_trace
from holotrace.enrich.device.launches import launches
from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.store.trace import RankTrace, Trace
from holotrace.testing.builder import TraceBuilder
from hta.facade.answers.comparison import comparison_frame, names_by_change
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff

LABELS = ("Control", "Test")


@pytest.fixture(scope="module")
def diff_pair(real_traces) -> tuple[Trace, Trace]:
    """Open the two traces that HTA compared."""
    folder = real_traces / "diff"
    return open_trace(folder / "control", cache=False), open_trace(folder / "test", cache=False)


@pytest.fixture
def pair() -> tuple[Trace, Trace]:
    """Return a control trace with two steps, and a test trace with three; the latter's step 1 has one more kernel."""
    control, test = TraceBuilder(), TraceBuilder()
    for builder, steps in ((control, 2), (test, 3)):
        for step in range(steps):
            builder.step(step, 100 * step, 90).kernel("gemm", start_us=100 * step + 1, duration_us=10 + step)
    return control.build(), test.kernel("relu", start_us=120, duration_us=1.5).build()


def launched(rank_trace: RankTrace) -> np.ndarray:
    """Select the events that HTA compares: all except device work without a recorded launch."""
    unknown = launches(rank_trace).filter(pl.col("launch_index").is_null())["event_index"].to_numpy()
    return ~np.isin(rank_trace.table("events", ["event_index"])["event_index"].to_numpy(), unknown)


def golden_frame(goldens: Path, name: str) -> pd.DataFrame:
    """Return HTA's result as a frame."""
    (path,) = (goldens / "hta" / "_misc").glob(f"compare_traces.{name}.csv*")
    return pd.read_csv(path, index_col=0)


@pytest.mark.parametrize("device", ["cpu", "gpu", "all"])
def test_the_comparison_equals_htas(diff_pair, goldens, device) -> None:
    """Names, counts and durations of the first step equal HTA's."""
    traces = tuple(trace.where(launched) for trace in diff_pair)
    ours = comparison_frame(traces, ([1009], [1009]), LABELS, device, use_short_name=False)
    pd.testing.assert_frame_equal(ours, golden_frame(goldens, f"diff.{device.upper()}.long"), check_dtype=False)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_comparison_by_short_names_equals_htas(diff_pair, goldens, device) -> None:
    """Sums by short name equal HTA's, once HTA's `::::` for an anonymous namespace is replaced by `::`."""
    traces = tuple(trace.where(launched) for trace in diff_pair)
    ours = comparison_frame(traces, ([1009], [1009]), LABELS, device, use_short_name=True)
    theirs = golden_frame(goldens, f"diff.{device.upper()}.short")
    theirs.index = theirs.index.str.replace("::::", "::")
    sums = theirs.drop(columns="counts_change_categories").groupby(level=0).sum().reindex(ours.index)
    pd.testing.assert_frame_equal(ours[sums.columns], sums, check_dtype=False, check_names=False)


@pytest.mark.parametrize("device", ["cpu", "gpu", "all"])
def test_the_names_by_change_equal_htas(diff_pair, goldens, device) -> None:
    """The five lists of names, one for each kind of change, equal HTA's lists."""
    traces = tuple(trace.where(launched) for trace in diff_pair)
    ours = names_by_change(comparison_frame(traces, ([1009], [1009]), LABELS, device, use_short_name=False), LABELS)
    (path,) = (goldens / "hta" / "_misc").glob(f"ops_diff.diff.{device.upper()}.json*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert {change: sorted(names) for change, names in ours.items()} == {
        change: sorted(names) for change, names in json.loads(text).items()
    }


def test_labels_and_several_steps_equal_htas(diff_pair, goldens) -> None:
    """The comparison of two control steps with one test step equals HTA's, including the labels."""
    control, test = (LabeledTrace(label, t=trace) for label, trace in zip(("ctl", "tst"), diff_pair, strict=True))
    ours = TraceDiff.compare_traces(control, test, control_iteration=[1010, 1011], test_iteration=1012)
    pd.testing.assert_frame_equal(ours, golden_frame(goldens, "diff.iters"), check_dtype=False)


def test_the_whole_frame(pair) -> None:
    """The control's step 0 (the default) is compared with the test's step 1; the frame has HTA's columns and index."""
    frame = TraceDiff.compare_traces(*pair, test_iteration=1, device_type=DeviceType.GPU)
    expected = pd.DataFrame(
        {
            "Control_counts": [1, 0],
            "Control_total_duration": [10, 0],
            "Test_counts": [1, 1],
            "Test_total_duration": [11, 1.5],
            "diff_counts": [0, 1],
            "diff_duration": [1, 1.5],
            "counts_change_categories": ["=", "+"],
        },
        index=pd.Index(["gemm", "relu"], name="name"),
    )
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)


def test_ops_diff_lists_the_names_by_change(pair) -> None:
    """`ops_diff` groups names by the change of their count, not of their duration."""
    assert TraceDiff.ops_diff(*pair, test_iteration=1, device_type=DeviceType.GPU) == {
        "added": ["relu"],
        "deleted": [],
        "increased": [],
        "decreased": [],
        "unchanged": ["gemm"],
    }


def test_equal_labels_become_different(pair) -> None:
    """If both labels are equal, the test trace's label gets a suffix, as in HTA."""
    sides = [LabeledTrace("x", t=trace) for trace in pair]
    assert list(TraceDiff.compare_traces(*sides).columns[:3:2]) == ["x_counts", "x_control_test_counts"]


def test_traces_without_steps_can_be_compared(tmp_path) -> None:
    """Traces without steps are compared over all events; HTA refuses them."""
    TraceBuilder().kernel("gemm", start_us=0, duration_us=1).write(tmp_path)
    frame = TraceDiff.compare_traces(str(tmp_path), str(tmp_path))
    assert frame.loc["gemm", "Control_counts"] == 1


def test_the_last_step_counts_here(tmp_path) -> None:
    """As in HTA, a comparison includes the last step, although `TraceAnalysis` drops it."""
    builder = TraceBuilder()
    for step in (1, 2):
        builder.step(step, 100 * step, 90).kernel("gemm", start_us=100 * step + 1, duration_us=10)
    builder.write(tmp_path)
    assert LabeledTrace(t=TraceAnalysis(trace_dir=str(tmp_path)).t).iterations() == [1, 2]


def test_events_of_a_side(pair) -> None:
    """`extract_ops` returns the frame of the first step, and `get_ops_summary` counts its names."""
    side = LabeledTrace("x", t=pair[1])
    ops = side.extract_ops(device_type=DeviceType.GPU)
    assert ops[["rank", "ts", "dur", "iteration"]].to_numpy().tolist() == [[0, 1, 10, 0]]
    assert side.get_ops_summary(ops).to_dict("records") == [
        {
            "cat": "kernel",
            "name": "gemm",
            "short_name": "gemm",
            "counts": 1,
            "total_duration": 10,
            "cat_id": ops["cat"].iloc[0],
            "name_id": ops["name"].iloc[0],
        }
    ]
    assert len(side.extract_ops(iteration=[0, 1], device_type=DeviceType.CPU)) == 2
    assert (side.ranks(), side.iterations()) == ([0], [0, 1, 2])


def test_input_that_does_not_exist_is_an_error(pair) -> None:
    """An unknown rank, an unknown step and a missing trace raise errors."""
    with pytest.raises(UnknownRankError):
        TraceDiff.compare_traces(*pair, control_rank=99)
    with pytest.raises(InvalidOptionError):
        TraceDiff.compare_traces(*pair, test_iteration=99)
    with pytest.raises(InvalidOptionError, match="LabeledTrace needs a trace"):
        LabeledTrace()


def test_both_figures_are_shown_and_written(pair, tmp_path, monkeypatch) -> None:
    """Both figures are shown unless disabled, and written as HTML or as an image."""
    shown: list[go.Figure] = []
    images: list[str] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure: shown.append(figure))  # noqa: PLW0108 -- a builtin would not be bound
    monkeypatch.setattr(go.Figure, "write_image", lambda _, path: images.append(path))
    frame = TraceDiff.compare_traces(*pair, test_iteration=1)

    TraceDiff.visualize_counts_diff(frame, export_image_path=str(tmp_path / "counts.html"))
    TraceDiff.visualize_duration_diff(frame, show_image=False, export_image_path="duration.png")

    assert {bar.name for bar in shown[0].data} == {"Control", "Test"}
    assert (tmp_path / "counts.html").stat().st_size > 1_000
    assert images == ["duration.png"]


def test_signatures_equal_htas() -> None:
    """Arguments have HTA's names and order, and `DeviceType` has HTA's values."""
    arguments = ["control", "test", "control_rank", "test_rank", "control_iteration", "test_iteration", "device_type"]
    assert list(inspect.signature(TraceDiff.compare_traces).parameters) == [*arguments, "use_short_name"]
    assert list(inspect.signature(TraceDiff.ops_diff).parameters) == arguments
    assert [(device.name, device.value) for device in DeviceType] == [("CPU", 1), ("GPU", 2), ("ALL", 3)]
