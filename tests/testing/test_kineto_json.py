"""Simulated traces have the text layout of Kineto."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.testing.kineto_json import document, event_text, microseconds


def test_an_event_has_one_line_per_key_and_one_for_all_args():
    """As in Kineto's files, an event has one line per key, and a single line for all args."""
    event = {"ph": "X", "name": 'a "b"', "ts": microseconds(1_500), "args": {"stream": 7, "grid": [1, 2, 3]}}

    assert event_text(event) == (
        '  {\n    "ph": "X",\n    "name": "a \\"b\\"",\n    "ts": 1.500\n    ,\n'
        '    "args": {\n      "stream": 7, "grid": [1, 2, 3]\n    }\n  }'
    )


def test_a_document_has_header_events_and_trailer_in_this_order():
    """A document has the header keys, then the events, then the trailer keys."""
    text = document({"schemaVersion": 1}, [{"ph": "M"}, {"ph": "i"}], {"traceName": "t"})

    assert json.loads(text) == {"schemaVersion": 1, "traceEvents": [{"ph": "M"}, {"ph": "i"}], "traceName": "t"}
    assert list(json.loads(text)) == ["schemaVersion", "traceEvents", "traceName"]


def test_a_document_without_events_is_valid():
    """A document without a header, events or a trailer is valid JSON."""
    assert json.loads(document({}, [], {})) == {"traceEvents": []}


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_microseconds_are_exact_with_three_decimals(time_ns):
    """`microseconds` converts any int64 number of nanoseconds without losing a digit."""
    text = f"{microseconds(time_ns):f}"

    assert text == f"{time_ns // 1_000}.{time_ns % 1_000:03}"
    assert Decimal(text) * 1_000 == time_ns
