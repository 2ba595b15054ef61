"""`Health` parses the health record that the reader writes for a file."""

from __future__ import annotations

import json

import pytest

from holotrace.store.health import Finding, Health

RECORD = {
    "format": "gzip",
    "bytes_read": 100,
    "bytes_decoded": 1000,
    "event_count": 7,
    "content_hash": "00ff",
    "events_end": 90,
    "row_counts": {"events": 5},
    "findings": [
        {
            "kind": "truncated",
            "severity": "dropped",
            "count": 1,
            "events_lost": 1,
            "bytes_lost": 12,
            "offsets": [990],
            "example": '{"ph"',
        }
    ],
}


def test_the_record_keeps_every_field() -> None:
    """`Health.from_json` keeps every field of the record."""
    assert Health.from_json(json.dumps(RECORD)) == Health(
        format="gzip",
        bytes_read=100,
        bytes_decoded=1000,
        event_count=7,
        row_counts={"events": 5},
        findings=(Finding("truncated", "dropped", 1, (990,), '{"ph"', events_lost=1, bytes_lost=12),),
        content_hash="00ff",
        events_end=90,
    )


@pytest.mark.parametrize(("severity", "is_clean"), [("repaired", False), ("dropped", False), ("note", True)])
def test_notes_leave_a_file_clean(severity: str, *, is_clean: bool) -> None:
    """`is_clean` is true for a file that has only notes, and false if events were repaired or dropped."""
    findings = [{"kind": "k", "severity": severity, "count": 1, "offsets": [], "example": ""}]
    assert Health.from_json(json.dumps(RECORD | {"findings": findings})).is_clean is is_clean
