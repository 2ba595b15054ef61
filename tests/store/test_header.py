"""`Header` parses everything in a trace except its events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holotrace.store.header import Header


def test_known_keys_become_fields() -> None:
    """Ranks, devices, options and names become fields; `raw` keeps all keys."""
    raw: dict[str, Any] = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "numSms": 108}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "record_shapes": 1,
        "with_stack": 1,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "host_name": "node7",
        "traceName": "trace.json",
        "user_key": {"a": [1, 2]},
    }
    assert Header.from_json(json.dumps(raw)) == Header(
        rank=3,
        world_size=8,
        backend="nccl",
        device_properties=[{"id": 0, "name": "NVIDIA A100", "numSms": 108}],
        base_time_ns=1_700_000_000_000_000_000,
        options={
            "record_shapes": True,
            "profile_memory": False,
            "with_stack": True,
            "with_modules": False,
            "with_flops": False,
        },
        host_name="node7",
        trace_name="trace.json",
        raw=raw,
    )


def test_an_empty_header_has_defaults() -> None:
    """In an empty header, every field is None, 0, empty or off."""
    assert Header.from_json("{}") == Header()


@pytest.mark.parametrize(
    ("written", "rank"),
    [
        (0, 0),
        ("5", 5),
        (-1, None),
        (None, None),
        (True, None),
        ("x", None),
        (1.5, None),
        ([1], None),
        (2**31 - 1, 2**31 - 1),
        (2**31, None),
    ],
)
def test_rank_is_a_whole_number_from_zero(written: object, rank: int | None) -> None:
    """0 and "5" are ranks; -1, 2**31, 1.5 and True are not."""
    assert Header.from_json(json.dumps({"distributedInfo": {"rank": written}})).rank == rank


@pytest.mark.parametrize("odd", ["null", "[]", "7", '"text"', "{}"])
@pytest.mark.parametrize("key", ["distributedInfo", "deviceProperties", "baseTimeNanoseconds", "host_name"])
def test_values_of_odd_types_count_as_missing(key: str, odd: str) -> None:
    """A key whose value has the wrong type is treated as missing; `raw` keeps it."""
    header = Header.from_json(f'{{"{key}": {odd}}}')
    assert header.rank is None
    assert header.device_properties == []
    assert header.raw == {key: json.loads(odd)}
