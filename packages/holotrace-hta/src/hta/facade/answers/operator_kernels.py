"""Operators with their kernels and launch delays, with HTA's columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import polars as pl

from holotrace.analyses.operator_kernels.compute import operator_kernels
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.store.trace import Trace
from hta.facade.results.reasons import explained

_COLUMNS = {
    "aten_op_name": "object",
    "kernel_sequence": "object",
    "occurrence_count": "int64",
    "avg_aten_op_launch_delay": "float64",
    "avg_runtime_delay": "float64",
}


def operator_kernel_frames(
    trace: Trace, ranks: Iterable[int] | None, sort_by: Sequence[str] | None
) -> dict[int, pd.DataFrame]:
    """Return a frame per rank with one row per operator and kernel sequence; delays are in microseconds."""
    keys = ["occurrence_count"] if sort_by is None else list(sort_by)
    if unknown := [key for key in keys if key not in _COLUMNS]:
        message = f"sort_by={unknown}: no such column; the columns are: {', '.join(_COLUMNS)}"
        raise InvalidOptionError(message)
    chosen = trace.select(None if ranks is None else list(ranks))
    try:
        table = operator_kernels(chosen).per_sequence
    except MissingDataError as error:
        return {rank: _empty(str(error)) for rank in chosen.ranks}
    return {rank: _frame_of_rank(table, rank, keys) for rank in chosen.ranks}


def _frame_of_rank(table: pl.DataFrame, rank: int, keys: list[str]) -> pd.DataFrame:
    of_rank = table.filter(pl.col("rank") == rank)
    return _frame(of_rank, keys) if len(of_rank) else _empty(f"no operator of rank {rank} is known to launch kernels")


def _frame(table: pl.DataFrame, keys: list[str]) -> pd.DataFrame:
    values = (
        table["operator"].to_list(),
        table["kernels"].to_list(),
        table["call_count"].to_numpy(),
        *(
            np.round(table[name].to_numpy() / 1_000, 3)
            for name in ("mean_operator_to_launch_ns", "mean_launch_to_kernel_ns")
        ),
    )
    frame = pd.DataFrame(dict(zip(_COLUMNS, values, strict=True)))
    return frame.sort_values(keys, ascending=False, kind="stable", ignore_index=True) if keys else frame


def _empty(reason: str) -> pd.DataFrame:
    return explained(pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in _COLUMNS.items()}), reason)
