"""Stacked bars have readable rows, ticks and units."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.drawing.colors import KIND_COLORS
from holotrace.drawing.stacked_bars import (
    LYING_ROWS,
    Heading,
    Part,
    ValueAxis,
    bar_figure,
    exact_duration,
    largest_unit,
    rows_of,
    state_marker,
)


def test_rows_name_the_device_only_where_a_rank_has_several() -> None:
    """Rows are named like `rank 1` if each rank has one device, and like `rank 0 · device 1` if a rank has several."""
    one = pl.DataFrame({"rank": [0, 1], "device": [0, 1]})
    several = pl.DataFrame({"rank": [0, 0], "device": [0, 1]})
    assert rows_of(one).keys == ["rank 0", "rank 1"]
    assert rows_of(several).keys == ["rank 0 · device 0", "rank 0 · device 1"]


def test_rows_name_the_stream() -> None:
    """Two streams of a rank get two rows, each named after its rank and stream."""
    assert rows_of(pl.DataFrame({"rank": [0, 0], "device": [0, 0], "stream": [7, 20]})).keys == [
        "rank 0 · stream 7",
        "rank 0 · stream 20",
    ]


def test_many_rows_are_named_by_numbers_and_the_axis_has_a_title() -> None:
    """With 100 rows, the axis title is `rank` and the ticks are plain numbers."""
    rows = rows_of(pl.DataFrame({"rank": range(100), "device": [0] * 100}))
    assert (rows.keys[99], rows.title, rows.are_lying) == ("99", "rank", False)


@pytest.mark.parametrize("count", [LYING_ROWS + 1, 128, 600, 1_000, 4_096])
def test_ticks_of_many_rows_have_room(count: int) -> None:
    """At most 24 rows are labelled, for example every 8th row; the title of the axis gives the interval."""
    rows = rows_of(pl.DataFrame({"rank": range(count), "device": [0] * count}))
    part = Part("idle", [0.5] * count, ["half"] * count, {"color": "#000000"})
    figure = bar_figure(rows, [part], Heading("?", ""), ValueAxis("share", is_share=True), "light")
    ticks = [int(tick) for tick in figure.layout.xaxis.tickvals]
    assert len(ticks) <= 24
    step = ticks[1] - ticks[0]
    assert step.bit_count() == 1
    assert figure.layout.xaxis.title.text == f"rank (every {step}{'nd' if step in (2, 32) else 'th'} is named)"


def test_every_one_of_few_rows_is_named() -> None:
    """Up to 40 rows are drawn as horizontal bars, each labelled."""
    rows = rows_of(pl.DataFrame({"rank": range(LYING_ROWS), "device": [0] * LYING_ROWS}))
    part = Part("idle", [0.5] * LYING_ROWS, ["half"] * LYING_ROWS, {"color": "#000000"})
    figure = bar_figure(rows, [part], Heading("?", ""), ValueAxis("share", is_share=True), "light")
    assert (LYING_ROWS, figure.layout.yaxis.ticktext) == (40, tuple(f"rank {rank}" for rank in range(LYING_ROWS)))


@pytest.mark.parametrize(
    ("longest", "unit"),
    [(0, (1, "ns")), (999, (1, "ns")), (1_000, (1_000, "µs")), (5_000_000_000, (1_000_000_000, "s"))],
)
def test_the_unit_of_an_axis_fits_the_longest_value(longest: int, unit: tuple[int, str]) -> None:
    """The unit is the largest one in which the longest value is at least 1."""
    assert largest_unit([longest, 0]) == unit


def test_exact_durations_keep_every_nanosecond() -> None:
    """The rounded duration is followed by the exact one in brackets."""
    assert exact_duration(6_419_001) == "6.42 ms (6,419,001 ns)"


def test_states_of_several_kinds_are_hatched_with_their_colors() -> None:
    """A state that combines two kinds is hatched in both colours, so readers can recognise it without colours."""
    assert state_marker(["computation"]) == {"color": KIND_COLORS["computation"]}
    pattern = state_marker(["computation", "communication"])["pattern"]
    assert (pattern["bgcolor"], pattern["fgcolor"]) == (KIND_COLORS["computation"], KIND_COLORS["communication"])
