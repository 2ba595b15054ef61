"""Tests of exposed communication and the calls that cause it."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.across_ranks.exposed import divided_among_calls, uncovered

_CALL = {"row": pl.Int64, "axis": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "wait_ns": pl.Int64}
_RANGE = {"start_ns": pl.Int64, "end_ns": pl.Int64, "step": pl.Int64}
_AXES = ("pp", "dp", "unknown")

_ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


def _arrays(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r[0] for r in ranges], np.int64), np.array([r[1] for r in ranges], np.int64)


def _nanoseconds(ranges: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in ranges for moment in range(start, end)}


def _divided(
    exposed: list[tuple[int, int, int | None]], calls: list[tuple[int, str, int, int, int | None]]
) -> list[tuple]:
    tables = pl.DataFrame(exposed, _RANGE, orient="row"), pl.DataFrame(calls, _CALL, orient="row")
    return divided_among_calls(*tables, _AXES).rows()


@given(_ranges, _ranges)
def test_uncovered_time_is_the_difference_of_the_sets_of_nanoseconds(intervals, cover):
    """`uncovered` returns every nanosecond of the first intervals that is not in the second intervals."""
    starts, ends = uncovered(_arrays(intervals), _arrays(cover))

    assert _nanoseconds(list(zip(starts.tolist(), ends.tolist(), strict=True))) == _nanoseconds(
        intervals
    ) - _nanoseconds(cover)
    assert (starts[1:] > ends[:-1]).all()


def test_a_call_waits_first_and_transfers_then():
    """A call waits until 30 ns and transfers until 100 ns; of its exposed time (20 to 50 ns), 10 ns are waiting."""
    assert _divided([(20, 50, 1)], [(7, "dp", 0, 100, 30)]) == [(7, 1, 20, 10, 0)]


def test_the_axis_with_priority_takes_time_that_two_share():
    """Where a pipeline call (40 to 60 ns) overlaps a data-parallel call, that time counts toward the pipeline."""
    assert _divided([(0, 100, 1)], [(1, "dp", 0, 100, 0), (2, "pp", 40, 60, 20)]) == [
        (1, 1, 80, 0, 0),
        (2, 1, 0, 20, 0),
    ]


def test_a_transfer_takes_time_from_a_wait_of_the_same_axis():
    """Time in which one call of an axis waits and another one transfers data counts as transfer, not as waiting."""
    assert _divided([(0, 100, 1)], [(1, "dp", 0, 100, 100), (2, "dp", 40, 60, 0)]) == [
        (1, 1, 0, 80, 0),
        (2, 1, 20, 0, 0),
    ]


def test_steps_stay_apart():
    """A call that is exposed in two steps has one row for each step."""
    assert _divided([(0, 10, 1), (10, 30, 2)], [(1, "dp", 0, 30, 0)]) == [(1, 1, 10, 0, 0), (1, 2, 20, 0, 0)]


def test_a_call_without_counterpart_is_unmatched() -> None:
    """If only one rank recorded a call, it is unknown how long the call waits.

    Time that the call shares with a known transfer counts toward that transfer.
    """
    calls = [(1, "dp", 0, 100, None), (2, "dp", 40, 60, 0)]

    assert _divided([(0, 100, 1)], calls) == [(1, 1, 0, 0, 80), (2, 1, 20, 0, 0)]


def test_time_without_a_call_has_no_row_number():
    """Exposed time in which no known call runs gets its own row, so the rows add up to all exposed time."""
    assert _divided([(0, 10, 1)], []) == [(None, 1, 0, 0, 10)]


@given(
    exposed=_ranges,
    calls=st.lists(
        st.tuples(st.sampled_from(_AXES), st.integers(0, 50), st.integers(0, 30), st.none() | st.integers(0, 30)),
        max_size=8,
    ),
)
def test_the_parts_add_up_to_the_exposed_time(exposed, calls):
    """Even if calls overlap, every exposed nanosecond counts in exactly one row."""
    starts, ends = uncovered(_arrays(exposed), _arrays([]))
    disjoint = [(start, end, None) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    rows = [
        (n, axis, start, start + length, None if wait is None else min(wait, length))
        for n, (axis, start, length, wait) in enumerate(calls)
    ]

    assert sum(sum(parts) for _, _, *parts in _divided(disjoint, rows)) == sum(ends - starts)
