"""Start and length of the recording of a job, computed from the events whose kind is in `RANGES`."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace, Trace

_NO_RANGES = (EventKind.INSTANT, EventKind.MEMORY, EventKind.TRACE_SPAN)
"""Kinds of events that frames and timelines do not list: those without a duration, and the span of the recording."""

RANGES = tuple(kind for kind in EventKind if kind not in _NO_RANGES)
"""Kinds of events that frames and timelines list."""


def origin_ns(trace: Trace) -> int:
    """Return the earliest start of the listed events of all ranks, including events that are not selected.

    HTA's times are relative to this start.
    """
    return min((span[0] for span in trace.map(_whole_span).values() if span), default=0)


def duration_ns(rank_trace: RankTrace) -> int:
    """Return the time from the first to the last start of the selected events.

    HTA uses this time as the length of the trace.
    """
    span = _span(rank_trace)
    return span[1] - span[0] if span else 0


def listed_events(rank_trace: RankTrace, columns: Sequence[str], kinds: Sequence[EventKind] = RANGES) -> pl.DataFrame:
    """Return columns of the events that HTA lists in its frames, in file order."""
    named = list(dict.fromkeys([*columns, "category"]))
    events = rank_trace.events_of(kinds, named)
    listed = (
        events.drop_nulls("category") if events["category"].null_count() else events
    )  # filtering would copy all rows
    return listed.select(columns)


def _whole_span(rank_trace: RankTrace) -> tuple[int, int] | None:
    return _span(rank_trace.unselected)


@derived
def _span(rank_trace: RankTrace) -> tuple[int, int] | None:
    starts = listed_events(rank_trace, ["start_ns"])["start_ns"]
    first, last = starts.min(), starts.max()
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None
