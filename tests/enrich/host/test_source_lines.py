"""Tests of the line of user code behind each host and device event."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.enrich.host.source_lines import host_lines, line_times, lines_of_events
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder

FUNCTION = "autograd::engine::evaluate_function: "
NAMES = ("train.py(1): f", "train.py(9): g", "torch/a.py(1): h", "<built-in function sleep>", "nn.Module: Net_0")

ranges = st.lists(
    st.tuples(
        st.integers(1, 2), st.integers(0, 30), st.integers(0, 20), st.sampled_from((*NAMES, "aten::mm", "cudaFree"))
    ),
    min_size=1,
    max_size=12,
)


def rank_of(builder: TraceBuilder) -> RankTrace:
    """Return rank 0 of a built trace."""
    return builder.build().ranks[0]


def lines(rank_trace: RankTrace, *columns: str) -> list[tuple]:
    """Return the given columns of the lines of all events of a rank, in file order."""
    events = rank_trace.table("events", ["event_index"])["event_index"]
    return lines_of_events(rank_trace, events).select(columns).rows()


def test_an_event_has_the_line_of_the_innermost_frame_of_the_user() -> None:
    """An event has the source line of the user function that called it; a user function has its own line.

    `callee` names the module or operator that was called, never an annotation.
    """
    builder = TraceBuilder().python("a.py(1): main", start_us=0, duration_us=100)
    builder.annotation("forward", start_us=5, duration_us=50)
    builder.python("nn.Module: Net_4", start_us=10, duration_us=40).python(
        "b.py(2): forward", start_us=12, duration_us=30
    )
    builder.operator("aten::mm", start_us=14, duration_us=20).operator("aten::add", start_us=60, duration_us=5)
    builder.operator("aten::mul", start_us=0, duration_us=5, thread=7)

    assert lines(rank_of(builder), "source_line", "callee", "frame_index") == [
        ("a.py(1): main", None, 0),
        ("a.py(1): main", None, 0),
        ("a.py(1): main", "nn.Module: Net", 0),
        ("b.py(2): forward", None, 3),
        ("b.py(2): forward", "aten::mm", 3),
        ("a.py(1): main", "aten::add", 0),
        (None, "aten::mul", None),
    ]


def test_functions_of_the_user_in_the_backward_pass_keep_their_line() -> None:
    """Backward work has the line of its forward operator, unless it runs in a Python function of the user."""
    builder = TraceBuilder().python("a.py(1): main", start_us=0, duration_us=20)
    builder.operator("Custom", start_us=5, duration_us=5, args={"Sequence number": 3, "Fwd thread id": 0})
    builder.operator(f"{FUNCTION}CustomBackward", start_us=30, duration_us=30, thread=2)
    backward = {"Sequence number": 3, "Fwd thread id": 1}
    builder.operator("CustomBackward", start_us=32, duration_us=26, thread=2, args=backward)
    builder.python("a.py(9): backward", start_us=35, duration_us=10, thread=2)
    builder.operator("aten::mul", start_us=36, duration_us=4, thread=2)

    assert lines(rank_of(builder), "source_line", "callee", "is_backward")[2:] == [
        ("a.py(1): main", "CustomBackward", True),
        ("a.py(1): main", "CustomBackward", True),
        ("a.py(9): backward", None, False),
        ("a.py(9): backward", "aten::mul", False),
    ]


def test_without_stacks_no_event_has_a_line() -> None:
    """If no Python functions were recorded, all columns are null and keep their types."""
    rank_trace = rank_of(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5))
    table = lines_of_events(rank_trace, pl.Series([0], dtype=pl.UInt32))
    assert table.row(0) == (None,) * 7
    assert table.schema == {
        **dict.fromkeys(("source_line", "file"), pl.String),
        "line": pl.Int64,
        **dict.fromkeys(("function", "callee"), pl.String),
        "is_backward": pl.Boolean,
        "frame_index": pl.UInt32,
    }


@pytest.mark.slow
@settings(max_examples=60)
@given(ranges)
def test_line_times_cover_what_the_threads_recorded(items: list[tuple[int, int, int, str]]) -> None:
    """Even if ranges overlap partially, each recorded µs of a thread is assigned to the line of a range that contains it."""
    builder = TraceBuilder().python("main.py(1): main", start_us=0, duration_us=1, thread=3)
    for thread, start, length, name in items:
        add = builder.operator if "::" in name else builder.runtime if name == "cudaFree" else builder.python
        add(name, start_us=start, duration_us=length, thread=thread)
    rank_trace = rank_of(builder)
    known, times = host_lines(rank_trace), line_times(rank_trace)
    covering = {
        (track, moment): set()
        for track, start, end in known.ranges.select("track_id", "start_ns", "end_ns").iter_rows()
        for moment in range(start, end, 1_000)
    }
    for row, (track, start, end) in enumerate(known.ranges.select("track_id", "start_ns", "end_ns").iter_rows()):
        for moment in range(start, end, 1_000):
            covering[track, moment].add(int(known.line[row]))
    moments = [
        ((track, moment), int(known.line[row]))
        for track, start, end, row in times.iter_rows()
        for moment in range(start, end, 1_000)
    ]
    assert len(moments) == len(dict(moments))
    assert dict(moments).keys() == covering.keys()
    assert all(line in covering[place] for place, line in moments)
