"""Times in microseconds, as in HTA's frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from hta.facade.imports.modules_later import pd

_TIMES = ("_ns", "_ns_per_step")
"""The names of columns with times end in one of these suffixes."""


def microseconds(times_ns: pl.Series) -> npt.NDArray[Any]:
    """Convert to microseconds: integers if all values are whole microseconds, otherwise floats."""
    nanoseconds = times_ns.to_numpy().astype(np.int64, copy=False)
    whole = nanoseconds // 1_000
    return whole if (1_000 * whole == nanoseconds).all() else nanoseconds / 1_000


def in_microseconds(time_ns: int) -> float:
    """Convert to microseconds: an integer if the time is a whole number of microseconds, otherwise a float."""
    return time_ns / 1_000 if time_ns % 1_000 else time_ns // 1_000


def frame_in_microseconds(table: pl.DataFrame) -> pd.DataFrame:
    """Return a result table as a frame.

    Columns `x_ns` become `x(us)`, and `x_ns_per_step` become `x_per_step(us)`. Nulls in numeric columns become NaN.
    """
    return pd.DataFrame({_column_name(column.name): _values(column) for column in table})


def _column_name(name: str) -> str:
    return f"{name.replace('_ns', '')}(us)" if name.endswith(_TIMES) else name


def _values(column: pl.Series) -> list[Any] | npt.NDArray[Any]:
    if not column.dtype.is_numeric():
        return column.to_list()
    values = column.cast(pl.Float64).to_numpy() if column.null_count() else column.to_numpy()
    return values / 1_000 if column.name.endswith(_TIMES) else values
