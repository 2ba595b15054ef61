"""Tests of the straggler_cost figure, a heat map of ranks and steps."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.straggler_cost.compute import straggler_cost
from holotrace.analyses.straggler_cost.figure import plot_straggler_cost
from holotrace.testing.builder import TraceBuilder
from matrix_cells import cells_of
from operations import drawn, pipelined_step


def test_every_worker_and_step_has_its_cell() -> None:
    """The colour of a cell is the slowdown of a rank in a step, and the hover text names both."""
    result = straggler_cost(pl.concat([pipelined_step(2, 3, 2, drawn(step), step=step) for step in (3, 4)]))

    figure = plot_straggler_cost(result)

    table = result.per_worker_step
    expected = table.select(pl.col("step", "rank").cast(pl.String), "slowdown").rows()
    assert [(cell.column, cell.row, cell.color) for cell in cells_of(figure)] == expected
    assert figure.data[0].customdata[0] == f"rank 0, step 3: {table['slowdown'][0]:.3f} times the ideal step"


def test_a_trace_without_operations_gives_a_figure_that_says_so() -> None:
    """For an empty trace, the figure shows a message."""
    figure = plot_straggler_cost(straggler_cost(TraceBuilder().build()))

    assert figure.layout.annotations[0].text == "No step contains operations."


def test_hundreds_of_ranks_fit_a_page() -> None:
    """The figure of 512 ranks is at most 700 pixels high."""
    frame = pl.DataFrame({"rank": range(512), "kind": "optimizer", "start_ns": 0, "duration_ns": range(1, 513)})

    assert plot_straggler_cost(straggler_cost(frame)).layout.height <= 700
