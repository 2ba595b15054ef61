"""The Hypothesis strategies draw valid traces, for which the reader and a JSON parser return the same events."""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, find, given, settings

import holotrace
from holotrace.errors import HolotraceError
from holotrace.testing.strategies import broken_bytes, events, interval_arrays, names, trace_documents

quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

unshrunk = settings(quick, max_examples=3_000, database=None, phases=[Phase.generate], report_multiple_bugs=False)


def read(document: bytes):
    """Write bytes to a file; open and read it as rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(document)
        rank_trace = holotrace.open_trace({0: path}, cache=False).ranks[0]
        _ = rank_trace.health
        return rank_trace


def events_in(document: bytes):
    """Return the header and events of a document, parsed by Python."""
    value = json.loads(document, parse_float=Decimal)
    return (value, value["traceEvents"]) if isinstance(value, dict) else ({}, value)


@quick
@given(interval_arrays(max_size=10, latest=5))
def test_intervals_are_two_int64_arrays_of_one_length(intervals):
    """`interval_arrays` draws starts and ends within the requested limits, as int64 arrays of equal length."""
    start_ns, end_ns = intervals

    assert start_ns.dtype == end_ns.dtype == "int64"
    assert start_ns.shape == end_ns.shape
    assert len(start_ns) <= 10
    assert (abs(start_ns) <= 5).all()


@quick
@given(events())
def test_an_event_is_complete(event):
    """`events` draws events with a name, a process, a thread, and exact times that are not negative."""
    assert event["ph"] == "X"
    assert {"cat", "name", "pid", "tid", "ts", "dur"} <= event.keys()
    assert isinstance(event["ts"], Decimal)
    assert event["ts"] >= 0 <= event["dur"]


@pytest.mark.parametrize("character", ['"', "\\", "\0", "🚀"])
def test_names_contain_odd_characters(character):
    """`names` draws names with quotes, backslashes, NUL and emoji."""
    assert character in find(names(), lambda name: character in name)


@quick
@given(trace_documents())
def test_documents_are_valid_json(document):
    """`trace_documents` draws JSON with the events in `traceEvents` or in a bare list."""
    assert all("ph" in event for event in events_in(document)[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # Hypothesis may discard a large document
@pytest.mark.parametrize(
    "is_odd",
    [
        lambda document: document.startswith(b"["),
        lambda document: b"traceEvents" in document and not document.rstrip(b" \n}").endswith(b"]"),
        lambda document: b"E-3" in document,
        lambda document: any(isinstance(event.get("ts"), str) for event in events_in(document)[1]),
        lambda document: str(2**64 - 1).encode() in document,
    ],
    ids=["bare list", "header after the events", "exponent", "quoted time", "64-bit id"],
)
def test_documents_can_have_every_oddity(is_odd):
    """`trace_documents` can draw bare lists, late headers, exponents, quoted times and 64-bit ids."""
    assert is_odd(find(trace_documents(), is_odd, settings=unshrunk))


@pytest.mark.slow
@quick
@given(trace_documents())
def test_the_reader_agrees_with_a_json_parser(document):
    """The reader returns every complete event, in order, with category, name, and time to the nanosecond."""
    header, parsed = events_in(document)
    complete = [(index, event) for index, event in enumerate(parsed) if event["ph"] == "X"]
    rank_trace = read(document)

    rows = rank_trace.table("events", ["event_index", "start_ns", "duration_ns", "category", "name"])
    rows = rows.filter(rows["event_index"].is_in([index for index, _ in complete]))
    base_ns = header.get("baseTimeNanoseconds", 0)
    for column, key in (("name", "name"), ("category", "cat")):
        assert rank_trace.texts(rows[column]).to_list() == [event[key] for _, event in complete]
    assert rows.select("event_index", "start_ns", "duration_ns").rows() == [
        (index, int(1_000 * Decimal(event["ts"])) + base_ns, int(1_000 * Decimal(event["dur"])))
        for index, event in complete
    ]


@pytest.mark.slow
@quick
@given(trace_documents().flatmap(broken_bytes))
@example(b"")
@example(b"{")
@example(b'{"traceEvents": [')
def test_damaged_files_are_read_as_far_as_possible_or_rejected(damaged):
    """For any damaged bytes, the reader returns tables or raises a HolotraceError."""
    try:
        rank_trace = read(damaged)
    except HolotraceError:
        return
    assert rank_trace.health.row_counts["events"] == rank_trace.table("events").height


def test_damage_changes_the_document():
    """`broken_bytes` can draw bytes that differ from the document."""
    assert find(broken_bytes(b"[]"), lambda damaged: damaged != b"[]") != b"[]"
