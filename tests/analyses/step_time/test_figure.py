"""Tests of the step_time figure."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.step_time.compute import StepTime, step_time
from holotrace.analyses.step_time.figure import plot_step_time
from holotrace.analyses.step_time.tables import mean_step
from holotrace.errors import UnknownRankError
from jobs import stepping_job


def bars(figure) -> dict[str, list[float]]:
    """Return the bar lengths of each entry in the legend."""
    return {bar.name: list(bar.x) for bar in figure.data if bar.showlegend is not False}


def test_the_steps_of_one_rank_are_stacked() -> None:
    """Each step has one bar in ms; categories that are 0 everywhere have no entry in the legend."""
    figure = plot_step_time(step_time(stepping_job().build()))

    assert bars(figure) == {"kernels": [4, 4], "operators": [2, 2], "other": [4, 14]}
    assert list(figure.data[0].y) == ["step 1", "step 2"]
    assert figure.layout.xaxis.title.text == "time (ms)"
    assert figure.data[0].customdata[0] == "40.0 % · 4 ms (4,000,000 ns)"


def test_the_table_and_the_answer_use_the_names_of_the_figure() -> None:
    """The figure's legend, the table of the mean step and the answer use the same names for categories."""
    result = step_time(stepping_job().build())

    assert [bar.name for bar in plot_step_time(result).data] == mean_step(result)["category"].to_list()
    assert mean_step(result)["category"].to_list() == [
        *("kernels", "copies", "memsets", "communication", "runtime", "data loader", "operators", "other")
    ]
    assert result.answer == "A step takes 15 ms on average; its largest part is other (60.0 %)."


def test_several_ranks_show_their_mean_step_and_one_can_be_chosen() -> None:
    """With two ranks, the figure shows the mean step of each rank; with `rank=1`, it shows the steps of rank 1."""
    result = step_time(stepping_job(2).build())

    assert bars(plot_step_time(result))["other"] == [9, 9]
    assert bars(plot_step_time(result, rank=1))["other"] == [4, 14]
    with pytest.raises(UnknownRankError, match="no rank 5"):
        plot_step_time(result, rank=5)


def test_steps_of_one_number_stay_apart() -> None:
    """In the plugin's results, two steps may have the same number; a suffix keeps their bars apart."""
    result = step_time(stepping_job().build())
    twice = StepTime(result.per_step.with_columns(step=pl.lit(1, pl.Int64)), result.mean)

    assert list(plot_step_time(twice).data[0].y) == ["step 1", "step 1 (2)"]


def test_a_figure_without_steps_says_so() -> None:
    """Without steps, the figure shows a message."""
    result = step_time(stepping_job().build())
    (note,) = plot_step_time(StepTime(result.per_step.clear(), result.mean.clear())).layout.annotations
    assert note.text == "No step was recorded."
