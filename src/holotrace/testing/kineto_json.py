"""Write JSON in the layout of Kineto's `ChromeTraceLogger`, which `export_chrome_trace` uses.

Header keys precede the events. Each key of an event has its own line; all args share one line.
https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

Event = Mapping[str, Any]
"""One event, with the same keys as in the file: ph, cat, name, pid, tid, ts, dur, args. Times are in microseconds."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=float)


def microseconds(time_ns: int) -> Decimal:
    """Return nanoseconds as microseconds with exactly three decimals, for `ts` and `dur`."""
    return Decimal(time_ns).scaleb(-3)


def document(header: Event, events: Iterable[Event], trailer: Event) -> bytes:
    """Return a trace file: header keys, `traceEvents`, then the keys that Kineto writes after the events."""
    head = "".join(f"  {_field(key, value)},\n" for key, value in header.items())
    body = ",\n".join(map(event_text, events))
    tail = "".join(f",\n  {_field(key, value)}" for key, value in trailer.items())
    return f'{{\n{head}  "traceEvents": [\n{body}\n  ]{tail}\n}}\n'.encode()


def event_text(event: Event) -> str:
    """Return one event as several lines, without a trailing comma."""
    fields = ",\n    ".join([_field(key, value) for key, value in event.items() if key != "args"])
    args = f"\n    ,\n    {_args(event['args'])}" if "args" in event else ""
    return f"  {{\n    {fields}{args}\n  }}"


def _args(args: object) -> str:
    text = _text(args)
    return f'"args": {{\n      {text[1:-1]}\n    }}' if isinstance(args, Mapping) else f'"args": {text}'


def _field(key: str, value: object) -> str:
    return f"{_key_text(key)}: {_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value) if type(value) is int else _ENCODER.encode(value)


_key_text = functools.cache(_ENCODER.encode)
