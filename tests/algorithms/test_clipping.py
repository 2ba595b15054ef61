"""`clipped` agrees with a loop over all windows and intervals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.clipping import clipped

bounds = st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(sorted)
windows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5)


@given(bounds, windows)
def test_each_window_cuts_each_interval(times, wanted):
    """`clipped` returns the same parts as a loop over all windows and intervals, even for empty windows."""
    start, end = np.array(times[:-1:2]), np.array(times[1::2])[: len(times[:-1:2])]
    begin, finish = np.array([first for first, _ in wanted], np.int64), np.array([last for _, last in wanted], np.int64)

    parts = clipped(start, end, begin, finish)

    expected = [
        (window, interval, max(start[interval], first), min(end[interval], last))
        for window, (first, last) in enumerate(wanted)
        for interval in range(len(start))
        if max(start[interval], first) < min(end[interval], last)
    ]
    assert list(zip(*(column.tolist() for column in parts), strict=True)) == expected
