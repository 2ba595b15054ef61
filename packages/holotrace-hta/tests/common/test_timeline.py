"""Timelines of chosen events."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import pytest

from holotrace import open_trace
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.analyzers import timeline as kernels
from hta.common.timeline import (
    AnnotationStreamID,
    DefaultTimelinePlotSetting,
    EventType,
    PlotFormat,
    Timeline,
    TimelinePlotSetting,
    align_module_with_kernels,
    auto_detect_setting,
    get_fig_name_from_fig_title,
    get_fig_title_from_fig_name,
    plot_events_timeline,
    prepare_timeline_events,
)
from hta.common.trace_call_graph import CallGraph
from hta.common.trace_filter import GPUKernelFilter
from hta.facade.answers import timeline_figure
from hta.facade.trace.trace_view import TraceView

GOLDENS = {"df_index_resolver": "single_v100", "trace_diff_control": "diff/control", "amd_trace__nsfull": "amd_mi250"}
"""Folder of HTA's results -> folder of the traces."""


@pytest.fixture
def view() -> TraceView:
    """Build a trace: an operator with kernels on streams 0 and 7, a host annotation and a GPU annotation."""
    builder = TraceBuilder().annotation("## forward ##", start_us=0, duration_us=50)
    builder.operator("aten::mm", start_us=10, duration_us=20)
    builder.kernel("void gemm<float>(int)", start_us=40, duration_us=3_000, launch_us=12, stream=0)
    builder.kernel("relu", start_us=3_060, duration_us=2.5, launch_us=15, stream=7)
    builder.gpu_annotation("## forward ##", start_us=40, duration_us=3_022.5, stream=7)
    return TraceView(builder.build(), "")


@pytest.fixture
def shown(monkeypatch) -> list[go.Figure]:
    """Collect the figures that are shown."""
    figures: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure, **_: figures.append(figure))
    return figures


def prepared(view: TraceView, **options) -> pd.DataFrame:
    """Return the bars of all events of rank 0."""
    return prepare_timeline_events(view.get_trace(0), TimelinePlotSetting(**options), view.symbol_table)


def test_each_event_is_a_bar_in_its_row(view) -> None:
    """The rows are host events, GPU annotations, then one row per stream; bars of short events are 1,000 µs long."""
    bars = prepared(view)
    columns = ["task", "name", "ts", "dur", "calibrated_start_global", "calibrated_end_global"]
    assert bars[columns].to_numpy().tolist() == [
        ["cpu events", "## forward ##", 0, 50, 0, 1_000],
        ["cpu events", "aten::mm", 10, 20, 10, 1_010],
        ["cpu events", "cudaLaunchKernel", 12, 1, 12, 1_012],
        ["cpu events", "cudaLaunchKernel", 15, 1, 15, 1_015],
        ["gpu annotate", "## forward ##", 40, 3_022.5, 40, 3_062.5],
        ["gpu stream 000", "gemm", 40, 3_000, 40, 3_040],
        ["gpu stream 007", "relu", 3_060, 2.5, 3_060, 4_060],
    ]


def test_ranks_traces_threads_and_depths_have_separate_rows(view) -> None:
    """Ranks and depths get separate rows; settings control whether traces, threads and streams do too."""
    frame = view.get_trace(0)
    both = pd.concat([frame.assign(rank=rank, trace="new", depth=rank) for rank in (0, 3)])
    rows = prepare_timeline_events(both, symbol_table=view.symbol_table)["task"].unique().tolist()
    assert rows == [
        f"rank {rank:03} {row}"
        for rank in (0, 3)
        for row in (f"cpu level {rank:03}", "gpu annotate", "gpu stream 000", "gpu stream 007")
    ]
    setting = TimelinePlotSetting(
        auto_detect=False,
        event_type=EventType.AllEvents,
        multi_traces=True,
        multi_streams=False,
        compress_threads=False,
    )
    rows = prepare_timeline_events(frame.assign(trace="new"), setting, view.symbol_table)["task"].unique().tolist()
    assert rows == ["trace new tid 1 cpu events", "trace new gpu annotate", "trace new gpu events"]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (EventType.GPUEvents, {"## forward ##", "gemm", "relu"}),
        (EventType.CPUEvents, {"## forward ##", "aten::mm", "cudaLaunchKernel"}),
    ],
)
def test_a_setting_chooses_events(view, chosen, names) -> None:
    """Without auto-detection, `event_type` selects host events or device events."""
    assert set(prepared(view, auto_detect=False, event_type=chosen)["name"]) == names


