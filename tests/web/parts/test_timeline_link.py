"""Tests of links to the timeline."""

from __future__ import annotations

import pytest

from holotrace.web.parts.timeline_link import AtEvent, AtSpan, timeline_link
from holotrace.web.session.selection import Selection

HERE = Selection("overview", run="abc", ranks=(0, 1), steps=(7,), options=(("find", "old"), ("q.x.0", "text")))
KEPT = "?view=timeline&run=abc&ranks=0-1&steps=7"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("", ""),
        (AtEvent(3, 71_535), "&event=3:71535"),
        (AtSpan(100, 200), "&at=100-200"),
        (AtSpan(100, 200, clock_of=3), "&at=3:100-200"),
        (AtSpan(100, 100, clock_of=0), "&at=0:100"),
        ("a<b> &c", "&find=a%3Cb%3E+%26c"),
    ],
)
def test_a_link_keeps_the_part_of_the_run_and_drops_the_rest(at, expected) -> None:
    """The link keeps the run, ranks and steps, and drops the other options of the page."""
    assert timeline_link(HERE, at) == KEPT + expected


def test_a_link_may_name_its_own_ranks_and_overlays() -> None:
    """`ranks` replaces the selected ranks; the link lists them in ascending order."""
    address = timeline_link(HERE, ranks=[5, 2, 5], overlays=["path", "findings"])
    assert address == "?view=timeline&run=abc&ranks=2,5&steps=7&show=path,findings"
