"""Copies of a trace file with further or other events; a file of any size takes a few MiB of memory.

`with_events` copies the text byte by byte and adds events at the end of the list. `edited` also adds args to events, or
leaves events out, where that is known beforehand; it reads no event. `rewritten` reads every event and writes what a
function makes of it. All keep whatever else the file holds, before and after its events.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hta.errors import UnreadableTraceError
from hta.export.event_json import events_text
from hta.export.event_reader import EventReader, read_event
from hta.export.event_spans import Spans, event_spans
from hta.export.new_file import new_file
from hta.export.trace_text import pieces
from hta.locations import Address, Location, address_text
from hta.store.trace import RankTrace

Event: TypeAlias = Mapping[str, Any]
"""An event with the keys of the Chrome trace format. `hta.export.event_json.file_time` gives its `ts`."""

Change: TypeAlias = Callable[[dict[str, Any]], Event | None]
"""Gets an event and returns it, changed or not, or another one; None leaves the event out."""

AddedArgs: TypeAlias = Callable[[int], str]
"""Gets the `event_index` of an event; returns what to add to its args, as JSON without braces: `"critical":1`."""

KEPT, MARKED, LEFT_OUT = range(3)
"""The fates of an event in an edited copy."""

_BETWEEN = b",\n"
_EVENTS_AT_ONCE = 1_000
_BLANK = b" \t\r\n"
_ARGS_END = re.compile(rb"[ \t\r\n]*\}")


def with_events(
    rank_trace: RankTrace, target: Location, events: Iterable[Event | str], *, overwrite: bool = False
) -> None:
    """Copy the file of a rank, and add events at the end of its list of events.

    A file that ends within its events, because its recording was cut off, is closed behind its last whole event.

    Args:
        rank_trace: whose file; what is selected of it plays no part.
        target: where to write; compressed where the name ends in `.gz`.
        events: events, or their JSON text, taken one after the other while writing.
        overwrite: replace what is there.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, its folder is missing or cannot be written, or
            the source is compressed with zstd and no installed module reads that.
        UnreadableTraceError: the source cannot be read, or is no longer the file that was opened.
        OSError: writing failed; nothing is left behind.
    """
    end = rank_trace.health.events_end
    if end is None:
        rewritten(rank_trace.source, target, _unchanged, events, overwrite=overwrite)
        return
    with new_file(target, overwrite=overwrite) as file:
        for piece in _with_events(rank_trace.source, end, iter(events)):
            file.write(piece)


def rewritten(
    source: Address,
    target: Location,
    change: Change,
    events: Iterable[Event | str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Copy a trace file with every event as `change` returns it, and add events at the end.

    Events come in the order of the file, so the n-th call gets the event with the `event_index` n. Numbers keep all
    their digits: those that a double would cut off are a `Decimal`.

    Raises:
        InvalidOptionError, OSError: see `with_events`.
        UnreadableTraceError: the source cannot be read, or an event is no JSON.
    """
    path = address_text(source)
    reader = EventReader(path, pieces(path))
    with new_file(target, overwrite=overwrite) as file:
        for text in _rewritten(reader, change, events):
            file.write(text.encode())


