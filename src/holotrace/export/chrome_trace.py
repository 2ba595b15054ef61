"""Copy a trace file with added or changed events, in a few MiB of memory for files of any size.

`with_events` copies the bytes and adds events at the end of the list. `edited` can also change or
drop events, and does so in native code. `rewritten` passes every event to a function and writes the function's result;
it takes ten times as long as `edited`. All three functions keep the text before and after the list of events.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native
from holotrace.errors import UnreadableTraceError
from holotrace.export.event_json import events_text
from holotrace.export.event_reader import EventReader, read_event
from holotrace.export.new_file import new_file
from holotrace.export.trace_text import pieces
from holotrace.locations import Address, Location, address_text, native_source
from holotrace.store.trace import RankTrace

Event: TypeAlias = Mapping[str, Any]
"""An event with the keys of the Chrome trace format. `holotrace.export.event_json.file_time` computes its `ts`."""

Change: TypeAlias = Callable[[dict[str, Any]], Event | None]
"""A function that receives an event and returns the event to write, or None to drop it."""

KEPT, LEFT_OUT, MARKED, NUMBERED = range(4)
"""What to do with an event in an edited copy, as numbers for `holotrace._native.EditedCopy`."""


class Edits(NamedTuple):
    """What to do with each event of a file, in file order; events beyond the end of `fates` are kept.

    fates   KEPT, LEFT_OUT, MARKED (add a text to the args) or NUMBERED (if `ph` is X, so the event has a duration:
            replace its name with a number and drop its args)
    values  for MARKED, the index of the text in `texts`; for NUMBERED, the number
    texts   args to add for MARKED, as JSON without braces: `"critical":1`
    """

    fates: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint32]
    texts: Sequence[str] = ()

    def of(self, event_index: int) -> tuple[int, int]:
        """Return an event's entries of `fates` and `values`; beyond the end of `fates`, return KEPT and 0."""
        is_known = event_index < len(self.fates)
        return (int(self.fates[event_index]), int(self.values[event_index])) if is_known else (KEPT, 0)


_EVENTS_AT_ONCE = 1_000
_BLANK = b" \t\r\n"


def with_events(
    rank_trace: RankTrace, target: Location, events: Iterable[Event | str], *, overwrite: bool = False
) -> None:
    """Copy a rank's file and add events at the end of its event list.

    If the file is truncated, the copy ends after the last complete event, with closing brackets.

    Args:
        rank_trace: the rank; its selections are ignored.
        target: where to write; compressed if the name ends in `.gz`.
        events: the events to add, as mappings or as JSON text; consumed while writing.
        overwrite: replace an existing file.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, its folder is missing or cannot be written, or
            the source is compressed with zstd and no installed module can decompress it.
        UnreadableTraceError: the source cannot be read, or has changed since it was opened.
        OSError: writing failed; no incomplete file remains.
    """
    end = rank_trace.health.events_end
    if end is None:
        _whole_rewritten(rank_trace, target, _unchanged, events, overwrite=overwrite)
        return
    if any(finding.kind == "another_document" for finding in rank_trace.health.findings):
        raise _damaged(rank_trace, "it contains several documents, each with its own clock")
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
    """Copy a trace file, replace every event by the result of `change`, and add events at the end.

    `change` is called in file order, so its n-th call receives the event with `event_index` n. Numbers keep all their
    digits: if a double would lose some, `change` receives a `Decimal`.

    Raises:
        InvalidOptionError, OSError: see `with_events`.
        UnreadableTraceError: the source cannot be read, or an event is not valid JSON.
    """
    path = address_text(source)
    reader = EventReader(path, pieces(path))
    with new_file(target, overwrite=overwrite) as file:
        for text in _rewritten(reader, change, events):
            file.write(text.encode())


