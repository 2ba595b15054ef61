"""Tests of the printed tables of the collectives analysis."""

from __future__ import annotations

from holotrace.analyses.collectives.compute import collectives
from holotrace.analyses.collectives.tables import VIEWS, equal_collectives
from holotrace.questions.tables import print_view
from holotrace.testing.builder import TraceBuilder


def test_the_late_rank_is_named_where_it_is_last_more_often_than_not() -> None:
    """Rank 1 arrives last in two of three all-reduces, so the table names it as the late rank."""
    builder = TraceBuilder()
    for rank, starts in enumerate(((0, 100, 240), (40, 140, 200))):
        builder.rank(rank).header(host_name="a")
        for start in starts:
            builder.collective(start_us=start, duration_us=(start // 100) * 100 + 50 - start, group_ranks=(0, 1))

    result = collectives(builder.build())

    assert equal_collectives(result)["late_rank"].to_list() == [1]


def test_every_table_prints() -> None:
    """Every view can be printed, even if the result contains no sends and no fitted latencies."""
    builder = TraceBuilder().header(host_name="a").collective(start_us=0, duration_us=50)
    result = collectives(builder.rank(1).header(host_name="a").collective(start_us=40, duration_us=10).build())

    printed = {view.caption: print_view(view, result, 10) for view in VIEWS}

    assert printed["Collectives of equal kind, size and group"].headings[0] == "collective"
    assert [cell.text for cell in printed["Collectives of equal kind, size and group"].rows[0]][:2] == [
        "all_reduce",
        "4 KiB",
    ]
