"""For each wanted key, `only_matches` returns the row with this key, if exactly one row has it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.matching import NO_MATCH, SEVERAL, only_matches

keys = st.lists(st.integers(-4, 4).map(lambda key: key * 10**15) | st.integers(-4, 4), max_size=12)


@given(keys, keys)
def test_a_key_matches_if_exactly_one_row_has_it(offered: list[int], wanted: list[int]) -> None:
    """`only_matches` tells whether a key occurs once, never or several times, whether the keys are dense or sparse."""
    rows = only_matches(np.array(offered, np.int64), np.array(wanted, np.int64)).tolist()

    assert rows == [_only_row(offered, key) for key in wanted]


def _only_row(offered: list[int], key: int) -> int:
    rows = [row for row, offered_key in enumerate(offered) if offered_key == key]
    return (rows or [NO_MATCH])[0] if len(rows) < 2 else SEVERAL
