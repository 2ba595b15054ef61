"""Statistics of frames by rank, in the shape of HTA's summaries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
_QUARTERS = (0.25, 0.5, 0.75)


def described(frames: Mapping[int, pd.DataFrame], *, by: str, value: str) -> pd.DataFrame:
    """Return what pandas' `describe` says of one column of each frame, in a fraction of its time.

    Returns:
        index (rank, `by`), columns (`value`, count … max): each row counts once, however long it lasts. Without rows
        the result is an empty frame of the same shape, where HTA returns None.
    """
    columns = pd.MultiIndex.from_product([[value], _STATISTICS])
    filled = {rank: frame for rank, frame in frames.items() if len(frame)}
    if not filled:
        index = pd.MultiIndex.from_arrays([[], []], names=["rank", by])
        return pd.DataFrame(index=index, columns=columns, dtype=float)
    parts = {rank: _groups(frame[by], frame[value].to_numpy(np.float64)) for rank, frame in filled.items()}
    tables = {
        rank: pd.DataFrame([_statistics(group) for group in groups.values()], index=list(groups), columns=columns)
        for rank, groups in parts.items()
    }
    return pd.concat(tables, names=["rank", by])


def _groups(keys: pd.Series[Any], values: npt.NDArray[np.float64]) -> dict[Any, npt.NDArray[np.float64]]:
    """Return the values of each key, keys in order; rows without a key or a value are left out."""
    codes, distinct = pd.factorize(keys, sort=True)
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        codes, values = codes[order], values[order]
    bounds = np.searchsorted(codes, np.arange(len(distinct) + 1))
    groups = (values[first:last] for first, last in itertools.pairwise(bounds))
    return {key: group[~np.isnan(group)] for key, group in zip(distinct, groups, strict=True)}


def _statistics(values: npt.NDArray[np.float64]) -> list[float]:
    """Return `_STATISTICS`, NaN where there are too few values for one."""
    if not len(values):
        return [0.0, *[np.nan] * (len(_STATISTICS) - 1)]
    ordered = np.sort(values)
    spread = values.std(ddof=1) if len(values) > 1 else np.nan
    quarters = [_between(ordered, quarter * (len(ordered) - 1)) for quarter in _QUARTERS]
    return [float(len(values)), values.mean(), spread, ordered[0], *quarters, ordered[-1]]


def _between(ordered: npt.NDArray[np.float64], place: float) -> float:
    """Return the value at a place between two rows, on the straight line; np.quantile takes five times as long."""
    row = int(place)
    low, high = ordered[row], ordered[min(row + 1, len(ordered) - 1)]
    return float(low + (high - low) * (place - row))
