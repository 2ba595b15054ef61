"""The slices in a window equal the slices that a loop over all events finds."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline import query
from holotrace.web.timeline.counters import Counter, counter_answer, rank_counters
from holotrace.web.timeline.index import timeline_index
from holotrace.web.timeline.query import Window, search, slices_answer, visible
from holotrace.web.timeline.slices import Slices, at_level
from timelines import LANES, Event, index_of, two_threads

WINDOWS = st.builds(
    lambda start, length, pixels: Window(start, start + length, pixels),
    st.integers(-50, 900),
    st.integers(1, 1_500),
    st.integers(1, 64),
)


def touches(event: Event, window: Window) -> bool:
    """Return whether an event touches a window; an event of length 0 at the window's start also does."""
    start, end = event
    return start < window.end and (end > window.start or start == end == window.start)


def drawn(slices: Slices) -> list[list[tuple[int, int, int, int]]]:
    """Return the slices as (start, end, busy, count), lane by lane."""
    rows = list(
        zip(*(column.tolist() for column in (slices.start, slices.end, slices.busy, slices.count)), strict=True)
    )
    return [rows[first:last] for first, last in zip(slices.bounds[:-1], slices.bounds[1:], strict=True)]


def assert_shows(lanes: list[list[Event]], window: Window, shown: Slices) -> None:
    """Check that long events are unchanged, and that merged slices keep the busy time of short events."""
    for events, slices in zip(lanes, drawn(shown), strict=True):
        inside = [event for event in events if touches(event, window)]
        long = [event for event in inside if (event[1] - event[0]) * window.pixels >= window.end - window.start]
        alone = [(start, end) for start, end, _, count in slices if count == 1]
        assert [event for event in alone if event in long] == long
        assert sum(count for *_, count in slices) == len(inside)
        assert sum(busy for _, _, busy, _ in slices) == sum(end - start for start, end in inside)
        assert all(before[1] <= after[0] for before, after in pairwise(slices))
        remaining = iter(inside)
        for start, end, busy, count in slices:
            merged = list(islice(remaining, count))
            assert (start, end, busy) == (merged[0][0], merged[-1][1], sum(last - first for first, last in merged))


@given(LANES, WINDOWS)
@example([[(0, 16), (16, 16)]], Window(0, 17, 1))
def test_long_events_are_exact_and_merged_ones_keep_the_busy_time(lanes: list[list[Event]], window: Window) -> None:
    """Events at least one pixel wide are unchanged; merging narrower ones preserves their count and busy time."""
    assert_shows(lanes, window, visible(index_of(lanes), [0], window))


@given(LANES, st.integers(0, 8), st.integers(0, 4))
def test_a_level_does_not_depend_on_its_source(lanes: list[list[Event]], level: int, finer: int) -> None:
    """A zoom level has the same slices whether it is computed from all events or from a finer level."""
    index = index_of(lanes)
    everything = Slices.single(index.events, np.arange(len(index.events.start)), index.events.bounds)
    from_finer = at_level(at_level(everything, max(0, level - finer)), level)

    for name in ("bounds", "start", "end", "busy", "count", "longest", "longest_ns"):
        assert getattr(from_finer, name).tolist() == getattr(at_level(everything, level), name).tolist()


@given(LANES, st.integers(1, 64))
def test_levels_for_the_whole_rank_draw_the_same(lanes: list[list[Event]], pixels: int) -> None:
    """Zoom levels cached for the whole rank have the same slices as levels computed for one window."""
    window = Window(0, 2_500, pixels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "FEW_EVENTS", -1)
        kept = visible(index_of(lanes), [0], window)

    assert drawn(kept) == drawn(visible(index_of(lanes), [0], window))


def test_too_many_merged_slices_are_merged_further(monkeypatch) -> None:
    """256 short events in 64 pixels are merged into at most 8 slices; total busy time and event count stay the same."""
    monkeypatch.setattr(query, "MOST_MERGED", 8)
    lane = [(at, at + 1) for at in range(0, 1_024, 4)]
    slices = visible(index_of([lane]), [0], Window(0, 1_024, 64))

    assert len(slices.start) <= 8
    assert (slices.busy.sum(), slices.count.sum()) == (256, 256)


def test_rows_are_threads_then_streams() -> None:
    """There are rows for two threads and a stream; nested events add a lane; the origin is the first event's start."""
    index = timeline_index(two_threads().ranks[0])

    assert [(row.label, row.device, row.lane_count, row.event_count) for row in index.rows] == [
        ("thread 1", None, 2, 2),
        ("thread 2", None, 1, 1),
        ("stream 7", 0, 1, 1),
    ]
    assert (index.origin_ns, index.length_ns) == (1_000_000, 350_000)


