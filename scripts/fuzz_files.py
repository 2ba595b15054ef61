"""Damage real traces in many ways and read each result: `make fuzz-files`.

Each file is a piece of a real trace, changed by random mutations. The file's number is the seed of all random choices,
so every file can be reproduced. A worker reads the file with limits on time and memory. The rules:

    - the reader returns a trace or raises a `HolotraceError`; it does not crash, hang or use much memory
    - if the changed text is still JSON, the trace has the events that a plain JSON parser returns
    - if the changed text is not JSON, the health of the file reports damage
    - every event of the text is in the tables or counted as lost

Files that break a rule stay in build/fuzz-files, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import holotrace
from holotrace.errors import HolotraceError
from holotrace.store.trace import RankTrace

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "fuzz-files"
TRACES = (ROOT / "tests" / "reference" / "traces", ROOT.parent / "shared" / "traces")
PIECE_BYTES = 60_000
"""Size of each piece: large enough for hundreds of events, small enough that 20 files can be read per second."""

MOST_FILE_BYTES = 400_000
"""Larger traces are skipped, because smaller traces have the same features, and parsing large ones takes minutes."""

LIMIT_S = 20
LIMIT_BYTES = 600 << 20
"""Memory limit of a worker; the libraries it loads take 200 MB of it."""

FARTHEST_NS = 1 << 62
SHARE_OF_STREAMS = 3
"""Of every five compressed files, about this many are damaged after compression; the others are damaged before it."""

SLACK = 3
"""A text may contain the key `"ph"` up to this many times more often than it has events.

