"""What the reader repaired, dropped or noticed in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["repaired", "dropped", "note"]
ReadState = Literal["clean", "repaired", "with losses"]


@dataclass(frozen=True)
class Finding:
    """One kind of fault and where it occurred.

    kind         a short name: `unescaped_quote`, `truncated_json`, …
    severity     repaired: nothing was lost; dropped: something was lost; note: nothing was wrong
    count        how often the fault occurs
    offsets      byte offsets of the first few occurrences in the decompressed text
    example      an excerpt of the text at the first offset
    events_lost  events that the tables lack because of the fault, as far as they can be counted
    bytes_lost   bytes of text that were skipped; if these could not be decoded, compressed bytes
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
        """What was lost, as `2 events in 1,205 bytes`; empty if nothing was lost or it cannot be counted."""
        return loss_text(self.events_lost, self.bytes_lost)


def state_of(findings: Iterable[Finding]) -> ReadState:
    """Return how well a file was read, as one label."""
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
    event_count    events of every phase, stored or not
    row_counts     rows of every table
    findings       what was repaired, dropped or noticed; empty for a clean file
    content_hash   identifies the bytes of the file
    events_end     offset after the bracket that closes the events, in the JSON text; None if it is missing
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
        """Whether nothing had to be repaired or dropped."""
        return all(finding.severity == "note" for finding in self.findings)


def _finding(raw: dict[str, Any]) -> Finding:
    return Finding(**{**raw, "offsets": tuple(raw["offsets"])})


def loss_text(events_lost: int, bytes_lost: int) -> str:
    """Describe what was lost: `2 events in 1,205 bytes`; "" for nothing."""
    events = f"{events_lost:,} event{'' if events_lost == 1 else 's'}" if events_lost else ""
    size = f"{bytes_lost:,} byte{'' if bytes_lost == 1 else 's'}" if bytes_lost else ""
    return " in ".join(filter(None, (events, size)))
