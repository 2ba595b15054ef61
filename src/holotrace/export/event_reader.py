"""Read the events of a trace file one by one, in bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from holotrace.errors import UnreadableTraceError
from holotrace.export.event_json import exact_number

LONGEST_VALUE = 64 << 20
"""Maximum length of a JSON value in characters; if a value seems to be longer, the file is damaged."""

_DECODER = json.JSONDecoder(parse_float=exact_number, strict=False)
_BLANK = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_LONGEST_LITERAL = len("-Infinity")
_GAP = re.compile(r"\}(?=[ \t\r\n]*,[ \t\r\n]*\{)")
_LOOK_BACK = 1 << 16
"""How many characters at the end of the buffer to search for a gap between events; most events are shorter than
this."""

_CUT_OFF = object()
"""`_value` returns this instead of a value that is cut off by the end of the file."""


def read_event(text: str) -> dict[str, Any]:
    """Parse the JSON of one event; numbers keep all their digits."""
    event: dict[str, Any] = _DECODER.decode(text)
    return event


class EventReader:
    """Reads a trace once, from pieces of its text; call `head`, `events` and `tail` in this order.

    If the file is truncated within an event, reading ends before that event, and `tail` closes the open brackets.
    """

    def __init__(self, source: str, pieces: Iterable[bytes]) -> None:
        """Read from `pieces`; `source` names the file in error messages."""
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
            UnreadableTraceError: there is no such list, or the text before it is not valid JSON.
        """
        is_object = self._skip(_BLANK) == "{"
        if is_object:
            self._at += 1
            self._find_events()
        if self._skip(_BLANK) != "[":
            what = "it has no list of events"
            raise self._damaged(what)
        self._at += 1
        self._missing_end = "]}" if is_object else "]"
        return self._taken()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield every event in file order; entries that are not objects are skipped.

        Raises:
            UnreadableTraceError: an event is not valid JSON.
        """
        while (start := self._skip(_BETWEEN)) != "]":
            values = self._whole_values() or [self._value() if start else _CUT_OFF]
            for event in values:
                if event is _CUT_OFF:
                    return
                if isinstance(event, dict):
                    yield event
        self._missing_end = ""

    def tail(self) -> Iterator[str]:
        """Yield the text from the event list's `]` to the end; if the file is truncated, yield the missing brackets."""
        if self._missing_end:
            yield self._missing_end
            return
        yield self._taken(to_the_end=True)
        yield from self._texts

    def _find_events(self) -> None:
        """Advance to the value of `traceEvents`."""
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
        """Skip what matches `pattern`; return the next character, or an empty string at the end of the file."""
        while True:
            matched = pattern.match(self._buffer, self._at)
            self._at = matched.end() if matched else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _whole_values(self) -> list[Any]:
        """Parse the buffer up to the last `}` that seems to end an event, and advance past this `}`.

        If the `}` is inside an event, the text up to it is not valid JSON. In this case, this method returns an empty
        list until more text has been read; meanwhile, the caller parses events one by one.
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
        """Parse a value and advance past it; return `_CUT_OFF` without advancing if the file ends within it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                what = "a value is nested too deeply"
                raise self._damaged(what) from error
            except json.JSONDecodeError as error:
                if not self._is_unfinished(error):
                    what = f"{error.msg[:1].lower()}{error.msg[1:]}, {error.pos - self._at:,} characters into a value"
                    raise self._damaged(what) from error
                if not self._more():
                    return _CUT_OFF
                continue
            length = end - self._at
            if end < len(self._buffer) or not self._more():  # a number may continue in the next piece of the file
                self._at += length
                return value

    def _is_unfinished(self, error: json.JSONDecodeError) -> bool:
        is_at_the_end = error.pos >= len(self._buffer) - _LONGEST_LITERAL or error.msg.startswith("Unterminated")
        return is_at_the_end and len(self._buffer) - self._at < LONGEST_VALUE

    def _more(self) -> bool:
        """Read more text until the unread part of the buffer has doubled; return False at the end of the file."""
        unread, wanted = [self._buffer], len(self._buffer) - self._at
        taken = 0
        while taken <= wanted and (text := next(self._texts, "")):
            unread.append(text)
            taken += len(text)
        if self._missing_end:  # drop the parsed text, except while `head` still needs it
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
        position = self._passed + self._at
        return UnreadableTraceError(
            f"{self._source} cannot be rewritten: {what}, near character {position:,} of its text; `holotrace check` "
            f"lists the damage"
        )


def _decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text
    if rest := decoder.decode(b"", final=True):
        yield rest
