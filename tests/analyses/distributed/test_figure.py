"""Tests of the distributed figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.distributed.compute import Distributed, distributed
from holotrace.analyses.distributed.figure import plot_distributed
from holotrace.testing.builder import TraceBuilder


def job() -> Distributed:
    """Return ranks that compute until 40 µs; rank 0 is in an all-reduce from 20 to 80 µs, rank 1 from 60 to 80 µs."""
    builder = TraceBuilder()
    for rank, arrives in ((0, 20), (1, 60)):
        builder.rank(rank).step(5, 0, 100).kernel("gemm", start_us=0, duration_us=40, launch_us=0)
        builder.collective(start_us=arrives, duration_us=80 - arrives, launch_us=1)
    return distributed(builder.build())


def test_each_rank_has_a_bar_for_its_step_and_one_for_its_collectives() -> None:
    """Bars are in µs; parts that are 0 everywhere have no entry in the legend."""
    figure = plot_distributed(job())
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "computing": [20, 40],
        "computing and communicating": [20, 0],
        "communicating": [40, 20],
        "neither": [20, 40],
        "data transfer": [20, 20],
        "waiting for other ranks": [40, 0],
        "unknown: recorded on no other rank": [0, 0],
    }
    assert [bar.name for bar in figure.data if not bar.showlegend] == ["unknown: recorded on no other rank"]
    assert figure.data[5].customdata[0] == "66.7 % · 40 µs (40,000 ns)"


def test_one_step_can_be_drawn() -> None:
    """The title names the chosen step; for an unknown step, the figure shows a message."""
    assert "step 5" in plot_distributed(job(), step=5).layout.title.subtitle.text
    assert plot_distributed(job(), step=6).layout.annotations[0].text == "No rank has step 6."


def test_hundreds_of_ranks_fit_a_page() -> None:
    """The figure of 512 ranks is at most 900 pixels high."""
    result = job()
    rows = pl.concat([result.per_rank.with_columns(rank=pl.lit(rank, pl.Int32)) for rank in range(512)])
    figure = plot_distributed(Distributed(result.per_device, result.per_step, rows, result.per_operation))
    assert figure.layout.height <= 900
