"""The health record of a file: data that the reader repaired or dropped, and other remarks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["repaired", "dropped", "note"]
ReadState = Literal["clean", "repaired", "with losses"]


@dataclass(frozen=True)
class Finding:
    """One kind of fault, and the positions at which it occurred.

    kind         a short name: `unescaped_quote`, `truncated_json`, …
    severity     repaired: no data were lost; dropped: some data were lost; note: not an error
    count        number of occurrences
    offsets      byte offsets of the first few occurrences in the decompressed text
    example      an excerpt of the text at the first offset
    events_lost  events missing from the tables because of the fault, as far as they can be counted
    bytes_lost   skipped bytes of text, or of compressed data if these could not be decompressed
    """

    kind: str
    severity: Severity
    count: int
    offsets: tuple[int, ...] = ()
    example: str = ""
    events_lost: int = 0
    bytes_lost: int = 0

    @property
    def loss(self) -> str:
        """The lost data, such as `2 events in 1,205 bytes`; empty if no data were lost or they cannot be counted."""
        return loss_text(self.events_lost, self.bytes_lost)


def state_of(findings: Iterable[Finding]) -> ReadState:
    """Return the label that summarises all findings about a file."""
    severities = {finding.severity for finding in findings}
    if "dropped" in severities:
        return "with losses"
    return "repaired" if "repaired" in severities else "clean"


@dataclass(frozen=True)
class Health:
    """The health record of one file, written by the reader.

    format         plain, gzip or zstd
    bytes_read     size of the file
    bytes_decoded  size of the JSON text
    event_count    number of events of every phase, stored or not
    row_counts     number of rows of each table
    findings       repaired or dropped data, and other remarks; in a clean file, nothing was repaired or dropped
    content_hash   hash of the bytes of the file
    events_end     offset in the JSON text just after the bracket that closes the events; None if there is no bracket
    """

    format: str
    bytes_read: int
    bytes_decoded: int
    event_count: int
    row_counts: dict[str, int]
    findings: tuple[Finding, ...]
    content_hash: str
    events_end: int | None = None

    @classmethod
    def from_json(cls, text: str) -> Health:
        """Parse the record from the reader's output: one JSON object."""
        raw = json.loads(text)
        return cls(
            format=raw["format"],
            bytes_read=raw["bytes_read"],
            bytes_decoded=raw["bytes_decoded"],
            event_count=raw["event_count"],
            row_counts=dict(raw["row_counts"]),
            findings=tuple(map(_finding, raw["findings"])),
            content_hash=raw["content_hash"],
            events_end=raw["events_end"],
        )

    @property
    def is_clean(self) -> bool:
        """Whether the file is clean: the reader repaired and dropped no data."""
        return all(finding.severity == "note" for finding in self.findings)


def _finding(raw: dict[str, Any]) -> Finding:
    return Finding(**{**raw, "offsets": tuple(raw["offsets"])})


def loss_text(events_lost: int, bytes_lost: int) -> str:
    """Describe a loss, such as `2 events in 1,205 bytes`; empty if both numbers are 0."""
    events = f"{events_lost:,} event{'' if events_lost == 1 else 's'}" if events_lost else ""
    size = f"{bytes_lost:,} byte{'' if bytes_lost == 1 else 's'}" if bytes_lost else ""
    return " in ".join(filter(None, (events, size)))
