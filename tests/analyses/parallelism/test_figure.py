"""Tests of the parallelism figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.parallelism.compute import Parallelism, parallelism
from holotrace.analyses.parallelism.figure import plot_parallelism
from holotrace.testing.builder import TraceBuilder


def _two_axes() -> Parallelism:
    """Return two ranks that all-reduce first on axis tp and then on axis dp.

    On axis tp, rank 1 is 40 µs late; on axis dp, no rank is late.
    """
    builder = TraceBuilder()
    for rank, late in enumerate((0, 40)):
        builder.rank(rank).header(host_name="a")
        for group, start, wait in (("mesh_tp", 0, late), ("mesh_dp", 60, 0)):
            args = {"Process Group Description": group}
            builder.collective(group=group, args=args, start_us=start + wait, duration_us=50 - wait)
    return parallelism(builder.build())


def test_waiting_and_transfer_of_each_axis_are_parts_of_the_bars() -> None:
    """Rank 0 waits 40 µs and transfers for 10 µs on axis tp; on axis dp, both ranks transfer for 50 µs."""
    figure = plot_parallelism(_two_axes())

    assert {bar.name: list(bar.x) for bar in figure.data if bar.showlegend} == {
        "tp: waiting": [40, 0],
        "tp: transfer": [10, 10],
        "dp: transfer": [50, 50],
    }


def test_hidden_communication_gives_a_figure_that_says_so() -> None:
    """If no rank communicates, the figure shows a message."""
    result = parallelism(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())

    text = "No communication is exposed: computation hides all of it."
    assert plot_parallelism(result).layout.annotations[0].text == text


def test_hundreds_of_ranks_fit_a_page() -> None:
    """The figure of 512 ranks is at most 700 pixels high."""
    result = _two_axes()
    ranks = pl.concat([result.per_axis.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank in range(512)])

    figure = plot_parallelism(Parallelism(**{**vars(result), "per_axis": ranks.unique(["rank", "axis"])}))

    assert figure.layout.height <= 700
