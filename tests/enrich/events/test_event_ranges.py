"""Tests of event_ranges, which selects events by kind."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder


def _rank_trace() -> RankTrace:
    (rank_trace,) = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=9)
        .kernel("b", start_us=7, duration_us=1)
        .copy(start_us=5, duration_us=2)
        .kernel("a", start_us=1, duration_us=3)
        .build()
        .ranks.values()
    )
    return rank_trace


def test_events_of_some_kinds_come_in_file_order() -> None:
    """Two kernels and a copy are listed in file order, as events 1, 2 and 3; the operator, event 0, is not."""
    events = event_ranges(_rank_trace(), [EventKind.KERNEL, EventKind.GPU_MEMCPY], ["end_ns", "event_index"])

    assert events.rows() == [(8_000, 1), (7_000, 2), (4_000, 3)]


def test_without_events_of_a_kind_there_are_no_rows() -> None:
    """If no event has the kind, the table is empty and has the requested columns."""
    events = event_ranges(_rank_trace(), [EventKind.DRIVER], ["start_ns", "end_ns"])

    assert (events.columns, events.height) == (["start_ns", "end_ns"], 0)


def test_only_events_with_one_of_the_names_are_listed() -> None:
    """Kernel a (event 3) can be selected by name without requesting the name column; an empty list selects nothing."""
    rank_trace = _rank_trace()
    kinds = [EventKind.KERNEL, EventKind.GPU_MEMCPY]
    named = (rank_trace.strings == "a").arg_true().cast(pl.UInt32)

    assert event_ranges(rank_trace, kinds, ["event_index", "end_ns"], names=named).rows() == [(3, 4_000)]
    assert event_ranges(rank_trace, kinds, ["event_index"], names=named.clear()).rows() == []
