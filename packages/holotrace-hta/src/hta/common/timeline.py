"""Timelines of selected events, at HTA's import path.

Use these figures for hundreds or thousands of selected events, and Perfetto for whole traces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from holotrace.errors import InvalidOptionError
from holotrace.export.new_file import expect_writable
from holotrace.locations import located
from hta.facade.answers.timeline_figure import timeline_figure
from hta.facade.imports.elsewhere import names_of
from hta.facade.results.show import save, show
from hta.facade.trace.names import shorten_name
from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

CPUStreamID = -1
AnnotationStreamID = -2
"""The stream of the annotations that `align_module_with_kernels` adds. HTA uses 0, which can be a real stream."""

DefaultTaskLabelColumns = ["stream", "rank", "trace", "depth"]
DefaultHoverColumns = ["trace", "rank", "iteration", "stream", "cat", "index"]
DefaultCallStackHoverColumns = [
    "name", "cat", "index", "ts", "dur", "rank", "stream", "height", "depth", "tid", "index_correlation",
]  # fmt: skip
DefaultMustHaveColumns = ["name", "ts", "dur"]
REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT = {
    "stream", "index", "ts", "dur", "name", "kernel_span", "first_kernel_start", "num_kernels",
}  # fmt: skip

_HOST, _ANNOTATION, _STREAM = range(3)
_GPU_ANNOTATION = "gpu_user_annotation"


class EventType(Enum):
    """The kind of events to show; with `auto_detect`, it is derived from the events' streams."""

    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


class PlotFormat(Enum):
    """Whether to return a figure as HTML, show it inline, or write it to a file."""

    HTML = "html"
    Inline = "inline"
    File = "file"


@dataclass
class TimelinePlotSetting:
    """The appearance of a timeline.

    auto_detect                    detect event_type, multi_ranks and multi_traces from the events
    event_type                     the events to show
    multi_ranks, multi_traces      give each rank, or each trace, its own rows
    multi_streams                  give each stream its own row
    x_start_column, x_end_column   columns that `prepare_timeline_events` adds: start and end of each bar, in µs
    task_column                    column that `prepare_timeline_events` adds: the row of each event
    color_column                   column that determines the colour of bars
    task_height                    height of a row in pixels
    amplify_short_events           draw every event at least `short_events_display_duration` µs long
    use_global_time                show the times of the frame; otherwise times count from the first event
    plot_format                    how the figure is returned or shown
    compress_threads               show all threads of a rank in the same rows
    """

    auto_detect: bool = True
    event_type: EventType = EventType.GPUEvents
    multi_ranks: bool = False
    multi_traces: bool = False
    multi_streams: bool = True
    x_start_column: str = "calibrated_start_global"
    x_end_column: str = "calibrated_end_global"
    task_column: str = "task"
    color_column: str = "name"
    task_height: int = 30
    amplify_short_events: bool = True
    short_events_display_duration: int = 1_000
    use_global_time: bool = False
    plot_format: PlotFormat = PlotFormat.Inline
    compress_threads: bool = True


DefaultTimelinePlotSetting = TimelinePlotSetting()


def auto_detect_setting(events: pd.DataFrame, setting: TimelinePlotSetting) -> TimelinePlotSetting:
    """Return the setting with its kinds of events, ranks and traces detected from `events`, if `auto_detect` is on."""
    if not setting.auto_detect:
        return setting
    is_on_device = events["stream"] >= 0 if "stream" in events.columns else pd.Series([False])
    event_type = EventType.GPUEvents if is_on_device.all() else EventType.AllEvents
    return replace(
        setting,
        event_type=event_type if is_on_device.any() else EventType.CPUEvents,
        multi_ranks=_has_several(events, "rank"),
        multi_traces=_has_several(events, "trace"),
    )


