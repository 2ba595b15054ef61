"""Make a large, realistic trace by repeating the events of a trace, one copy after the other in time.

    python benchmarks/enlarge.py SOURCE.json[.gz] TARGET.json[.gz] COPIES [--project]

Each copy has new ids for linked events and new ProfilerStep numbers. With `--project`, an event is
added for each host annotation on each stream to which the annotation launched kernels; newer profilers write such
events themselves. The event lasts from the start of the first of these kernels to the end of the last.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

Event = dict[str, Any]

_STEP = re.compile(r"ProfilerStep#(\d+)$")
_ID_ARGS = ("correlation", "External id", "external id", "Ev Idx")
_LARGEST_ID = 2**31


def enlarge(source: Path, target: Path, copies: int, *, project: bool = False) -> None:
    """Write the events of `source` to `target`, repeated `copies` times; metadata events are written once."""
    header = _read(source)
    events = header.pop("traceEvents")
    once = [event for event in events if event.get("ph") == "M"]
    again = [event for event in events if event.get("ph") != "M"]
    again += _projected(again) if project else ()
    span, ids = _span(again), _id_count(again)
    with _open(target, "w") as out:
        out.write("{\n" + "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in header.items()))
        out.write('  "traceEvents": [\n' + ",\n".join(map(_layout, [*once, *again])))
        for copy in range(1, copies):
            for event in again:
                out.write(",\n" + _layout(_shifted(event, copy, span, ids)))
        out.write("\n  ]\n}\n")


def _projected(events: list[Event]) -> Iterator[Event]:
    """Yield an event for each host annotation and each stream to which the annotation launched kernels."""
    work = {event["args"].get("correlation"): event for event in events if event.get("cat") == "kernel"}
    launches = defaultdict(list)
    for event in events:
        if event.get("cat") == "cuda_runtime" and event["args"].get("correlation") in work:
            launches[event["tid"]].append((event["ts"], event["args"]["correlation"]))
    for thread in launches.values():
        thread.sort()
    for event in events:
        if event.get("cat") != "user_annotation":
            continue
        thread = launches[event["tid"]]
        inside = thread[bisect_left(thread, (event["ts"],)) : bisect_left(thread, (event["ts"] + event["dur"],))]
        streams = defaultdict(list)
        for _, correlation in inside:
            streams[work[correlation]["pid"], work[correlation]["tid"]].append(work[correlation])
        for (process, stream), kernels in streams.items():
            begin = min(kernel["ts"] for kernel in kernels)
            place = {"pid": process, "tid": stream, "ts": begin}
            length = max(kernel["ts"] + kernel["dur"] for kernel in kernels) - begin
            yield {"ph": "X", "cat": "gpu_user_annotation", "name": event["name"], **place, "dur": length, "args": {}}


def _read(source: Path) -> dict[str, Any]:
    with _open(source, "r") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def _open(path: Path, mode: str) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, mode + "t", encoding="utf-8", compresslevel=6)  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8")


def _span(events: list[Event]) -> int:
    """Return the time from the first start to the last end, in whole microseconds, plus a margin."""
    timed = [event for event in events if event.get("ph") == "X" and event.get("cat") != "Trace"]
    first = min(float(event["ts"]) for event in timed)
    return int(max(float(event["ts"]) + float(event.get("dur", 0)) for event in timed) - first) + 1000


def _id_count(events: list[Event]) -> int:
    ids = [event.get("args", {}).get(key) for event in events for key in _ID_ARGS]
    return 1 + max((number for number in ids if isinstance(number, int) and number < _LARGEST_ID), default=0)


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
    """Format the event over several lines, as the profiler does."""
    fields = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event.items() if key != "args")
    if "args" not in event:
        return "  {\n    " + fields + "\n  }"
    args = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event["args"].items())
    return "  {\n    " + fields + ',\n    "args": {\n      ' + args + "\n    }\n  }"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("copies", type=int)
    parser.add_argument("--project", action="store_true")
    options = parser.parse_args()
    enlarge(options.source, options.target, options.copies, project=options.project)
