"""Launches and the work they launched, as HTA shows them."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import polars as pl

from hta.analyses.launch_statistics import LaunchStatistics, launch_statistics
from hta.errors import MissingDataError
from hta.facade.names import shared_texts
from hta.facade.show import show
from hta.facade.times import microseconds
from hta.figures import plot_launch_statistics
from hta.store.trace import Trace

_COLUMNS = {
    "correlation": "int64",
    "cpu_duration": "float64",
    "gpu_duration": "float64",
    "launch_delay": "float64",
    "kernel": "object",
    "operator": "object",
    "stream": "int64",
    "rank": "int64",
    "launch": "object",
}


def launch_frames(  # noqa: PLR0913 -- what HTA's method takes
    trace: Trace,
    ranks: Iterable[int] | None,
    *,
    runtime_cutoff: float,
    launch_delay_cutoff: float,
    include_memory_events: bool,
    visualize: bool,
) -> dict[int, pd.DataFrame]:
    """Return a frame of each rank, a row for each piece of work with a known launch; cutoffs are in microseconds."""
    chosen = trace.select(None if ranks is None else list(ranks))
    try:
        result = launch_statistics(
            chosen,
            runtime_cutoff_ns=round(1_000 * runtime_cutoff),
            delay_cutoff_ns=round(1_000 * launch_delay_cutoff),
            include_launches=True,
        )
    except MissingDataError as error:
        return {rank: _empty(str(error)) for rank in chosen.ranks}
    if visualize:
        show(plot_launch_statistics(result))
    return {rank: _of_rank(result, rank, include_memory_events=include_memory_events) for rank in chosen.ranks}


def _of_rank(result: LaunchStatistics, rank: int, *, include_memory_events: bool) -> pd.DataFrame:
    of_rank = result.per_launch.filter(pl.col("rank") == rank)
    chosen = of_rank if include_memory_events else of_rank.filter(pl.col("kernel_kind") != "memory")
    return _frame(chosen) if len(chosen) else _empty(f"the launches of rank {rank} were not recorded")


def _frame(table: pl.DataFrame) -> pd.DataFrame:
    values = (
        table["correlation"].to_numpy(),
        microseconds(table["call_ns"]),
        microseconds(table["kernel_ns"]),
        microseconds(table["delay_ns"].clip(lower_bound=0)),
        *(shared_texts(table[column]) for column in ("kernel", "operator")),
        *(table[column].to_numpy() for column in ("stream", "rank")),
        shared_texts(table["call"]),
    )
    return pd.DataFrame(dict(zip(_COLUMNS, values, strict=True)))


def _empty(reason: str) -> pd.DataFrame:
    frame = pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in _COLUMNS.items()})
    frame.attrs["reason"] = reason
    return frame
