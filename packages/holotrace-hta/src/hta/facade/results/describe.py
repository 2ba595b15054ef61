"""Statistics of frames by rank, in the layout of HTA's summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

_STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
_QUARTERS = (0.25, 0.5, 0.75)

_Values: TypeAlias = npt.NDArray[Any]


def described(frames: Mapping[int, pd.DataFrame], *, by: str, value: str) -> pd.DataFrame:
    """Return the statistics of pandas' `describe` for the column `value`, grouped by rank and by the column `by`.

    This is much faster than pandas.

    Returns:
        A frame with the index (rank, `by`) and the columns (`value`, count) to (`value`, max). All rows have the same
        weight, whatever their duration. If there are no rows, the frame is empty; HTA returns None instead.
    """
    columns = pd.MultiIndex.from_product([[value], _STATISTICS])
    filled = {rank: frame for rank, frame in frames.items() if len(frame)}
    if not filled:
        index = pd.MultiIndex.from_arrays([[], []], names=["rank", by])
        return pd.DataFrame(index=index, columns=columns, dtype=float)
    parts = {rank: _groups(frame[by], frame[value].to_numpy()) for rank, frame in filled.items()}
    tables = {
        rank: pd.DataFrame([_statistics(group) for group in groups.values()], index=list(groups), columns=columns)
        for rank, groups in parts.items()
    }
    return pd.concat(tables, names=["rank", by])


def _groups(keys: pd.Series, values: _Values) -> dict[Any, _Values]:
    """Return {key: its values}, sorted by key; rows without a key or a value are dropped."""
    codes, distinct = (keys.to_numpy(), None) if keys.dtype.kind in "iu" else pd.factorize(keys, sort=True)
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, values = codes[order], values[order]
    begins = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    parts = dict(zip(codes[np.append(0, begins)].tolist(), np.split(values, begins), strict=True))
    if values.dtype.kind == "f":
        parts = {code: part[~np.isnan(part)] for code, part in parts.items()}
    return parts if distinct is None else {distinct[code]: part for code, part in parts.items() if code >= 0}


def _statistics(values: _Values) -> list[float]:
    """Compute `_STATISTICS`; a statistic is NaN if there are too few values to compute it."""
    if not len(values):
        return [0.0, *[np.nan] * (len(_STATISTICS) - 1)]
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < len(values):
        return _statistics_of_counts(np.bincount(values))
    ordered = np.sort(values)
    spread = float(values.std(ddof=1)) if len(values) > 1 else np.nan
    quarters = [_between(ordered[_neighbours(quarter, len(ordered))], quarter, len(ordered)) for quarter in _QUARTERS]
    return [float(len(values)), float(values.mean()), spread, float(ordered[0]), *quarters, float(ordered[-1])]


def _statistics_of_counts(counts: npt.NDArray[np.int64]) -> list[float]:
    """Compute `_STATISTICS` of small integers from how often each integer occurs, which needs no sorting."""
    numbers, passed = np.arange(len(counts)), np.cumsum(counts)
    count = int(passed[-1])
    mean = int(counts @ numbers) / count
    spread = float(np.sqrt(counts @ (numbers - mean) ** 2 / (count - 1))) if count > 1 else np.nan
    rows = [np.searchsorted(passed, _neighbours(quarter, count), side="right") for quarter in _QUARTERS]
    quarters = [_between(values, quarter, count) for values, quarter in zip(rows, _QUARTERS, strict=True)]
    return [float(count), mean, spread, float(np.argmax(counts > 0)), *quarters, float(len(counts) - 1)]


def _neighbours(quarter: float, count: int) -> list[int]:
    """Return the positions, counted from 0, of the two sorted values on either side of a quantile."""
    row = int(quarter * (count - 1))
    return [row, min(row + 1, count - 1)]


def _between(neighbours: _Values, quarter: float, count: int) -> float:
    """Interpolate linearly between two neighbours; np.quantile takes five times as long."""
    low, high = neighbours.tolist()
    position = quarter * (count - 1)
    return float(low + (high - low) * (position - int(position)))
