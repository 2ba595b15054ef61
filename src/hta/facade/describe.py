"""Statistics of frames by rank, in the shape of HTA's summaries."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

_STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")


def described(frames: Mapping[int, pd.DataFrame], *, by: str, value: str) -> pd.DataFrame:
    """Return pandas' `describe` of one column of each frame.

    Returns:
        index (rank, `by`), columns (`value`, count … max): each row counts once, however long it lasts. Without rows
        the result is an empty frame of the same shape, where HTA returns None.
    """
    filled = {rank: frame for rank, frame in frames.items() if len(frame)}
    if not filled:
        index = pd.MultiIndex.from_arrays([[], []], names=["rank", by])
        columns = pd.MultiIndex.from_product([[value], _STATISTICS])
        return pd.DataFrame(index=index, columns=columns, dtype=float)
    parts = {rank: frame.groupby(by)[[value]].describe() for rank, frame in filled.items()}
    return pd.concat(parts, names=["rank", by])
