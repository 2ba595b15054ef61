"""Tests of the printed tables of straggler_cost."""

from __future__ import annotations

from holotrace.analyses.straggler_cost.compute import straggler_cost
from holotrace.analyses.straggler_cost.tables import VIEWS
from holotrace.questions.tables import print_view
from holotrace.units import percent_text
from operations import drawn, pipelined_step


def test_every_table_prints() -> None:
    """Every view can be printed; the first view shows the slowdown of the job, and shares of the loss in percent."""
    result = straggler_cost(pipelined_step(2, 3, 2, drawn(0)))

    printed = {view.caption: print_view(view, result, 10) for view in VIEWS}

    [row] = printed["Cost of stragglers"].rows
    assert [cell.text for cell in row] == [
        f"{result.slowdown:.3g}",
        percent_text(result.worker_share),
        percent_text(result.stage_share),
    ]
