"""Tests of the figures of the collectives analysis."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.collectives.compute import Collectives, collectives
from holotrace.analyses.collectives.figure import plot_collectives, plot_pairs
from holotrace.figures import further_figures_of
from holotrace.testing.builder import TraceBuilder
from matrix_cells import cells_of


def _result(builder: TraceBuilder) -> Collectives:
    return collectives(builder.build())


def late_rank() -> TraceBuilder:
    """Return a 4 KiB all-reduce of two ranks on one host; rank 1 joins 40 µs late."""
    builder = TraceBuilder().header(host_name="a").collective(start_us=0, duration_us=50)
    return builder.rank(1).header(host_name="a").collective(start_us=40, duration_us=10)


def test_a_bar_is_divided_into_waiting_and_transfer() -> None:
    """Together, the two ranks wait 40 µs and transfer for 20 µs; the hover text shows bandwidth and group."""
    figure = plot_collectives(_result(late_rank()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {"waiting for the last rank": [40], "transfer": [20]}
    assert "default_pg [0, 1]" in figure.data[0].customdata[0]
    assert "bus bandwidth 410 MB/s" in figure.data[0].customdata[0]


def test_a_job_without_collectives_gives_a_figure_that_says_so() -> None:
    """If no rank communicates, the figure shows a message."""
    figure = plot_collectives(_result(TraceBuilder().kernel("gemm", start_us=0, duration_us=1)))

    assert figure.layout.annotations[0].text == "No rank has collectives."


def _pairs(rank_count: int, *, kinds=("send",), slow=frozenset()) -> Collectives:
    """Return a result with a transfer of each kind between all pairs of ranks; the pairs in `slow` are slow."""
    result = _result(late_rank())
    ranks = range(rank_count)
    rows = [
        (kind, a, b, 1, 1_000, 500.0, 1e9 * (a + 1), 2.0, (a, b) in slow)
        for kind in kinds
        for a in ranks
        for b in ranks
        if a != b
    ]
    pairs = pl.DataFrame(rows, result.per_pair.schema, orient="row")
    hosts = pl.DataFrame({"rank": list(ranks), "host": [f"node-{rank // 8}" for rank in ranks]})
    return Collectives(**{**vars(result), "per_pair": pairs, "per_rank": hosts})


def test_each_pair_of_ranks_is_a_cell_coloured_by_its_bandwidth() -> None:
    """Sender 0 reaches 1 GB/s and sender 1 reaches 2 GB/s."""
    figure = plot_pairs(_pairs(2))

    assert [(cell.row, cell.column, cell.color) for cell in cells_of(figure)] == [("0", "1", 1.0), ("1", "0", 2.0)]
    assert figure.data[0].customdata[0].startswith("rank 0 to rank 1: 1 GB/s")


def test_sends_and_all_to_alls_have_a_matrix_each() -> None:
    """Each kind has a matrix with a cell for each pair; the colour bar above the matrix names the kind and the unit."""
    figure = plot_pairs(_pairs(3, kinds=("send", "all_to_all")))

    assert [len(matrix.x) for matrix in figure.data] == [6, 6]
    assert [matrix.marker.coloraxis for matrix in figure.data] == ["coloraxis", "coloraxis2"]
    bars = [figure.layout[axis].colorbar for axis in ("coloraxis", "coloraxis2")]
    assert [title.text for title in figure.layout.annotations] == [
        "Sends: bandwidth (GB/s)",
        "All-to-alls: bandwidth (GB/s)",
    ]
    assert [bar.y for bar in bars] == [figure.layout[axis].domain[1] for axis in ("yaxis", "yaxis2")]


def test_slow_pairs_have_an_edge() -> None:
    """Only the slow pair's cell, from rank 0 to rank 1, has an outline, and the hover text shows the slowdown."""
    figure = plot_pairs(_pairs(3, slow={(0, 1)}))

    widths = figure.data[0].marker.line.width
    edges = [(cell.row, cell.column) for cell, width in zip(cells_of(figure), widths, strict=True) if width]
    assert edges == [("0", "1")]
    assert "2.0 times as long as elsewhere" in figure.data[0].customdata[0]


def test_more_than_ten_thousand_pairs_are_drawn_by_host() -> None:
    """With 128 ranks, each cell is a pair of hosts and shows the median bandwidth of the pairs of ranks on them."""
    drawn = cells_of(plot_pairs(_pairs(128)))

    assert len(drawn) == 16 * 16
    assert drawn[1] == ("node-1", "node-0", 4.5)


def test_pairs_are_a_further_figure_only_if_there_are_any() -> None:
    """If ranks send to each other, there is an additional figure, `pairs`; otherwise, there is none."""
    assert list(further_figures_of("collectives", _pairs(2))) == ["pairs"]
    assert further_figures_of("collectives", _result(late_rank())) == {}
    assert further_figures_of("idle_time", None) == {}


def test_a_job_without_sends_has_no_cells() -> None:
    """Without sends, the figure of pairs shows a message instead of cells."""
    text = plot_pairs(_result(late_rank())).layout.annotations[0].text
    assert text == "No transfers of known size between two ranks."