def edited(
    rank_trace: RankTrace,
    target: Location,
    edits: Edits,
    events: Iterable[Event | str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Copy a rank's file, change some of its events, and add others at the end.

    All other text is copied byte by byte. However, if the file had to be repaired before it could be read, all its
    events are written anew.

    Args:
        rank_trace: the rank; its selections are ignored.
        target: where to write; compressed if the name ends in `.gz`.
        edits: what to do with the file's events.
        events: the events to add, as mappings or as JSON text.
        overwrite: replace an existing file.

    Raises:
        InvalidOptionError, OSError: see `with_events`.
        UnreadableTraceError: the source cannot be read, or has changed since it was opened.
    """
    if rank_trace.health.events_end is None or not rank_trace.health.is_clean:
        _whole_rewritten(rank_trace, target, _in_order(edits), events, overwrite=overwrite)
        return
    with new_file(target, overwrite=overwrite) as file:
        for piece in _edited(rank_trace, edits, iter(events)):
            file.write(piece)


def _whole_rewritten(
    rank_trace: RankTrace, target: Location, change: Change, events: Iterable[Event | str], *, overwrite: bool
) -> None:
    """Rewrite a rank's file; raise an error if it has fewer or more events than the tables."""
    numbers = itertools.count()

    def counted(event: dict[str, Any]) -> Event | None:
        next(numbers)
        return change(event)

    def after_all() -> Iterator[Event | str]:
        is_cut_off = any(finding.kind == "truncated_json" for finding in rank_trace.health.findings)
        missing = rank_trace.health.event_count - next(numbers)
        if missing not in ({0, 1} if is_cut_off else {0}):
            raise _damaged(rank_trace, "the copy would contain only some of its events")
        yield from events

    rewritten(rank_trace.source, target, counted, after_all(), overwrite=overwrite)


def _edited(rank_trace: RankTrace, edits: Edits, events: Iterator[Event | str]) -> Iterator[bytes]:
    source = address_text(rank_trace.source)
    try:
        with native_source(source) as opened:
            copy = _native.EditedCopy(opened, *edits)
            yield from iter(copy.events, None)
            if (copy.event_count, copy.events_end) != (rank_trace.health.event_count, rank_trace.health.events_end):
                raise has_changed(source)
            for index, text in enumerate(joined_with_commas(events)):
                yield (f",{text}" if index == 0 and copy.holds_event else text).encode()
            yield from iter(copy.rest, None)
    except _native.NotATraceError as error:
        raise has_changed(source) from error
    except OSError as error:
        message = f"{source} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error


def _in_order(edits: Edits) -> Change:
    """Return a function that applies the edits; `rewritten` must call it with every event, in file order."""
    numbers = itertools.count()

    def changed(event: dict[str, Any]) -> Event | None:
        fate, value = edits.of(next(numbers))
        if fate == LEFT_OUT:
            return None
        if fate == MARKED:
            return _with_args(event, edits.texts[value])
        is_numbered = fate == NUMBERED and event.get("ph") == "X"
        return {**event, "name": str(value), "args": {}} if is_numbered else event

    return changed


def _with_args(event: dict[str, Any], added: str) -> Event:
    args = event.get("args")
    return {**event, "args": {**(args if isinstance(args, dict) else {}), **read_event(f"{{{added}}}")}}


def _rewritten(reader: EventReader, change: Change, events: Iterable[Event | str]) -> Iterator[str]:
    yield reader.head()
    changed = (event for event in map(change, reader.events()) if event is not None)
    yield from joined_with_commas(itertools.chain(changed, events))
    yield from reader.tail()


def _with_events(source: str, end: int, events: Iterator[Event | str]) -> Iterator[bytes]:
    """Yield the file's bytes; insert the events before byte `end - 1`, the closing bracket of the event list."""
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
        raise has_changed(source)


def _inserted(source: str, bracket: bytes, last: bytes, events: Iterator[Event | str]) -> Iterator[bytes]:
    """Yield the text of the events; it begins with a comma if the list already has events."""
    if bracket != b"]":
        raise has_changed(source)
    for index, text in enumerate(joined_with_commas(events)):
        yield (f",{text}" if index == 0 and last not in {b"[", b","} else text).encode()


def joined_with_commas(events: Iterator[Event | str]) -> Iterator[str]:
    """Yield the JSON text of events, separated by commas, in large batches."""
    separator = "\n"
    while batch := list(itertools.islice(events, _EVENTS_AT_ONCE)):
        yield separator + events_text(batch)
        separator = ",\n"


def _unchanged(event: dict[str, Any]) -> dict[str, Any]:
    return event


def _damaged(rank_trace: RankTrace, why: str) -> UnreadableTraceError:
    source = address_text(rank_trace.source)
    return UnreadableTraceError(f"{source} cannot be copied: {why}; `holotrace check` lists the damage")


def has_changed(source: str) -> UnreadableTraceError:
    """Return the error for a file whose events no longer match its tables."""
    return UnreadableTraceError(f"{source} has changed since it was opened: its list of events now ends elsewhere")
