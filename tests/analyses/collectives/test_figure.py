"""Tests of the figures of collectives."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.collectives.compute import Collectives, collectives
from holotrace.analyses.collectives.figure import plot_collectives, plot_pairs
from holotrace.testing.builder import TraceBuilder


def _result(builder: TraceBuilder) -> Collectives:
    return collectives(builder.build())


def late_rank() -> TraceBuilder:
    """Return two ranks of one host in an all-reduce of 4 KiB to which rank 1 comes 40 µs late."""
    builder = TraceBuilder().header(host_name="a").collective(start_us=0, duration_us=50)
    return builder.rank(1).header(host_name="a").collective(start_us=40, duration_us=10)


def test_a_bar_is_divided_into_waiting_and_transfer() -> None:
    """The two ranks spend 60 µs in the collective, 40 of them waiting; the hover text shows bandwidth and group."""
    figure = plot_collectives(_result(late_rank()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {"waiting for the last rank": [40], "transfer": [20]}
    assert "default_pg [0, 1]" in figure.data[0].customdata[0]
    assert "bus bandwidth 410 MB/s" in figure.data[0].customdata[0]


def test_a_job_without_collectives_gives_a_figure_that_says_so() -> None:
    """The figure of a rank that only computes shows a message."""
    figure = plot_collectives(_result(TraceBuilder().kernel("gemm", start_us=0, duration_us=1)))

    assert figure.layout.annotations[0].text == "No rank has collectives."


def _pairs(rank_count: int) -> Collectives:
    """Return a result in which every rank sends to every other rank."""
    result = _result(late_rank())
    rows = [(a, b, 1, 1_000, 500.0, 1e9 * (a + 1)) for a in range(rank_count) for b in range(rank_count) if a != b]
    pairs = pl.DataFrame(rows, result.per_pair.schema, orient="row")
    return Collectives(**{**vars(result), "per_pair": pairs})


def test_each_pair_of_ranks_is_a_square_coloured_by_its_bandwidth() -> None:
    """Sender 0 reaches 1 GB/s and sender 1 reaches 2 GB/s."""
    squares = plot_pairs(_pairs(2)).data[0]

    assert (list(squares.x), list(squares.y), list(squares.marker.color)) == (["1", "0"], ["0", "1"], [1.0, 2.0])
    assert squares.customdata[0].startswith("rank 0 to rank 1: 1 GB/s")


def test_squares_of_128_ranks_do_not_overlap() -> None:
    """128 squares side by side fit in the height of the figure."""
    figure = plot_pairs(_pairs(128))

    assert figure.data[0].marker.size * 128 <= figure.layout.height


def test_a_job_without_sends_has_no_squares() -> None:
    """The figure of pairs says that nothing was sent between two ranks."""
    assert plot_pairs(_result(late_rank())).layout.annotations[0].text == "No sends of known size between two ranks."