def test_an_answer_names_what_it_draws() -> None:
    """An answer lists each event's start and length by lane, and each name with its colour class."""
    index = timeline_index(two_threads().ranks[0])
    answer = slices_answer(index, [0, 1, 2], Window(0, 400_000, 400))

    by_lane = {(row, depth): alone for row, depth, alone, _ in answer["lanes"]}
    texts = {key: [answer["names"][number] for number in alone[2]] for key, alone in by_lane.items()}
    assert {key: alone[:2] for key, alone in by_lane.items()} == {
        (0, 0): [[0], [100_000]],
        (0, 1): [[10_000], [5_000]],
        (1, 0): [[300_000], [50_000]],
        (2, 0): [[50_000], [200_000]],
    }
    assert texts[0, 0] == [["aten::mm", "operator", True]]
    assert texts[2, 0] == [["gemm", "computation", True]]


def test_the_search_text_matches_anywhere_in_a_name() -> None:
    """The browser receives 160 characters of a long name; a flag tells whether the full name contains the text."""
    name = "k" * 500 + "Gemm"
    index = timeline_index(TraceBuilder().kernel(name, start_us=0, duration_us=1).build().ranks[0])

    assert slices_answer(index, [0], Window(0, 10, 10), "gEMM")["names"] == [["k" * 160, "computation", True]]
    assert slices_answer(index, [0], Window(0, 10, 10), "conv")["names"] == [["k" * 160, "computation", False]]


def test_search_ignores_case() -> None:
    """A search for `MM` in all rows finds three events, and a search for `mm` in the stream finds one."""
    index = timeline_index(two_threads().ranks[0])
    everywhere, on_stream = search(index, [0, 1, 2], "MM"), search(index, [2], "mm")

    assert everywhere["count"] == 3
    assert [event[:4] for event in everywhere["found"]] == [
        [0, 0, 0, 100_000],
        [2, 0, 50_000, 200_000],
        [1, 0, 300_000, 50_000],
    ]
    assert everywhere["longest"] == everywhere["found"][1]
    assert on_stream["count"] == 1
    assert search(index, [0, 1, 2], "nothing") == {"count": 0, "found": [], "longest": None}


def test_an_empty_trace_has_no_rows() -> None:
    """An empty trace has no rows, slices or counters."""
    index = timeline_index(TraceBuilder().build().ranks[0])

    assert index.rows == ()
    assert slices_answer(index, [], Window(0, 10, 10)) == {"lanes": [], "names": []}
    assert rank_counters(TraceBuilder().build().ranks[0], 0).counters == ()


def test_counters_show_busy_devices_and_queues() -> None:
    """The kernel is queued from 10 to 50 µs, and GPU 0 is busy from 50 to 250 µs."""
    counters = rank_counters(two_threads().ranks[0], 1_000_000).counters
    values = {
        counter.label: list(zip(counter.time.tolist(), counter.value.tolist(), strict=True)) for counter in counters
    }

    assert values["GPU 0 busy"] == [(50_000, 1.0), (250_000, 0.0)]
    assert values["queue of stream 7"] == [(10_000, 1.0), (50_000, 0.0)]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=60),
    st.integers(0, 300),
    st.integers(20, 900),
    st.integers(1, 12),
)
def test_condensed_counters_keep_mean_and_highest(
    changes: list[tuple[int, int]], start: int, length: int, pixels: int
) -> None:
    """Each pixel of a condensed counter has the mean and the maximum of the values in its time span."""
    time = np.cumsum([gap for gap, _ in changes])
    value = np.array([float(number) for _, number in changes])
    counter = Counter("c", "", None, time, value)
    answer = counter_answer(counter, Window(start, start + length, pixels))
    end = [*answer["time"], start + length][1:]

    for first, last, mean, highest in zip(answer["time"], end, answer["mean"], answer["highest"], strict=True):
        values_by_ns = [_value_at(changes, time_ns) for time_ns in range(max(first, start), last)]
        if values_by_ns:
            assert mean == pytest.approx(sum(values_by_ns) / len(values_by_ns))
            assert highest == max(values_by_ns)


def _value_at(changes: list[tuple[int, int]], time_ns: int) -> int:
    at, current = 0, 0
    for gap, value in changes:
        at += gap
        current = value if at <= time_ns else current
    return current