def test_a_setting_is_never_changed(view) -> None:
    """Timelines do not modify the default setting that they share; HTA's timelines do."""
    before = TimelinePlotSetting()
    setting = auto_detect_setting(view.get_trace(0).assign(rank=0), DefaultTimelinePlotSetting)
    Timeline(view.get_trace(0), view.symbol_table)
    assert setting.event_type is EventType.AllEvents
    assert before == DefaultTimelinePlotSetting


def test_times_and_lengths_can_be_kept(view) -> None:
    """With `use_global_time` and without amplification, bars have the times and durations of the frame."""
    kernels_only = view.get_trace(0).iloc[3:]
    setting = TimelinePlotSetting(use_global_time=True, amplify_short_events=False)
    bars = prepare_timeline_events(kernels_only, setting, view.symbol_table)
    assert (bars["calibrated_end_global"] - bars["calibrated_start_global"] == bars["dur"]).all()
    assert sorted(bars["ts"]) == sorted(kernels_only["ts"])


@pytest.mark.parametrize("name", GOLDENS)
def test_bars_equal_those_of_hta(real_traces, goldens, name) -> None:
    """Rows, starts and durations equal HTA's, except on stream 0 and for GPU annotations."""
    path = next((goldens / "hta" / name).glob("timeline_events.csv*"))
    theirs = pd.read_csv(path, index_col=0)
    trace = open_trace(real_traces / GOLDENS[name], cache=False).where(before_last_step)
    view = TraceView(trace, "")
    frame = view.get_trace(view.get_ranks()[0])
    chosen = frame.loc[frame.index.isin(theirs["index"][theirs["cat"] != "gpu_user_annotation"])]
    ours = prepare_timeline_events(chosen, symbol_table=view.symbol_table).set_index("index")
    expected = theirs.set_index("index").loc[ours.index]
    assert len(ours) == len(chosen) > 100
    assert (ours["task"] == expected["task"].replace("gpu annotate", "gpu stream 000")).all()
    assert (ours["dur"] - expected["dur"]).abs().max() < 0.01
    assert (ours["ts"] - expected["ts"]).max() - (ours["ts"] - expected["ts"]).min() < 1


def test_a_figure_has_a_bar_for_each_event_and_a_trace_for_each_colour(view, shown) -> None:
    """A figure escapes markup in titles and names, and the hover describes each bar."""
    frame = view.get_trace(0).assign(name="x & y")
    timeline = Timeline(frame.assign(cat="kernel"), None, GPUKernelFilter(), hover_columns=["correlation"])
    assert timeline.plot("My <i>title</i>") is None
    (figure,) = shown
    (bars,) = figure.data
    assert figure.layout.title.text == "My &lt;i&gt;title&lt;/i&gt;"
    assert bars.name == "x &amp; y"
    assert (bars.base, bars.x) == ((0, 3_020), (3_000, 1_000))
    assert figure.layout.yaxis.categoryarray == ("gpu stream 000", "gpu stream 007")
    assert bars.customdata[1] == "<b>x &amp; y</b><br>from 3,020.0 µs, for 2.5 µs<br>correlation: 100002"


def test_many_events_and_rows_are_cut_with_a_note(shown, monkeypatch) -> None:
    """A figure with too much content keeps the longest events and the first rows; its subtitle says so."""
    monkeypatch.setattr(timeline_figure, "MOST_BARS", 30)
    monkeypatch.setattr(timeline_figure, "MOST_ROWS", 4)
    events = pd.DataFrame(
        {"name": [f"k{i % 15}" for i in range(50)], "ts": range(50), "stream": [i % 5 for i in range(50)]}
    )
    events["dur"] = events["ts"] + 1
    plot_events_timeline("All", prepare_timeline_events(events))
    (figure,) = shown
    assert sum(len(bars.y) for bars in figure.data) == 30
    assert figure.layout.title.subtitle.text == (
        "Shown: 4 of 5 rows, the 30 longest of 50 events. Filter the events to see the hidden ones."
    )
    assert [bars.name for bars in figure.data][-1].endswith("other names")
    assert set(figure.layout.yaxis.categoryarray) == {f"gpu stream 00{stream}" for stream in range(4)}


