"""Tests of the figure and the printed tables of wait_causes."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.wait_causes.compute import wait_causes
from holotrace.analyses.wait_causes.figure import plot_wait_causes
from holotrace.analyses.wait_causes.tables import causes, ranks
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder
from matrix_cells import cells_of


def test_each_pair_of_ranks_is_a_cell_coloured_by_its_cost():
    """Rank 0 waits 400 µs because of rank 1; the colour scale starts at 0 and has a title."""
    figure = plot_wait_causes(wait_causes(small_job()))
    cells = figure.data[0]
    assert [(cell.column, cell.row, cell.color) for cell in cells_of(figure)] == [("0", "1", 400.0)]
    assert (cells.marker.cmin, cells.marker.cmax) == (0, 400.0)
    assert figure.layout.annotations[0].text == "waiting time (µs)"
    assert cells.customdata[0] == "rank 0 waits 400 µs (400,000 ns) because of rank 1<br>100.0 % kernel gemm"


def test_a_job_without_waits_gives_a_figure_that_says_so():
    """If no rank waits, the figure shows a message."""
    result = wait_causes(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert plot_wait_causes(result).layout.annotations[0].text.startswith("The recordings show no rank")


def test_the_first_table_sums_steps_and_waiting_ranks():
    """The gemm of rank 1 costs 200 µs in each of two steps; the table shows the sum, 400 µs, in one row."""
    table = causes(wait_causes(small_job()))
    assert table.select("cause_rank", "event", "cost_ns").rows() == [(1, "gemm", 400_000)]


def test_the_second_table_has_a_row_per_rank():
    """Rank 0 is the victim, and rank 1 is the culprit."""
    assert ranks(wait_causes(small_job())).select(pl.col("rank", "role")).rows() == [(0, "victim"), (1, "culprit")]
