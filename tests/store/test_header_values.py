"""Invalid values in a header raise no errors."""

from __future__ import annotations

import json

import pytest

from holotrace.store.header import Header

IMPOSSIBLE = ({"a": 1}, [1], None, True, 2**63, -(2**63) - 1, 10**40)


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=str)
def test_invalid_device_properties_are_dropped(value) -> None:
    """A device property that is an object, a list or a number beyond 64 bits is dropped; the others are kept."""
    header = Header.from_keys({"deviceProperties": [{"id": value, "name": "x", "numSms": 108, "share": 0.5}, value]})
    assert header.device_properties[0] == {"name": "x", "numSms": 108, "share": 0.5}
    assert all(isinstance(properties, dict) for properties in header.device_properties)


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 300, "9" * 5_000, "-" + "9" * 5_000])
@pytest.mark.parametrize("as_text", [False, True])
def test_numbers_of_any_length_are_read(digits, as_text) -> None:
    """A number of 5,000 digits, which is too long for Python to parse, is treated as missing."""
    number = json.dumps(digits) if as_text else digits
    text = f'{{"distributedInfo": {{"rank": {number}, "world_size": {number}}}, "baseTimeNanoseconds": {number}}}'
    header = Header.from_json(text)
    assert (header.rank, header.world_size, header.base_time_ns) == (None, None, 0)


def test_half_a_surrogate_pair_is_a_question_mark() -> None:
    """A lone surrogate in a name, which UTF-8 cannot encode, becomes `?`."""
    text = r'{"host_name": "a\ud800b", "deviceProperties": [{"name": "\udfff"}]}'
    header = Header.from_json(text)
    assert (header.host_name, header.device_properties) == ("a?b", [{"name": "?"}])
