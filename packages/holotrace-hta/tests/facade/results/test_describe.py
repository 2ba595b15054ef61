"""Statistics by rank and group equal the statistics of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hta.facade.results.describe import described

FRAMES = st.dictionaries(
    st.integers(0, 3),
    st.lists(
        st.tuples(st.sampled_from([7, 20, 3]), st.one_of(st.just(np.nan), st.floats(-1e9, 1e9))),
        min_size=1,
        max_size=30,
    ).map(lambda rows: pd.DataFrame(rows, columns=["stream", "queue_length"])),
    min_size=1,
)


@given(FRAMES)
def test_the_statistics_are_those_of_pandas(frames: dict[int, pd.DataFrame]) -> None:
    """`described` equals pandas for rows in any order, missing values, and groups with one value or no values."""
    parts = {rank: frame.groupby("stream")[["queue_length"]].describe() for rank, frame in frames.items()}
    expected = pd.concat(parts, names=["rank", "stream"])
    summary = described(frames, by="stream", value="queue_length")
    pd.testing.assert_frame_equal(summary, expected, rtol=1e-9, atol=1e-5)


def test_groups_may_be_texts() -> None:
    """Groups with text names are sorted by name; a row without a name is in no group."""
    frame = pd.DataFrame({"name": ["HtoD", "DtoH", None, "HtoD"], "gbps": [1.0, 5.0, 9.0, 2.0]})
    summary = described({0: frame, 1: frame[:0]}, by="name", value="gbps")
    pd.testing.assert_frame_equal(summary.droplevel("rank"), frame.groupby("name")[["gbps"]].describe())
