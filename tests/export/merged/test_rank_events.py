"""Events of a rank in a merged trace."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace import _native, open_trace
from holotrace.enrich.across_ranks.clocks.rank_clocks import ClockLine, RankClock
from holotrace.export.event_json import exact_number
from holotrace.export.merged.processes import Process
from holotrace.export.merged.rank_events import RankPlace, rank_events
from holotrace.testing.builder import TraceBuilder

BASE = 1_790_857_026_000_000_000
AS_RECORDED = RankClock("a")


def placed(*events: str, clock: RankClock = AS_RECORDED) -> list[dict[str, Any]]:
    """Return events of rank 3; its file has a base time 1 µs after the base time of the merged trace."""
    place = RankPlace(3, clock, BASE, BASE - 1_000, {4001: 3001, 0: 3002, "Spans \u00e9": 3003})
    text = place.placing().placed(",".join(events).encode()).decode()
    return json.loads(f"[{text[1:]}]", parse_float=exact_number)


def test_times_pids_and_ids_change_and_nothing_else() -> None:
    """Times are shifted by the clock offset (5 ns) and the difference between base times (1 µs); args are unchanged."""
    event = {"ph": "s", "id": 7, "pid": 0, "tid": 20, "ts": 1.5, "name": "ac2g", "args": {"pid": 0, "ts": 1, "id": 2}}
    assert placed(json.dumps(event), clock=RankClock("a", (ClockLine(BASE, 5, 0.0, 1),))) == [
        {**event, "id": (3 << 36) + 7, "pid": 3002, "ts": 2.505}
    ]


def test_a_duration_is_that_on_the_reference_clock() -> None:
    """An event of 1.0001 s, recorded as 1 s by a clock that is 100 ppm slow, lasts 1.0001 s in the merged trace."""
    clock = RankClock("a", (ClockLine(BASE, 0, 100_000.0, 1),))
    assert placed('{"ph":"X","pid":0,"ts":0,"dur":1000000}', clock=clock) == [
        {"ph": "X", "pid": 3002, "ts": 1, "dur": 1_000_100}
    ]


def test_names_of_processes_are_left_out() -> None:
    """The names and the order of the rank's processes are dropped; threads that have events keep their names."""
    names = [f'{{"ph":"M","name":"{name}","pid":0}}' for name in ("process_name", "process_sort_index", "thread_name")]
    assert placed(*names, '{"ph":"M","name":"thread_name","pid":7}') == [
        {"ph": "M", "name": "thread_name", "pid": 3002}
    ]


def test_counters_keep_their_ids_and_odd_ids_stay_apart() -> None:
    """A counter's id is kept, because it is local to its process; ids that are not small numbers get a rank prefix."""
    events = ['{"ph":"C","id":7,"pid":0}', '{"ph":"b","id":"x\\"","pid":0}', '{"ph":"X","bind_id":-1,"pid":0}']
    assert [event.get("id", event.get("bind_id")) for event in placed(*events)] == [7, 'rank 3: x"', "rank 3: -1"]


def test_a_pid_may_be_written_in_several_ways() -> None:
    """A pid in quotes, even with escapes, is read as a number; pids that are not numbers get the next free numbers."""
    pids = ["4001", '"4001"', '"Spans \\u00e9"', "1.5", '"other"', "1.5"]
    assert [event["pid"] for event in placed(*(f'{{"ph":"i","pid":{pid}}}' for pid in pids))] == [
        3001, 3001, 3003, 3004, 3005, 3004
    ]  # fmt: skip


@given(st.integers(-(10**18), 10**18), st.integers(-(10**6), 10**6), st.floats(-1e5, 1e5))
def test_a_time_keeps_its_nanoseconds_and_is_corrected_as_in_tables(time_ns, offset_ns, drift_ppb) -> None:
    """A time is written with all its digits and equals `RankClock.corrected` to the nanosecond."""
    lines = (
        ClockLine(BASE, offset_ns, drift_ppb, 1, last_ns=BASE),
        ClockLine(BASE, 2 * offset_ns, 0.0, 1, first_ns=BASE),
    )
    clock = RankClock("a", lines)
    (event,) = placed(f'{{"ph":"i","pid":0,"ts":{Decimal(time_ns).scaleb(-3):f}}}', clock=clock)
    assert round(Decimal(str(event["ts"])) * 1_000) == clock.corrected(BASE + time_ns) - BASE + 1_000


@pytest.mark.parametrize("text", ["null", "true", '"soon"', "NaN", "Infinity", "1e300"])
def test_what_is_not_a_time_stays(text) -> None:
    """A value that cannot be a time is copied unchanged."""
    place = RankPlace(3, AS_RECORDED, BASE, BASE, {0: 3002})
    event = f'{{"ph":"i","ts":{text},"dur":1}}'
    assert place.placing().placed(event.encode()).decode() == f",\n{event}"


def test_text_that_is_not_json_is_refused() -> None:
    """An incomplete event raises an error, so no invalid file is written."""
    with pytest.raises(_native.NotATraceError, match="expected an event at byte 9"):
        placed('{"ph": 1}{"ph"')


@pytest.mark.parametrize("end", ["", "]}", ",]}", "NO JSON]}"])
def test_the_events_of_a_damaged_file_are_those_of_the_whole_one(tmp_path, end) -> None:
    """A file that is cut off, or has an extra comma, gives the same events, only more slowly."""
    trace = TraceBuilder().operator("aten::mm", start_us=1.001, duration_us=5).json()
    whole, damaged = tmp_path / "whole.json", tmp_path / "damaged.json"
    whole.write_bytes(trace)
    text = trace[: trace.rindex(b"]")].rstrip()
    damaged.write_bytes(text + (b"," if end.startswith("NO") else b"") + end.removeprefix("NO JSON").encode())

    answers = [_written(path) for path in (whole, damaged)]

    assert answers[0] == answers[1]
    assert [event["ts"] for event in answers[0] if event["ph"] == "X"] == [1.001]


def _written(path) -> list[dict[str, Any]]:
    rank_trace = open_trace(path, cache=False).ranks[0]
    base_ns = rank_trace.header.base_time_ns
    place = RankPlace(0, AS_RECORDED, base_ns, base_ns, {1_000: 1})
    text = b"".join(rank_events(rank_trace, (Process(1_000, "python", 0),), place))
    return json.loads(b"[" + text[1:] + b"]")
