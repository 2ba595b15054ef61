"""Tests of the stragglers figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.stragglers.compute import stragglers
from holotrace.analyses.stragglers.figure import plot_stragglers
from holotrace.testing.builder import TraceBuilder


def late_rank() -> TraceBuilder:
    """Return an all-reduce of two ranks; rank 1 joins 40 µs late."""
    return TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)


def test_late_ranks_have_their_own_colour() -> None:
    """Stragglers and other ranks have different colours, each with an entry in the legend."""
    figure = plot_stragglers(stragglers(late_rank().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "late: the others wait for it": [0, 40],
        "other ranks": [0, 0],
    }
    assert "last in 1 of 1 collective" in figure.data[0].customdata[1]
    assert "the others wait 40 µs (40,000 ns) for it, 100.0 %" in figure.data[0].customdata[1]


def test_a_figure_without_comparisons_says_so() -> None:
    """With a single rank, the figure shows a message."""
    figure = plot_stragglers(stragglers(TraceBuilder().collective(start_us=0, duration_us=5).build()))
    assert figure.layout.annotations[0].text == "No collective can be compared between ranks."


def test_hundreds_of_ranks_fit_a_page() -> None:
    """The figure of 512 ranks is at most 700 pixels high."""
    result = stragglers(late_rank().build())
    rows = pl.concat([result.per_rank.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank in range(512)])
    figure = plot_stragglers(type(result)(rows, result.per_step))
    assert figure.layout.height <= 700
