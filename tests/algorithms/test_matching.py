"""Which row has the same key."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.matching import NO_MATCH, SEVERAL, only_matches

keys = st.lists(st.integers(-4, 4).map(lambda key: key * 10**15) | st.integers(-4, 4), max_size=12)


@given(keys, keys)
def test_only_matches_are_those_found_by_counting(offered: list[int], wanted: list[int]) -> None:
    """Close together or far apart."""
    found = only_matches(np.array(offered, np.int64), np.array(wanted, np.int64)).tolist()

    assert found == [_only_row(offered, key) for key in wanted]


def _only_row(offered: list[int], key: int) -> int:
    rows = [row for row, each in enumerate(offered) if each == key]
    return (rows or [NO_MATCH])[0] if len(rows) < 2 else SEVERAL
