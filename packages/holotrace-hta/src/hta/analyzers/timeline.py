"""Timelines of kernels, at HTA's import path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from holotrace.errors import InvalidOptionError
from hta.common.timeline import TimelinePlotSetting, plot_events_timeline, prepare_timeline_events
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_SETTING = TimelinePlotSetting(auto_detect=False, multi_ranks=True, amplify_short_events=False)


def plot_timeline(title: str, events: pd.DataFrame, ranks: Sequence[int] | None = None) -> None:
    """Show the events that `prepare_timeline_gpu_events` returned, for all ranks or only some."""
    plot_events_timeline(title, events if ranks is None else events[events["rank"].isin(list(ranks))], _SETTING)


def prepare_timeline_gpu_events(  # noqa: PLR0913, PLR0917 -- HTA's signature
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Iterable[int] | None = None,
    iterations: Iterable[int] | None = None,
    streams: Iterable[int] | None = None,
    duration_threshold: int = 1_000,
) -> pd.DataFrame:
    """Return the selected device events of `df` as bars with start, end and row.

    Args:
        df: events of one or more ranks, with a column `rank`.
        symbol_table: maps the ids in `name` and `cat` to text.
        ranks: the ranks to include; by default all.
        iterations: the steps to include; by default all events, including events outside of steps.
        streams: the streams to include; by default all, including stream 0.
        duration_threshold: the shortest length of a bar, in µs; shorter events are drawn with this length.

    Returns:
        The columns that `prepare_timeline_events` returns. `dur` is the true duration, even if the bar is longer.

    Raises:
        InvalidOptionError: the frame has no column `rank`.
    """
    if "rank" not in df.columns:
        message = (
            "the frame needs a column `rank`: add it with df.assign(rank=0), or call "
            "plot_timeline_gpu_kernels_from_trace"
        )
        raise InvalidOptionError(message)
    is_chosen = df["stream"] >= 0
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        is_chosen &= True if wanted is None else df[column].isin(list(wanted))
    setting = TimelinePlotSetting(auto_detect=False, multi_ranks=True, short_events_display_duration=duration_threshold)
    return prepare_timeline_events(df[is_chosen], setting, symbol_table)


def plot_timeline_gpu_kernels(  # noqa: PLR0913, PLR0917 -- HTA's signature
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Iterable[int] | None = None,
    iterations: Iterable[int] | None = None,
    streams: Iterable[int] | None = None,
    duration_threshold: int = 1_000,
) -> None:
    """Show the device events of `df`; the arguments except `title` are those of `prepare_timeline_gpu_events`."""
    events = prepare_timeline_gpu_events(df, symbol_table, ranks, iterations, streams, duration_threshold)
    plot_timeline(title, events)


def plot_timeline_gpu_kernels_from_trace(  # noqa: PLR0913, PLR0917 -- HTA's signature
    title: str,
    trace_data: TraceView,
    ranks: Iterable[int] | None = None,
    iterations: Iterable[int] | None = None,
    streams: Iterable[int] | None = None,
    duration_threshold: int = 1_000,
) -> None:
    """Show the device events of `trace_data`; the other arguments are those of `prepare_timeline_gpu_events`.

    Raises:
        UnknownRankError: the rank does not exist.
    """
    chosen = trace_data.get_ranks() if ranks is None else list(ranks)
    events = pd.concat([trace_data.get_trace(rank).assign(rank=rank) for rank in chosen])
    plot_timeline_gpu_kernels(title, events, trace_data.symbol_table, None, iterations, streams, duration_threshold)
