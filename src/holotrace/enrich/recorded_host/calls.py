"""Nest the operators, annotations, runtime and driver calls in a file, thread by thread."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.algorithms.nested.nesting import nesting
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

CALL_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION, EventKind.RUNTIME, EventKind.DRIVER)
PYTHON_KINDS = (EventKind.PYTHON_FUNCTION,)


@derived
def recorded_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the operators, annotations, runtime and driver calls, each with its caller.

    One event contains another event of the same process and thread if it begins no later and ends no earlier. If two
    events are equal, the first in the file contains the second. The parent of an event is the innermost event that
    contains it. If an event begins inside another event but ends after it, the two are siblings. Python functions are
    in a separate table, `recorded_frames`, so the depths do not depend on whether Python functions were recorded.

    Returns:
        In file order:

        event_index     uint32
        track_id        uint32  process and thread, a row of `tracks`
        kind            uint8   EventKind
        name            uint32  string id
        start_ns        int64
        end_ns          int64
        parent_row      int64   row of the parent in this table; -1 if no event contains it
        depth           int32   number of events around this one; 0 for roots
        is_overlapping  bool    whether the event began during a sibling and ended after that sibling
    """
    return _stacks(rank_trace, CALL_KINDS)


@derived
def recorded_frames(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls of Python functions, each with its caller, with the columns of `recorded_calls`."""
    return _stacks(rank_trace, PYTHON_KINDS)


def _stacks(rank_trace: RankTrace, kinds: Sequence[EventKind]) -> pl.DataFrame:
    columns = ["event_index", "track_id", "kind", "name", "start_ns", "end_ns"]
    calls = event_ranges(rank_trace, kinds, columns)
    nested = nesting(*(calls[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))
    return calls.with_columns(
        pl.Series("parent_row", nested.parent),
        pl.Series("depth", nested.depth),
        pl.Series("is_overlapping", nested.is_overlapping),
    )
