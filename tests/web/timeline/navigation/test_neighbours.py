"""Tests of finding the next or previous event on the same row or with the same name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.index import TimelineIndex, timeline_index
from holotrace.web.timeline.navigation.neighbours import neighbour


def index_of(*kernels: tuple[str, int, int]) -> TimelineIndex:
    """Return the index of a rank that runs these kernels, given as (name, stream, start in µs); each takes 1 µs."""
    builder = TraceBuilder()
    for name, stream, start_us in kernels:
        builder.kernel(name, stream=stream, start_us=start_us, duration_us=1)
    return timeline_index(builder.build().ranks[0])


INDEX = index_of(("gemm", 7, 0), ("relu", 7, 10), ("gemm", 8, 20), ("gemm", 7, 30), ("relu", 8, 40))
ROWS = range(len(INDEX.rows))


def events(of: str, by: int, rows=ROWS) -> list[tuple[str, int]]:
    """Walk forwards from the first event or backwards from the last; return name and start in µs of each event."""
    order = sorted(range(len(INDEX.event_index)), key=lambda place: int(INDEX.events.start[place]))
    place = order[0] if by > 0 else order[-1]
    followed = []
    event = int(INDEX.event_index[place])
    while True:
        followed.append((INDEX.text(int(INDEX.name[place])), int(INDEX.events.start[place]) // 1_000))
        at = neighbour(INDEX, event, by, of=of, rows=rows)["at"]
        if at is None:
            return followed
        event = at[4]
        place = INDEX.place_of(event) or 0


def test_the_row_is_followed_in_time() -> None:
    """The walk stays on one row: forwards from the first event on stream 7, backwards from the last on stream 8."""
    assert events("row", 1) == [("gemm", 0), ("relu", 10), ("gemm", 30)]
    assert events("row", -1) == [("relu", 40), ("gemm", 20)]


def test_the_name_is_followed_over_the_rows() -> None:
    """Events with the same name are visited in order of their starts, on all visible rows; hidden rows are skipped."""
    assert events("name", 1) == [("gemm", 0), ("gemm", 20), ("gemm", 30)]
    assert events("name", -1) == [("relu", 40), ("relu", 10)]
    assert events("name", 1, rows=[0]) == [("gemm", 0), ("gemm", 30)]


def test_the_number_counts_from_one() -> None:
    """The second of three gemm kernels is number 2 of 3; after the third, no kernel follows, and the number stays 3."""
    first = int(INDEX.event_index[INDEX.events.start.argmin()])
    second = neighbour(INDEX, first, 1, of="name", rows=ROWS)
    last = neighbour(INDEX, first, 2, of="name", rows=ROWS)

    assert (second["number"], second["count"]) == (2, 3)
    assert neighbour(INDEX, last["at"][4], 1, of="name", rows=ROWS) == {"at": None, "number": 3, "count": 3}


def test_calls_are_followed_at_their_depth() -> None:
    """A nested call is followed by the next event at the same depth, not by the event after its caller."""
    builder = TraceBuilder().operator("outer", start_us=0, duration_us=10).operator("inner", start_us=1, duration_us=2)
    builder.operator("outer", start_us=20, duration_us=10).operator("later", start_us=21, duration_us=2)
    index = timeline_index(builder.build().ranks[0])
    inner = next(place for place, name in enumerate(index.name) if index.text(int(name)) == "inner")
    at = neighbour(index, int(index.event_index[inner]), 1, of="row", rows=range(len(index.rows)))["at"]

    place = index.place_of(at[4])
    assert place is not None
    assert index.text(int(index.name[place])) == "later"


def test_an_unknown_event_is_refused() -> None:
    """Asking for the neighbour of an event that is not on the rank raises an error."""
    with pytest.raises(InvalidOptionError, match="event 99 is not on the timeline"):
        neighbour(INDEX, 99, 1, of="row", rows=ROWS)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([7, 8]), st.integers(0, 40)), min_size=1, max_size=12))
def test_back_undoes_forth(kernels) -> None:
    """The event before the next event is the event itself."""
    index = index_of(*kernels)
    for of in ("row", "name"):
        for event in map(int, index.event_index):
            after = neighbour(index, event, 1, of=of, rows=range(len(index.rows)))["at"]
            if after is not None:
                assert neighbour(index, after[4], -1, of=of, rows=range(len(index.rows)))["at"][4] == event
