"""Copies of a trace file with further or other events; a file of any size takes a few MiB of memory.

`with_events` copies the text byte by byte and adds events at the end of the list. `rewritten` reads every event and
writes what a function makes of it. Both keep whatever else the file holds, before and after its events.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hta.errors import UnreadableTraceError
from hta.export.event_json import events_text
from hta.export.event_reader import EventReader
from hta.export.new_file import new_file
from hta.export.trace_text import pieces
from hta.store.trace import RankTrace

Event: TypeAlias = Mapping[str, Any]
"""An event with the keys of the Chrome trace format. `hta.export.event_json.file_time` gives its `ts`."""

Change: TypeAlias = Callable[[dict[str, Any]], Event | None]
"""Gets an event and returns it, changed or not, or another one; None leaves the event out."""

_EVENTS_AT_ONCE = 1_000
_BLANK = b" \t\r\n"


def with_events(rank_trace: RankTrace, target: Path, events: Iterable[Event | str], *, overwrite: bool = False) -> None:
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
    source: str | os.PathLike[str],
    target: Path,
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
    path = os.path.expanduser(os.fspath(source))  # noqa: PTH111 -- the path stays the text that was given
    reader = EventReader(path, pieces(path))
    with new_file(target, overwrite=overwrite) as file:
        for text in _rewritten(reader, change, events):
            file.write(text.encode())


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