def test_a_figure_without_events_says_so(view, shown) -> None:
    """A figure without events shows the note `no events to show`, and raises no error."""
    plot_events_timeline("Nothing", prepare_timeline_events(view.get_trace(0).iloc[:0], symbol_table=view.symbol_table))
    assert shown[0].layout.annotations[0].text == "no events to show"


def test_a_figure_can_be_returned_or_written(view, tmp_path, monkeypatch) -> None:
    """`PlotFormat.HTML` returns HTML; `PlotFormat.File` writes a file and replaces an existing one."""
    monkeypatch.chdir(tmp_path)
    bars = prepared(view)
    html = plot_events_timeline("x", bars, TimelinePlotSetting(plot_format=PlotFormat.HTML))
    assert html is not None
    assert "gpu stream 007" in html
    setting = TimelinePlotSetting(plot_format=PlotFormat.File)
    assert plot_events_timeline("My Kernels: 1/2", bars, setting) is None
    assert "gpu stream 007" in (tmp_path / "my_kernels_1_2.html").read_text(encoding="utf-8")
    plot_events_timeline("My Kernels: 1/2", bars, setting)


def test_annotations_of_modules_span_their_kernels(view) -> None:
    """The annotation of `aten::mm` lasts from the start of its first kernel to the end of its last kernel."""
    with pytest.raises(InvalidOptionError, match="CallGraph"):
        align_module_with_kernels(view.get_trace(0), ["aten"])
    CallGraph(view)
    frame = view.get_trace(0)
    aligned = align_module_with_kernels(frame, [r"aten::m", "nothing"], view.symbol_table)
    added = aligned[aligned["stream"] == AnnotationStreamID]
    assert added[["ts", "dur"]].to_numpy().tolist() == [[40, 3_022.5]]
    assert len(aligned) == 3
    assert prepare_timeline_events(aligned, symbol_table=view.symbol_table)["task"].tolist()[0] == "gpu annotate"
    assert (
        len(align_module_with_kernels(frame, ["aten::m"], view.symbol_table, include_original_cpu_events=True))
        == len(frame) + 1
    )
    assert len(align_module_with_kernels(frame, [], view.symbol_table)) == 2


def test_kernels_of_a_trace(view, shown) -> None:
    """Kernels can be selected by rank, step and stream, including stream 0 and events outside of steps."""
    frame = view.get_trace(0).assign(rank=0)
    events = kernels.prepare_timeline_gpu_events(frame, view.symbol_table, duration_threshold=5)
    assert events[["task", "name", "dur", "calibrated_end_global"]].to_numpy().tolist() == [
        ["rank 000 gpu stream 000", "gemm", 3_000, 3_000],
        ["rank 000 gpu stream 007", "relu", 2.5, 3_025],
    ]
    kernels.plot_timeline("t", events, ranks=[1])
    kernels.plot_timeline_gpu_kernels_from_trace("t", view, streams=[0], iterations=[-1])
    assert [len(figure.data) for figure in shown] == [0, 1]
    with pytest.raises(UnknownRankError):
        kernels.plot_timeline_gpu_kernels_from_trace("t", view, ranks=[4])
    with pytest.raises(InvalidOptionError, match="rank"):
        kernels.prepare_timeline_gpu_events(view.get_trace(0), view.symbol_table)


def test_errors_name_what_is_missing(view) -> None:
    """An error names what is missing: a column, the symbol table or a call of `prepare_timeline_events`."""
    frame = view.get_trace(0)
    with pytest.raises(InvalidOptionError, match="missing: dur"):
        prepare_timeline_events(frame.drop(columns="dur"))
    with pytest.raises(InvalidOptionError, match="symbol table"):
        prepare_timeline_events(frame)
    with pytest.raises(InvalidOptionError, match="prepare_timeline_events"):
        plot_events_timeline("x", frame)


@pytest.mark.parametrize(("name", "title"), [("my_fig-name", "My Fig Name"), ("a  b", "A B")])
def test_names_of_files_become_titles(name, title) -> None:
    """A figure's title can be derived from its file name, and the file name from the title."""
    assert get_fig_title_from_fig_name(name) == title
    assert get_fig_name_from_fig_title("My  Fig: a/b") == "my_fig_a_b"
