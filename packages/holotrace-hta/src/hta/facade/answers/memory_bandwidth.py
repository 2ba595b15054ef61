"""Memory bandwidth with HTA's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
import polars as pl

from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.errors import MissingDataError
from holotrace.store.trace import RankTrace, Trace
from hta.facade.results.describe import described
from hta.facade.results.reasons import explained
from hta.facade.results.times import microseconds
from hta.facade.results.tracks import process_and_thread

_BYTES_OF_A_GB = 1_000_000_000


def memory_bw_time_series(trace: Trace, ranks: Iterable[int] | None, origin_ns: int) -> dict[int, pd.DataFrame]:
    """Return a frame for each rank that has copies; `ts` counts from `origin_ns`."""
    chosen = trace.select(None if ranks is None else list(ranks))
    try:
        series = memory_bandwidth(chosen).series
    except MissingDataError:
        return {}
    tables = {rank: series.filter(pl.col("rank") == rank) for rank in chosen.ranks}
    return {rank: _frame(chosen.ranks[rank], table, origin_ns) for rank, table in tables.items() if len(table)}


def memory_bw_summary(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Return statistics of the bandwidths above 0 for each rank and kind of copy."""
    moving = {rank: frame[frame["memory_bw_gbps"] > 0] for rank, frame in series.items()}
    summary = described(moving, by="name", value="memory_bw_gbps")
    return explained(summary, "no rank has copies or memsets of known bandwidth")


def _frame(rank_trace: RankTrace, table: pl.DataFrame, origin: int) -> pd.DataFrame:
    process, _ = process_and_thread(rank_trace, table["event_index"])
    return pd.DataFrame(
        {
            "ts": microseconds(table["time_ns"] - origin),
            "pid": process,
            "name": table["name"].to_list(),
            "memory_bw_gbps": table["bytes_per_s"].to_numpy() / _BYTES_OF_A_GB,
        }
    ).sort_values("name", kind="stable", ignore_index=True)
