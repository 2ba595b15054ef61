"""Events are written as JSON text with exact numbers."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.export.event_json import event_text, events_text, exact_number, file_time


@pytest.mark.parametrize("text", ["1725000000000000.123", "0.1", "14.431178472007424", "1e5", "-2.50", "1.0E+400"])
def test_a_number_keeps_its_value(text: str) -> None:
    """Numbers such as 1725000000000000.123 and 1.0E+400 are written with the value that was read."""
    assert Decimal(event_text({"n": exact_number(text)}).removeprefix('{"n":')[:-1]) == Decimal(text)


def test_ordinary_numbers_stay_floats() -> None:
    """A number becomes a float if that is exact, otherwise a Decimal, which is slower."""
    assert [type(exact_number(text)) for text in ("0.1", "1234567.891", "1725000000000000.123")] == [
        float,
        float,
        Decimal,
    ]


def test_an_event_with_a_decimal_is_the_same_json() -> None:
    """An event with a Decimal, strings, lists, booleans and null keeps its content and all digits of the Decimal."""
    event = {"ts": Decimal("1725000000000000.123"), "args": {"a": [1, 'x"', None, True], "b": (0.5,)}}
    text = event_text(event)
    assert '"ts":1725000000000000.123' in text
    assert json.loads(text)["args"] == {"a": [1, 'x"', None, True], "b": [0.5]}


@pytest.mark.parametrize("events", [[], [{"a": 1}], [{"a": 1}, {"é": [True]}], [{"a": Decimal("0.1")}, {"b": 2}]])
def test_many_events_equal_those_of_a_list(events: list[dict]) -> None:
    """The events that `events_text` writes together equal those that `event_text` writes one by one."""
    assert json.loads(f"[{events_text(events)}]") == json.loads(f"[{','.join(map(event_text, events))}]")
    assert json.loads(f"[{events_text([*events, '[]'])}]")[-1] == []


@settings(deadline=None)
@given(st.integers(-(10**18), 10**18), st.integers(0, 10**18))
def test_a_time_is_written_exactly(time_ns: int, base_ns: int) -> None:
    """`file_time` returns microseconds from the base time, exact to the nanosecond."""
    assert Decimal(file_time(time_ns, base_ns)) * 1_000 == time_ns - base_ns
    assert file_time(2_500, 1_500) == 1
