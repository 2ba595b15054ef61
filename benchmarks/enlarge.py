"""Repeat the events of a trace, one copy after the other in time, to get a large one of real shape.

    python benchmarks/enlarge.py SOURCE.json[.gz] TARGET.json[.gz] COPIES

Ids that join events, and the numbers of ProfilerSteps, are shifted copy by copy, so that every copy stands for itself.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import IO, Any

Event = dict[str, Any]

_STEP = re.compile(r"ProfilerStep#(\d+)$")
_ID_ARGS = ("correlation", "External id", "external id", "Ev Idx")
_LARGEST_ID = 2**31
_ARGUMENT_COUNT = 4


def enlarge(source: Path, target: Path, copies: int) -> None:
    """Write `copies` times the events of `source` to `target`; metadata events come once."""
    header = _read(source)
    events = header.pop("traceEvents")
    once = [event for event in events if event.get("ph") == "M"]
    again = [event for event in events if event.get("ph") != "M"]
    span, ids = _span(again), _id_count(again)
    with _open(target, "w") as out:
        out.write("{\n" + "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in header.items()))
        out.write('  "traceEvents": [\n' + ",\n".join(map(_layout, [*once, *again])))
        for copy in range(1, copies):
            for event in again:
                out.write(",\n" + _layout(_shifted(event, copy, span, ids)))
        out.write("\n  ]\n}\n")


def _read(source: Path) -> dict[str, Any]:
    with _open(source, "r") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def _open(path: Path, mode: str) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, mode + "t", encoding="utf-8", compresslevel=6)  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8")


def _span(events: list[Event]) -> int:
    """Whole microseconds from the first start to the last end, and a little more."""
    timed = [event for event in events if event.get("ph") == "X" and event.get("cat") != "Trace"]
    first = min(float(event["ts"]) for event in timed)
    return int(max(float(event["ts"]) + float(event.get("dur", 0)) for event in timed) - first) + 1000


def _id_count(events: list[Event]) -> int:
    ids = [event.get("args", {}).get(key) for event in events for key in _ID_ARGS]
    return 1 + max((each for each in ids if isinstance(each, int) and each < _LARGEST_ID), default=0)


def _shifted(event: Event, copy: int, span: int, ids: int) -> Event:
    shifted = {**event, "ts": event["ts"] + copy * span}
    if isinstance(event.get("id"), int):
        shifted["id"] += copy * ids
    if "args" in event:
        shifted["args"] = {key: _shifted_id(key, value, copy * ids) for key, value in event["args"].items()}
    if step := _STEP.match(str(event.get("name"))):
        shifted["name"] = f"ProfilerStep#{int(step[1]) + copy * 1_000}"
    return shifted


def _shifted_id(key: str, value: object, by: int) -> object:
    is_id = key in _ID_ARGS and isinstance(value, int) and 0 < value < _LARGEST_ID
    return value + by if is_id else value  # type: ignore[operator]


def _layout(event: Event) -> str:
    """Lay the event out over several lines, as the profiler does."""
    fields = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event.items() if key != "args")
    if "args" not in event:
        return "  {\n    " + fields + "\n  }"
    args = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event["args"].items())
    return "  {\n    " + fields + ',\n    "args": {\n      ' + args + "\n    }\n  }"


if __name__ == "__main__":
    if len(sys.argv) != _ARGUMENT_COUNT:
        sys.exit(__doc__)
    enlarge(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