def prepare_timeline_events(
    df: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    symbol_table: TraceSymbolTable | None = None,
    hover_columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the events as bars with start, end and row.

    Args:
        df: events with name, ts, dur and, for device events, stream, as in `analyzer.t.get_trace(rank)`. Events of several
            ranks need a column `rank`. If there is a column `depth`, host events get one row per depth.
        setting: the appearance of the timeline.
        symbol_table: maps the ids in `name` and `cat` to text; not needed if the frame has text.
        hover_columns: columns to keep for the hover text; by default `DefaultHoverColumns`.

    Returns:
        name (shortened), ts, dur, the columns that determine the row or appear in the hover text, start, end and row;
        sorted by row and time.

    Raises:
        InvalidOptionError: a column is missing, or names are ids and there is no symbol table.
    """
    missing = [name for name in DefaultMustHaveColumns if name not in df.columns]
    if missing and df.empty:
        return df
    if missing:
        message = f"a timeline needs the columns {', '.join(DefaultMustHaveColumns)}; missing: {', '.join(missing)}"
        raise InvalidOptionError(message)
    chosen = auto_detect_setting(df, setting)
    kinds = _kinds(df, symbol_table)
    is_shown = np.isin(kinds, _SHOWN[chosen.event_type])
    shown = df[is_shown]
    bars = _bars(shown, chosen, symbol_table, hover_columns)
    row_numbers, labels = _rows(shown, kinds[is_shown], chosen)
    bars[chosen.task_column] = labels[row_numbers]
    return bars.iloc[np.lexsort((bars["ts"].to_numpy(), row_numbers))]


_SHOWN = {
    EventType.GPUEvents: (_STREAM, _ANNOTATION),
    EventType.CPUEvents: (_HOST,),
    EventType.AllEvents: (_HOST, _STREAM, _ANNOTATION),
}


def plot_events_timeline(
    title: str,
    events: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    hover_columns: Sequence[str] | None = None,
    output_image_path: str | None = None,
) -> str | None:
    """Draw the result of `prepare_timeline_events`; return HTML for `PlotFormat.HTML`, otherwise None.

    If there are too many rows, draws only the first rows; if these have too many events, draws only the longest events.
    The subtitle then says how many are shown.

    Args:
        title: the title of the figure.
        events: bars, with the columns that `setting` names.
        setting: the appearance of the timeline, and how the figure is returned or shown.
        hover_columns: columns to show in the hover; by default `DefaultHoverColumns`.
        output_image_path: the file for `PlotFormat.File`: `.html`, or an image if the package kaleido is installed; by
            default an HTML file in the current folder, named after the title.

    Raises:
        InvalidOptionError: the events are not prepared, or the file is not writable.
    """
    if not Timeline.is_timeline_events(events, setting):
        message = "these events are not timeline bars; call prepare_timeline_events first"
        raise InvalidOptionError(message)
    path = output_image_path or f"{get_fig_name_from_fig_title(title)}.html"
    if setting.plot_format is PlotFormat.File:
        expect_writable(located(path), overwrite=True)
    columns = [name for name in hover_columns or DefaultHoverColumns if name in events.columns]
    figure = timeline_figure(
        title,
        start_us=events[setting.x_start_column],
        end_us=events[setting.x_end_column],
        rows=events[setting.task_column],
        colors=events[setting.color_column],
        hovers=events[["name", "ts", "dur", *(name for name in columns if name not in DefaultMustHaveColumns)]],
        row_height=setting.task_height,
    )
    if setting.plot_format is PlotFormat.HTML:
        html: str = figure.to_html(include_plotlyjs=True)
        return html
    show(figure) if setting.plot_format is PlotFormat.Inline else save(figure, path)
    return None


class Timeline:
    """The events of a timeline, and the figure that draws them as bars.

    Args:
        timeline_events: input or output of `prepare_timeline_events`.
        symbol_table: maps the ids in `name` and `cat` to text.
        filter_func: selects the events to show: a filter from `hta.common.trace_filter` or a similar function.
        setting: the appearance of the timeline.
        hover_columns: columns to show in the hover text.
    """

    def __init__(
        self,
        timeline_events: pd.DataFrame,
        symbol_table: TraceSymbolTable | None,
        filter_func: Callable[..., pd.DataFrame] | None = None,
        setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
        hover_columns: Sequence[str] | None = None,
    ) -> None:
        self.timeline_events = timeline_events
        self.symbol_table = symbol_table
        self.setting = replace(setting)
        self.hover_columns = hover_columns
        self.prepare(filter_func)

    @staticmethod
    def is_timeline_events(df: pd.DataFrame, setting: TimelinePlotSetting) -> bool:
        """Return whether a frame has the columns of timeline bars."""
        needed = {setting.x_start_column, setting.x_end_column, setting.task_column, setting.color_column}
        return needed | set(DefaultMustHaveColumns) <= set(df.columns)

    def prepare(self, filter_func: Callable[..., pd.DataFrame] | None = None) -> None:
        """Filter the events, and convert them to bars if they are not bars already."""
        if filter_func is not None:
            self.timeline_events = filter_func(self.timeline_events, self.symbol_table)
        if not self.is_timeline_events(self.timeline_events, self.setting):
            self.timeline_events = prepare_timeline_events(
                self.timeline_events, self.setting, self.symbol_table, self.hover_columns
            )

    def plot(self, title: str, save_path: str | None = None) -> str | None:
        """Draw the timeline; see `plot_events_timeline`."""
        return plot_events_timeline(title, self.timeline_events, self.setting, self.hover_columns, save_path)


def align_module_with_kernels(
    events_df: pd.DataFrame,
    module_list: Iterable[str],
    sym_table: TraceSymbolTable | None = None,
    include_original_cpu_events: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
) -> pd.DataFrame:
    """Return the device events and, for each matching host event, a bar that spans the kernels it launched.

    Args:
        events_df: events with the columns of `hta.common.trace_call_graph.CallGraph`.
        module_list: regular expressions, matched at the start of names.
        sym_table: maps the ids in `name` to text; not needed if names are text.
        include_original_cpu_events: also keep host events.

    Returns:
        The device events (and host events, if kept), followed by the bars. Each bar is on stream `AnnotationStreamID`
        and lasts from the start of the first kernel to the end of the last. Row labels are renumbered.

    Raises:
        InvalidOptionError: a column is missing.
    """
    missing = sorted(REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT - set(events_df.columns))
    if missing:
        message = (
            f"the columns {', '.join(missing)} are missing; hta.common.trace_call_graph.CallGraph(trace) adds them"
        )
        raise InvalidOptionError(message)
    is_on_host = events_df["stream"] < 0
    wanted = re.compile("|".join(f"(?:{pattern})" for pattern in module_list) or r"(?!)")
    names = _texts(events_df, "name", sym_table)
    is_module = is_on_host & (events_df["num_kernels"] > 0) & names.map(_matches(names, wanted)).astype(bool)
    modules = events_df[is_module]
    kept = events_df if include_original_cpu_events else events_df[~is_on_host]
    annotations = modules.assign(
        ts=modules["first_kernel_start"], dur=modules["kernel_span"], stream=AnnotationStreamID
    )
    return pd.concat([kept, annotations], ignore_index=True)


def get_fig_title_from_fig_name(fig_name: str, sep: str = r"\s+|_+|-+") -> str:
    """Convert a file name to a title: `my_fig-name` becomes `My Fig Name`."""
    return " ".join(word.capitalize() for word in re.split(sep, fig_name) if word) or "Untitled Figure"


def get_fig_name_from_fig_title(title: str) -> str:
    """Convert a title to a file name: `My Fig Name` becomes `my_fig_name`."""
    return re.sub(r"[^\w.\-]+", "_", title.lower()).strip("_") or "untitled_figure"


def _has_several(events: pd.DataFrame, column: str) -> bool:
    return column in events.columns and len(events[column].unique()) > 1


def _kinds(df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Classify rows as host events, GPU annotations or events on streams."""
    streams = df["stream"].to_numpy() if "stream" in df.columns else np.full(len(df), CPUStreamID)
    is_annotation = streams == AnnotationStreamID
    if "cat" in df.columns and (symbol_table is not None or "s_cat" in df.columns or not _is_number(df["cat"])):
        is_annotation |= (_texts(df, "cat", symbol_table) == _GPU_ANNOTATION).to_numpy()
    return np.where(is_annotation, _ANNOTATION, np.where(streams >= 0, _STREAM, _HOST))


def _bars(
    df: pd.DataFrame,
    setting: TimelinePlotSetting,
    symbol_table: TraceSymbolTable | None,
    hover_columns: Sequence[str] | None,
) -> pd.DataFrame:
    names = _texts(df, "name", symbol_table)
    short = {name: shorten_name(str(name)) for name in names.unique()}
    starts = df["ts"] if setting.use_global_time or df.empty else df["ts"] - df["ts"].min()
    drawn = df["dur"].clip(lower=setting.short_events_display_duration) if setting.amplify_short_events else df["dur"]
    wanted = dict.fromkeys([*DefaultTaskLabelColumns, *(hover_columns or DefaultHoverColumns), setting.color_column])
    kept = [name for name in wanted if name in df.columns and name not in DefaultMustHaveColumns]
    columns = {name: _texts(df, name, symbol_table) if name == "cat" else df[name] for name in kept}
    return pd.DataFrame(
        {
            "name": names.map(short),
            "ts": starts,
            "dur": df["dur"],
            **columns,
            setting.x_start_column: starts,
            setting.x_end_column: starts + drawn,
        }
    )


def _rows(
    df: pd.DataFrame, kinds: np.ndarray[Any, np.dtype[np.int64]], setting: TimelinePlotSetting
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the index of each event's row, and the labels of all rows from top to bottom."""
    is_host = kinds == _HOST
    nothing = np.full(len(df), -1)
    keys = pd.DataFrame(
        {
            "trace": df["trace"].astype(str).to_numpy() if setting.multi_traces else "",
            "rank": df["rank"].to_numpy() if setting.multi_ranks else nothing,
            "kind": kinds,
            "thread": "" if setting.compress_threads else np.where(is_host, df["tid"].astype(str), ""),
            "depth": np.where(is_host, df["depth"], -1) if "depth" in df.columns else nothing,
            "stream": np.where(kinds == _STREAM, df["stream"], -1) if setting.multi_streams else nothing,
        },
        index=range(len(df)),
    )
    groups = keys.groupby(list(keys.columns), sort=True)
    labels = [_label(*key) for key in keys.drop_duplicates().sort_values(list(keys.columns)).itertuples(index=False)]
    return groups.ngroup().to_numpy(), np.array(labels, dtype=object)


def _label(trace: str, rank: int, kind: int, thread: str, depth: int, stream: int) -> str:  # noqa: PLR0913, PLR0917 -- a row
    on_host = f"cpu level {depth:03}" if depth >= 0 else "cpu events"
    on_stream = f"gpu stream {stream:03}" if stream >= 0 else "gpu events"
    parts = [
        f"trace {trace}" if trace else "",
        f"rank {rank:03}" if rank >= 0 else "",
        f"tid {thread}" if thread else "",
        {_HOST: on_host, _ANNOTATION: "gpu annotate", _STREAM: on_stream}[kind],
    ]
    return " ".join(filter(None, parts))


def _texts(df: pd.DataFrame, column: str, symbol_table: TraceSymbolTable | None) -> pd.Series:
    if not _is_number(df[column]):
        return df[column]
    if symbol_table is not None:
        numbers = df[column]
        return numbers.map(symbol_table.get_symbol_names(numbers.unique())).fillna("").astype(object)
    if f"s_{column}" in df.columns:
        return df[f"s_{column}"]
    message = f"`{column}` contains symbol ids: pass the symbol table, or call decode_symbol_ids() first"
    raise InvalidOptionError(message)


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _matches(names: pd.Series, pattern: re.Pattern[str]) -> dict[str, bool]:
    return {name: pattern.match(name) is not None for name in names.unique()}