def edited(  # noqa: PLR0913 -- whose file, where to, what changes, and what is added
    rank_trace: RankTrace,
    target: Location,
    fates: npt.NDArray[np.uint8],
    added_args: AddedArgs,
    events: Iterable[Event | str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Copy the file of a rank, add to the args of some of its events, leave some out, and add others at the end.

    All else is copied letter by letter. A file that had to be repaired when it was read is rewritten instead.

    Args:
        rank_trace: whose file; what is selected of it plays no part.
        target: where to write; compressed where the name ends in `.gz`.
        fates: `KEPT`, `MARKED` or `LEFT_OUT` for each `event_index`; events beyond its end are kept.
        added_args: what to add to the args of those that are marked.
        events: events, or their JSON text, to add.
        overwrite: replace what is there.

    Raises:
        InvalidOptionError, OSError: see `with_events`.
        UnreadableTraceError: the source cannot be read, or is no longer the file that was opened.
    """
    end = rank_trace.health.events_end
    if end is None or not rank_trace.health.is_clean:
        rewritten(rank_trace.source, target, _in_order(fates, added_args), events, overwrite=overwrite)
        return
    source = address_text(rank_trace.source)
    copy = _Edited(source, fates, added_args)
    with new_file(target, overwrite=overwrite) as file:
        for piece in copy.pieces(end, iter(events)):
            file.write(piece)
        if copy.event_count != rank_trace.health.event_count:
            raise _changed_meanwhile(source)


def _in_order(fates: npt.NDArray[np.uint8], added_args: AddedArgs) -> Change:
    """Return the change of `rewritten`, which gets all events one after the other, that does the same."""
    numbers = itertools.count()

    def changed(event: dict[str, Any]) -> Event | None:
        index = next(numbers)
        fate = fates[index] if index < len(fates) else KEPT
        if fate == LEFT_OUT:
            return None
        return _with_args(event, added_args(index)) if fate == MARKED else event

    return changed


def _with_args(event: dict[str, Any], added: str) -> Event:
    args = event.get("args")
    return {**event, "args": {**read_event(f"{{{added}}}"), **(args if isinstance(args, dict) else {})}}


class _Edited:
    """Copies a file piece by piece; `event_count` says how many events it had so far."""

    def __init__(self, source: str, fates: npt.NDArray[np.uint8], added_args: AddedArgs) -> None:
        self.event_count = 0
        self._source = source
        self._fates = fates
        self._added_args = added_args

    def pieces(self, end: int, added: Iterator[Event | str]) -> Iterator[bytes]:
        """Yield the copy; the list of events ends at the offset `end` of the file."""
        text = _Text(self._source)
        yield from text.until(_start_of_events(self._source))
        parts = (part for spans in event_spans(text.until(end - 1)) for part in self._parts(spans))
        yield from _separated(itertools.chain(parts, (events_text([each]).encode() for each in added)))
        yield from text.until(None)

    def _parts(self, spans: Spans) -> Iterator[bytes]:
        """Yield what is written of some events: those kept side by side in one piece."""
        fates = self._fates_of(len(spans.starts))
        for first, last, fate in _runs(fates):
            if fate == KEPT:
                yield spans.text[spans.starts[first] : spans.ends[last]]
            elif fate == MARKED:
                yield from (self._marked(spans, number) for number in range(first, last + 1))
        self.event_count += len(fates)

    def _fates_of(self, count: int) -> npt.NDArray[np.uint8]:
        known = self._fates[self.event_count : self.event_count + count]
        return np.concatenate([known, np.full(count - len(known), KEPT, np.uint8)])

    def _marked(self, spans: Spans, number: int) -> bytes:
        added = self._added_args(self.event_count + number)
        begin, args, end = (int(places[number]) for places in (spans.starts, spans.args, spans.ends))
        if args < 0:
            event = read_event(spans.text[begin:end].decode(errors="replace"))
            return events_text([_with_args(event, added)]).encode()
        comma = b"" if _ARGS_END.match(spans.text, args) else b","
        return spans.text[begin:args] + added.encode() + comma + spans.text[args:end]


class _Text:
    """The bytes of a file in order, up to one place after the other."""

    def __init__(self, source: str) -> None:
        self._pieces = pieces(source)
        self._rest = b""
        self._at = 0

    def until(self, place: int | None) -> Iterator[bytes]:
        """Yield the bytes up to an offset in the file, for None up to its end."""
        while place is None or self._at < place:
            piece = self._rest or next(self._pieces, b"")
            if not piece:
                return
            length = len(piece) if place is None else min(len(piece), place - self._at)
            self._rest, self._at = piece[length:], self._at + length
            yield piece[:length]


def _start_of_events(source: str) -> int:
    """Return the offset behind the bracket that opens the list of events."""
    one_letter_a_byte = (piece.decode("latin-1").encode() for piece in pieces(source))
    return len(EventReader(source, one_letter_a_byte).head())


def _runs(fates: npt.NDArray[np.uint8]) -> Iterator[tuple[int, int, int]]:
    """Yield the first and the last place of each row of equal fates, and the fate."""
    begins = np.flatnonzero(np.diff(fates, prepend=fates[0] + 1))
    lasts = [*(begins[1:] - 1).tolist(), len(fates) - 1]
    return zip(begins.tolist(), lasts, fates[begins].tolist(), strict=True)


def _separated(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Put commas between events, many to a piece."""
    separator = b"\n"
    while batch := list(itertools.islice(parts, _EVENTS_AT_ONCE)):
        yield separator + _BETWEEN.join(batch)
        separator = _BETWEEN


def _rewritten(reader: EventReader, change: Change, events: Iterable[Event | str]) -> Iterator[str]:
    yield reader.head()
    changed = (event for event in map(change, reader.events()) if event is not None)
    yield from _joined(itertools.chain(changed, events))
    yield from reader.tail()


def _with_events(source: str, end: int, events: Iterator[Event | str]) -> Iterator[bytes]:
    """Yield the bytes of the file, with events before the bracket that ends at `end`."""
    passed, last = 0, b""
    for piece in pieces(source):
        bracket = end - 1 - passed
        if 0 <= bracket < len(piece):
            last = piece[:bracket].rstrip(_BLANK)[-1:] or last
            yield piece[:bracket]
            yield from _inserted(source, piece[bracket : bracket + 1], last, events)
            yield piece[bracket:]
        else:
            last = piece.rstrip(_BLANK)[-1:] or last
            yield piece
        passed += len(piece)
    if passed < end:
        raise _changed_meanwhile(source)


def _inserted(source: str, bracket: bytes, last: bytes, events: Iterator[Event | str]) -> Iterator[bytes]:
    """Yield the events, after a comma where the list has some already."""
    if bracket != b"]":
        raise _changed_meanwhile(source)
    for index, text in enumerate(_joined(events)):
        yield (f",{text}" if index == 0 and last not in {b"[", b","} else text).encode()


def _joined(events: Iterator[Event | str]) -> Iterator[str]:
    """Put commas between events, many events to a piece."""
    separator = "\n"
    while batch := list(itertools.islice(events, _EVENTS_AT_ONCE)):
        yield separator + events_text(batch)
        separator = ",\n"


def _unchanged(event: dict[str, Any]) -> dict[str, Any]:
    return event


def _changed_meanwhile(source: str) -> UnreadableTraceError:
    return UnreadableTraceError(f"{source} has changed since it was opened: its events no longer end where they did")