Some of these keys are inside strings, and an event may have the key twice."""

_PHASE = b'"ph"'
_FURTHER_PHASE = b'"ph"\t:'
"""Mutations that add a second `"ph"` to an event write the key in this form, which `_begun` does not count."""

_EVENT_FAULTS = {
    "broken_event", "missing_time", "not_an_event", "oversized_event", "time_overflow", "truncated_json", "unknown_phase"
}  # fmt: skip
"""Kinds of findings about dropped events. The event count of the file includes the dropped events."""

Text = bytes
Mutation = Callable[[Text, random.Random], Text]


@dataclass(frozen=True)
class Case:
    """One changed file. Its `name` consists of the names of the trace and of the mutations."""

    number: int
    name: str
    content: bytes
    text: bytes | None
    """The decompressed text; None if the compressed bytes are damaged."""


def main() -> int:
    """Make and read the files; return the exit code."""
    arguments = _arguments()
    pieces = list(_pieces())
    started = time.monotonic()
    numbers = range(arguments.first, arguments.first + arguments.count)
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.workers, _begin, (pieces, LIMIT_BYTES)) as pool:
        told: Counter[str] = Counter()
        peak = 0
        for kind, message in _answers(pool.imap_unordered(_checked, numbers), len(numbers)):
            told[kind] += 1
            if kind == "broken":
                print(message, flush=True)  # noqa: T201
            if kind == "peak":
                peak = max(peak, int(message))
    took = time.monotonic() - started
    print(  # noqa: T201
        f"{len(numbers):,} files of {len(pieces)} traces in {took:.0f} s: {told['clean']:,} clean, {told['damaged']:,} "
        f"with findings, {told['refused']:,} refused, {told['broken']:,} break a rule; peak memory {peak >> 20} MiB"
    )
    return 1 if told["broken"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="number of files")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def _answers(answers: Iterator[list[tuple[str, str]]], count: int) -> Iterator[tuple[str, str]]:
    """Yield the answers of the workers; stop the run if a worker does not answer."""
    waiting = iter(answers)
    for _ in range(count):
        try:
            yield from waiting.next(timeout=10 * LIMIT_S)  # type: ignore[attr-defined]
        except multiprocessing.TimeoutError:  # noqa: PERF203
            message = "a worker hangs or was killed"
            raise SystemExit(message) from None


def _pieces() -> Iterator[tuple[str, bytes]]:
    """Yield a shortened copy of every trace: its beginning, some of its events, and its end."""
    seen = set()
    for folder in TRACES:
        for path in sorted(folder.rglob("*.json*")):
            if path.name in seen or path.stat().st_size > MOST_FILE_BYTES:
                continue
            seen.add(path.name)
            content = path.read_bytes()
            piece = _piece(gzip.decompress(content) if path.suffix == ".gz" else content)
            if piece is not None:
                yield path.name, piece
    yield "list", b'[{"name":"add","ph":"X","ts":1,"dur":2,"tid":1,"pid":"CPU functions","args":{}}]'


def _piece(text: bytes) -> bytes | None:
    try:
        trace = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list) or not events:
        return None
    kept, size, step = [], 0, max(1, len(events) // 400)
    for event in events[::step]:
        size += len(json.dumps(event, default=float))
        if size > PIECE_BYTES:
            break
        kept.append(event)
    rest = {key: value for key, value in trace.items() if key != "traceEvents" and len(str(value)) < PIECE_BYTES}
    keys = list(rest)
    ordered = {**{key: rest[key] for key in keys[:-1]}, "traceEvents": kept, **{key: rest[key] for key in keys[-1:]}}
    return json.dumps(ordered, default=float, indent=1 if len(kept) % 2 else None).encode()


def _flip(text: Text, chance: random.Random) -> Text:
    changed = bytearray(text)
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _replace_byte(text: Text, chance: random.Random) -> Text:
    at = chance.randrange(len(text))
    return text[:at] + bytes([chance.choice(b'{}[],:"\\0x \n\x00\xff-')]) + text[at + 1 :]


def _replace_structure(text: Text, chance: random.Random) -> Text:
    places = [match.start() for match in re.finditer(rb'[{}\[\],:"]', text)]
    at = chance.choice(places)
    return text[:at] + bytes([chance.choice(b'{}[],:" ')]) + text[at + 1 :]


def _delete(text: Text, chance: random.Random) -> Text:
    at = chance.randrange(len(text))
    return text[:at] + text[at + chance.choice((1, 2, 10, 300, 5_000)) :]


def _insert(text: Text, chance: random.Random) -> Text:
    pieces = (
        b'"',
        b"\\",
        b"}",
        b"]",
        b"{",
        b"[",
        b",",
        b'{"ph":',
        b"NaN",
        b"\x00" * 50,
        b'"args":[1,',
        b'"traceEvents":[',
    )
    at = chance.randrange(len(text))
    piece = chance.choice(pieces) if chance.randrange(5) else chance.randbytes(chance.randrange(1, 40))
    return text[:at] + piece * chance.choice((1, 1, 1, 3, 500)) + text[at:]


def _duplicate(text: Text, chance: random.Random) -> Text:
    at = chance.randrange(len(text))
    end = min(len(text), at + chance.choice((1, 30, 400, 10_000)))
    return text[:end] + text[at:end] + text[end:]


def _truncate(text: Text, chance: random.Random) -> Text:
    return text[: chance.randrange(1, len(text))]


def _behead(text: Text, chance: random.Random) -> Text:
    return text[chance.randrange(1, min(len(text), 3_000)) :]


def _swap_keys(text: Text, chance: random.Random) -> Text:
    keys = [match.span() for match in re.finditer(rb'"[A-Za-z ]{1,20}"(?=\s*:)', text)]
    if not keys[1:]:
        return text
    first, second = sorted(chance.sample(keys, 2))
    middle = text[first[1] : second[0]]
    return text[: first[0]] + text[slice(*second)] + middle + text[slice(*first)] + text[second[1] :]


def _double_key(text: Text, chance: random.Random) -> Text:
    keys = [match.start() for match in re.finditer(rb'"(?:ph|cat|name|pid|tid|ts|dur|id|args)"\s*:', text)]
    if not keys:
        return text
    entries = (
        _FURTHER_PHASE + b'"s",',
        _FURTHER_PHASE + b'"X",',
        _FURTHER_PHASE + b'"C",',
        b'"cat":"kernel",',
        b'"args":{"stream":"x","correlation":{}},',
        b'"ts":5,',
    )
    at = chance.choice(keys)
    return text[:at] + chance.choice(entries) + text[at:]


def _odd_value(text: Text, chance: random.Random) -> Text:
    values = [match.span(1) for match in re.finditer(rb':\s*("[^"\\]*"|-?[0-9.]+)', text)]
    if not values:
        return text
    odd = (
        b"null",
        b"{}",
        b"[1]",
        b'"x"',
        b"-1",
        b"9223372036854775808",
        b"1e999",
        b"-5000000000000000.0",
        b"NaN",
        b"01",
    )
    begin, end = chance.choice(values)
    return text[:begin] + chance.choice(odd) + text[end:]


def _twice(text: Text, chance: random.Random) -> Text:
    return text + chance.choice((b"", b"\n", b",", b"\x00\x00", b"garbage")) + text


def _event_change(text: Text, chance: random.Random) -> Text:
    gaps = [match.start() for match in re.finditer(rb"\}\s*,\s*\{", text)]
    if not gaps:
        return text
    at = chance.choice(gaps)
    comma = text.index(b",", at)
    return text[:comma] + chance.choice((b"]", b"", b",,", b"],", b"}", b"null,", b",5,", b"\x00")) + text[comma + 1 :]


MUTATIONS: tuple[Mutation, ...] = (
    _flip, _flip, _replace_byte, _replace_structure, _replace_structure, _delete, _insert, _duplicate, _truncate, _behead,
    _swap_keys, _double_key, _odd_value, _odd_value, _twice, _event_change, _event_change,
)  # fmt: skip
OF_STREAMS: tuple[Mutation, ...] = (_flip, _replace_byte, _delete, _duplicate, _truncate, _twice)


def case(number: int, pieces: list[tuple[str, bytes]]) -> Case:
    """Make the test file with this number; the same number always makes the same file."""
    chance = random.Random(number)  # noqa: S311 -- repeatable, not secret
    name, text = chance.choice(pieces)
    made = [name]
    packing = chance.choice(("plain", "plain", "gzip", "zstd"))
    damages_stream = packing != "plain" and chance.randrange(5) < SHARE_OF_STREAMS
    if not damages_stream:
        for mutation in chance.choices(MUTATIONS, k=chance.choice((1, 1, 1, 2, 4))):
            text = mutation(text, chance) or text
            made.append(mutation.__name__.strip("_"))
    content = _packed(text, packing)
    if damages_stream:
        mutation = chance.choice(OF_STREAMS)
        content = mutation(content, chance) or content
        made += [packing, mutation.__name__.strip("_")]
    return Case(number, " ".join(made), content, None if damages_stream else text)


def _packed(text: bytes, packing: str) -> bytes:
    if packing == "gzip":
        return gzip.compress(text, compresslevel=1, mtime=0)
    return bytes(pa.Codec("zstd").compress(text, asbytes=True)) if packing == "zstd" else text


_given: list[tuple[str, bytes]] = []


def _begin(pieces: list[tuple[str, bytes]], limit_bytes: int) -> None:
    """Prepare a worker: set its traces, its memory limit, and an alarm that stops slow reads."""
    _given.extend(pieces)
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_DATA, (8 * limit_bytes, resource.RLIM_INFINITY))
    pl.DataFrame({"a": [1]})


def _too_long(*_: object) -> None:
    message = f"reading took more than {LIMIT_S} s"
    raise TimeoutError(message)


def _checked(number: int) -> list[tuple[str, str]]:
    """Read a file; return the outcome (clean, damaged, refused or broken) and the worker's peak memory."""
    made = case(number, _given)
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{number}.json"
    path.write_bytes(made.content)
    signal.alarm(LIMIT_S)
    try:
        state, faults = _read(path, made)
    except BaseException as error:  # noqa: BLE001 -- a panic of native code is not an Exception
        state, faults = "broken", [f"{type(error).__name__}: {error}"[:300]]
    finally:
        signal.alarm(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    if peak > LIMIT_BYTES:
        faults.append(f"{peak:,} bytes of memory")
    if faults:
        return [("broken", f"{path} ({made.name}): {'; '.join(faults)}"), ("peak", str(peak))]
    path.unlink()
    return [(state, ""), ("peak", str(peak))]


def _read(path: Path, made: Case) -> tuple[str, list[str]]:
    text = made.text
    expected = None if text is None else _parsed(text)
    try:
        rank_trace = next(iter(holotrace.open_trace(path, cache=False).ranks.values()))
        health = rank_trace.health
        _ = rank_trace.header.options
        heights = {name: rank_trace.table(name).height for name in health.row_counts}
    except HolotraceError as error:
        whole = isinstance(expected, dict) and isinstance(expected.get("traceEvents"), list)
        begun = 0 if text is None else _begun(text)
        return "refused", [f"refused with {begun} events: {error}"] if whole or begun > SLACK else []
    faults = (
        [] if heights == health.row_counts else ["the row counts of the tables differ from those in the file's health"]
    )
    if text is not None:
        if expected is None and health.is_clean:
            faults.append("the text is not JSON, but the health record is clean")
        if isinstance(expected, dict):
            faults += _differences(rank_trace, text, expected)
        faults += _unexplained(rank_trace, text)
    elif health.is_clean and _is_damaged(made.content):
        faults.append("the compressed stream is damaged, but the health record is clean")
    return ("clean" if health.is_clean else "damaged"), faults


def _is_damaged(content: bytes) -> bool:
    """Whether Python's gzip or pyarrow's zstd rejects a compressed file."""
    try:
        if content[:2] == b"\x1f\x8b":
            gzip.decompress(content)
        else:
            pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    except (OSError, EOFError, ValueError, gzip.zlib.error):  # type: ignore[attr-defined]
        return True
    return False


def _parsed(text: bytes) -> object:
    """Return what a strict JSON parser returns; None if it rejects the text."""
    try:
        return json.loads(text.decode(), parse_float=Decimal, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _differences(rank_trace: RankTrace, text: bytes, expected: dict[str, Any]) -> list[str]:
    """Compare the complete events with those of the JSON parser; return the first difference, if any.

    Texts with several lists of events are skipped, because the JSON parser keeps only the last list.
    """
    elements = expected.get("traceEvents")
    if text.count(b'"traceEvents"') != 1 or b'"baseTime' in text or not isinstance(elements, list):
        return []
    if rank_trace.health.event_count != len(elements):
        return [f"{rank_trace.health.event_count} events instead of {len(elements)}"]
    events = rank_trace.table("events", ["event_index", "start_ns", "duration_ns", "name"])
    names = rank_trace.texts(events["name"]).to_list()
    read = {
        row[0]: (row[1], row[2], name)
        for row, name in zip(events.select("event_index", "start_ns", "duration_ns").iter_rows(), names, strict=True)
    }
    wanted = {index: row for index, element in enumerate(elements) if (row := _complete(element)) is not None}
    wrong = [index for index, row in wanted.items() if read.get(index) != row]
    return [f"event {wrong[0]} is {read.get(wrong[0])} instead of {wanted[wrong[0]]}"] if wrong else []


def _complete(event: object) -> tuple[int, int, str] | None:
    """Return start, duration and name of a complete event; None if the event cannot be compared."""
    if not isinstance(event, dict) or event.get("ph") != "X" or not isinstance(event.get("name"), str):
        return None
    times = [
        Decimal(time)
        for time in (event.get("ts"), event.get("dur"))
        if isinstance(time, (int, Decimal)) and not isinstance(time, bool) and abs(time) < FARTHEST_NS
    ]
    if not times[1:]:
        return None
    start, duration = (round_half_away(time * 1000) for time in times)
    if duration < 0 or not all(-FARTHEST_NS <= time < FARTHEST_NS for time in (start, start + duration)):
        return None
    try:
        event["name"].encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return start, duration, event["name"]


def round_half_away(value: Decimal) -> int:
    """Round to the nearest whole number, halves away from zero."""
    return int(value.to_integral_value(rounding="ROUND_HALF_UP"))


def _unexplained(rank_trace: RankTrace, text: bytes) -> list[str]:
    """Check that every event that begins in the text was read or reported as lost; return the problem, if any."""
    findings = rank_trace.health.findings
    dropped = sum(finding.count for finding in findings if finding.kind in _EVENT_FAULTS)
    lost = sum(finding.events_lost for finding in findings)
    begun, kept = _begun(text), rank_trace.health.event_count - dropped
    missing = begun - kept - lost
    return [f"of {begun} events, {kept} are read and {lost} reported as lost"] if missing > SLACK else []


def _begun(text: bytes) -> int:
    """Return how many events begin in a text: the number of keys `"ph"` that no mutation added."""
    return text.count(_PHASE) - text.count(_FURTHER_PHASE)


if __name__ == "__main__":
    sys.exit(main())
