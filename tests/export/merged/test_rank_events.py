"""Events of a rank in a merged trace."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.across_ranks.clocks.rank_clocks import ClockLine, RankClock
from holotrace.export.event_json import event_text
from holotrace.export.event_reader import read_event
from holotrace.export.merged.rank_events import RankEvents, exact_microseconds, nanoseconds

BASE = 1_790_857_026_000_000_000


def events(clock: RankClock = RankClock("a")) -> RankEvents:  # noqa: B008 -- immutable
    """Convert the events of rank 3, whose file has another base time than the merged trace."""
    return RankEvents(3, clock, BASE, BASE - 1_000, {4001: 3001, 0: 3002})


def test_times_pids_and_ids_change_and_nothing_else() -> None:
    """The offset, 5 ns, and the difference of the base times, 1 µs, are added; args stay as they are."""
    event = {"ph": "s", "id": 7, "pid": 0, "tid": 20, "ts": 1.5, "name": "ac2g", "args": {"pid": 0, "ts": 1}}
    assert events(RankClock("a", (ClockLine(BASE, 5, 0.0, 1),))).converted(dict(event)) == {
        **event,
        "id": (3 << 36) + 7,
        "pid": 3002,
        "ts": 2.505,
    }


def test_a_duration_is_that_on_the_reference_clock() -> None:
    """A clock that is 100 ppm slow records 1 s for an event of 1.0001 s, which the merged trace shows."""
    clock = RankClock("a", (ClockLine(BASE, 0, 100_000.0, 1),))
    event = events(clock).converted({"ph": "X", "pid": 0, "ts": 0, "dur": 1_000_000})
    assert event == {"ph": "X", "pid": 3002, "ts": 1, "dur": 1_000_100}


@pytest.mark.parametrize("name", ["process_name", "process_sort_index"])
def test_names_of_processes_are_left_out(name) -> None:
    """The merged trace names and sorts processes by rank; it keeps the names of threads that have events."""
    assert events().converted({"ph": "M", "name": name, "pid": 0}) is None
    assert events().converted({"ph": "M", "name": "thread_name", "pid": 0}) == {
        "ph": "M",
        "name": "thread_name",
        "pid": 3002,
    }
    assert events().converted({"ph": "M", "name": "thread_name", "pid": 7}) is None


def test_counters_keep_their_ids_and_odd_ids_stay_apart() -> None:
    """A counter's id is local to its process and stays; ids that are not numbers get the rank as a prefix."""
    assert events().converted({"ph": "C", "id": 7, "pid": 0}) == {"ph": "C", "id": 7, "pid": 3002}
    assert events().converted({"ph": "b", "id": "x", "pid": 0}) == {"ph": "b", "id": "rank 3: x", "pid": 3002}


def test_unknown_pids_get_numbers_of_their_own() -> None:
    """A pid that no table lists, such as a fraction, is numbered after the others."""
    assert events().converted({"ph": "i", "pid": 1.5}) == {"ph": "i", "pid": 3003}


@given(st.integers(-(10**19), 10**19))
def test_nanoseconds_survive_being_written_and_read(time_ns) -> None:
    """The text of a time has all its digits, whatever their number."""
    text = event_text({"ts": exact_microseconds(time_ns)})
    assert nanoseconds(read_event(text)["ts"]) == time_ns


@pytest.mark.parametrize("text", ["null", "true", '"1"', "NaN", "Infinity"])
def test_what_is_not_a_number_is_not_a_time(text) -> None:
    """An event whose time is not a number keeps that time."""
    event = json.loads(f'{{"ph":"i","ts":{text}}}')
    assert events().converted(dict(event)) is not None
    assert nanoseconds(event["ts"]) is None
