"""The events of a trace file one by one, in bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from holotrace.errors import UnreadableTraceError
from holotrace.export.event_json import exact_number

LONGEST_VALUE = 64 << 20
"""Characters: no event, and nothing outside the events, is longer; where something seems to be, the file is damaged."""

_DECODER = json.JSONDecoder(parse_float=exact_number, strict=False)
_BLANK = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_LONGEST_LITERAL = len("-Infinity")
_GAP = re.compile(r"\}(?=[ \t\r\n]*,[ \t\r\n]*\{)")
_LOOK_BACK = 1 << 16
"""Characters at the end of the buffer in which a gap is looked for; events are shorter, with few exceptions."""

_CUT_OFF = object()
"""Stands for a value that the file does not hold to its end."""


def read_event(text: str) -> dict[str, Any]:
    """Read the JSON of one event; numbers keep all their digits."""
    event: dict[str, Any] = _DECODER.decode(text)
    return event


class EventReader:
    """Reads a trace from the pieces of its text, once, in this order: `head`, `events`, `tail`.

    A file that is cut off within an event ends before that event, and `tail` closes what is open.
    """

    def __init__(self, source: str, pieces: Iterable[bytes]) -> None:
        """Read from `pieces`; `source` is what errors call the file."""
        self._source = source
        self._texts = _decoded(pieces)
        self._buffer = ""
        self._at = 0
        self._passed = 0
        self._missing_end = ""
        self._is_tried = False

    def head(self) -> str:
        """Return the text up to and including the bracket that opens the list of events.

        Raises:
            UnreadableTraceError: there is no such list, or the text before it is no JSON.
        """
        is_object = self._skip(_BLANK) == "{"
        if is_object:
            self._at += 1
            self._find_events()
        if self._skip(_BLANK) != "[":
            what = "there is no list of events"
            raise self._damaged(what)
        self._at += 1
        self._missing_end = "]}" if is_object else "]"
        return self._taken()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield every event in the order of the file; entries that are no objects are left out.

        Raises:
            UnreadableTraceError: an event is no JSON.
        """
        while (start := self._skip(_BETWEEN)) != "]":
            found = self._whole_values() or [self._value() if start else _CUT_OFF]
            for event in found:
                if event is _CUT_OFF:
                    return
                if isinstance(event, dict):
                    yield event
        self._missing_end = ""

    def tail(self) -> Iterator[str]:
        """Yield the text from the bracket on that closes the list of events; where it is missing, the brackets."""
        if self._missing_end:
            yield self._missing_end
            return
        yield self._taken(to_the_end=True)
        yield from self._texts

    def _find_events(self) -> None:
        """Go on to the value of `traceEvents`."""
        while self._skip(_BETWEEN) == '"':
            key = self._value()
            if self._skip(_BLANK) != ":":
                what = "a key has no value"
                raise self._damaged(what)
            self._at += 1
            if key == "traceEvents":
                return
            self._skip(_BLANK)
            self._value()

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Go over blanks; return the character after them, empty at the end of the file."""
        while True:
            matched = pattern.match(self._buffer, self._at)
            self._at = matched.end() if matched else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _whole_values(self) -> list[Any]:
        """Read what the buffer holds up to the last place that looks like a gap between events, and go behind it.

        If it is another kind of place, the text before it is no list of values. Then nothing is read, here and until
        there is more text: the events come one by one.
        """
        if self._is_tried:
            return []
        self._is_tried = True
        *_, end = self._at, *(gap.end() for gap in _GAP.finditer(self._buffer, self._look_from()))
        try:
            values: list[Any] = _DECODER.decode(f"[{self._buffer[self._at : end]}]")
        except (json.JSONDecodeError, RecursionError):
            return []
        self._at = end
        return values

    def _look_from(self) -> int:
        return max(self._at, len(self._buffer) - _LOOK_BACK)

    def _value(self) -> Any:  # noqa: ANN401 -- any JSON
        """Read a value and go behind it; `_CUT_OFF`, at the same place, where the file ends within it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                what = "a value is nested too deep"
                raise self._damaged(what) from error
            except json.JSONDecodeError as error:
                if not self._is_unfinished(error):
                    what = f"{error.msg[:1].lower()}{error.msg[1:]}, {error.pos - self._at:,} characters into a value"
                    raise self._damaged(what) from error
                if not self._more():
                    return _CUT_OFF
                continue
            length = end - self._at
            if end < len(self._buffer) or not self._more():  # a number may go on in the next piece
                self._at += length
                return value

    def _is_unfinished(self, error: json.JSONDecodeError) -> bool:
        is_at_the_end = error.pos >= len(self._buffer) - _LONGEST_LITERAL or error.msg.startswith("Unterminated")
        return is_at_the_end and len(self._buffer) - self._at < LONGEST_VALUE

    def _more(self) -> bool:
        """Take more text into the buffer, at least as much as is unread; false at the end of the file."""
        unread, wanted = [self._buffer], len(self._buffer) - self._at
        taken = 0
        while taken <= wanted and (text := next(self._texts, "")):
            unread.append(text)
            taken += len(text)
        if self._missing_end:  # the head is returned whole, what comes later is not
            unread[0] = self._buffer[self._at :]
            self._passed += self._at
            self._at = 0
        self._buffer = "".join(unread)
        self._is_tried = False
        return taken > 0

    def _taken(self, *, to_the_end: bool = False) -> str:
        text = self._buffer[self._at :] if to_the_end else self._buffer[: self._at]
        self._buffer = "" if to_the_end else self._buffer[self._at :]
        self._passed += self._at
        self._at = 0
        return text

    def _damaged(self, what: str) -> UnreadableTraceError:
        place = self._passed + self._at
        return UnreadableTraceError(
            f"{self._source} cannot be rewritten: {what}, near character {place:,} of its text; `holotrace check` lists the "
            f"damage"
        )


def _decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text
    if rest := decoder.decode(b"", final=True):
        yield rest
