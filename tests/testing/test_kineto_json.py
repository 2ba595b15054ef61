"""The layout of Kineto's own writer."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.testing.kineto_json import document, event_text, microseconds


def test_an_event_has_one_key_a_line_and_its_args_on_one():
    """The lines of a complete event, as Kineto breaks them."""
    event = {"ph": "X", "name": 'a "b"', "ts": microseconds(1_500), "args": {"stream": 7, "grid": [1, 2, 3]}}

    assert event_text(event) == (
        '  {\n    "ph": "X",\n    "name": "a \\"b\\"",\n    "ts": 1.500\n    ,\n'
        '    "args": {\n      "stream": 7, "grid": [1, 2, 3]\n    }\n  }'
    )


def test_a_document_holds_header_events_and_trailer_in_this_order():
    """Header keys stand before the events, the trailer's behind them."""
    text = document({"schemaVersion": 1}, [{"ph": "M"}, {"ph": "i"}], {"traceName": "t"})

    assert json.loads(text) == {"schemaVersion": 1, "traceEvents": [{"ph": "M"}, {"ph": "i"}], "traceName": "t"}
    assert list(json.loads(text)) == ["schemaVersion", "traceEvents", "traceName"]


def test_a_document_without_events_is_valid():
    """No comma is left where nothing stands."""
    assert json.loads(document({}, [], {})) == {"traceEvents": []}


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_microseconds_are_exact_with_three_decimals(time_ns):
    """The digits of the nanoseconds are those of the microseconds, whatever their size."""
    text = f"{microseconds(time_ns):f}"

    assert text == f"{time_ns // 1_000}.{time_ns % 1_000:03}"
    assert Decimal(text) * 1_000 == time_ns
