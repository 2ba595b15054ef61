"""The health page says in one sentence how many files are in each state."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("dash")
pytest.importorskip("dash_mantine_components")

from holotrace.ingest.file_health import FileHealth
from holotrace.store.health import Finding
from holotrace.web.pages.health import answer

CLEAN = FileHealth(path="rank0.json", rank=0, rank_origin="file name", event_count=1_500)
DAMAGED = replace(
    CLEAN, findings=(Finding(kind="damaged_event", severity="dropped", count=1, offsets=(7,), example="{"),)
)
BROKEN = FileHealth(path="rank2.json", rank=2, rank_origin="file name", error="empty")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((CLEAN,), "The file is clean: 1,500 events, all read as written."),
        ((CLEAN, CLEAN), "The 2 files are clean: 3,000 events, all read as written."),
        ((CLEAN, DAMAGED, BROKEN), "3 files: 1 unreadable, 1 with losses, 1 clean; 3,000 events."),
    ],
)
def test_the_answer_counts_the_files_in_each_state(files, said) -> None:
    """If all files are clean, the answer says only that; otherwise it lists the states, the worst one first."""
    assert answer(files) == said
