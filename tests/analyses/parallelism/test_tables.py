"""Tests of the printed tables of parallelism."""

from __future__ import annotations

from holotrace.analyses.parallelism.compute import parallelism
from holotrace.analyses.parallelism.tables import VIEWS
from holotrace.questions.tables import print_view
from holotrace.testing.builder import TraceBuilder


def test_every_table_prints() -> None:
    """Every view can be printed, and lists of candidate axes become text."""
    builder = TraceBuilder()
    for rank in (0, 1):
        args = {"Process Group Description": ""}
        builder.rank(rank).header(host_name="a").collective("_allgather_base", args=args, start_us=0, duration_us=50)
    result = parallelism(builder.build())

    printed = {view.caption: print_view(view, result, 10) for view in VIEWS}

    groups = printed["Process groups and their axes"]
    assert dict(zip(groups.headings, (cell.text for cell in groups.rows[0]), strict=True))["candidates"] == "fsdp, tp"
