"""Memory tables as frames, with times in microseconds since the first event of the job."""

from __future__ import annotations

import pandas as pd
import polars as pl

from holotrace.analyses.operator_memory.compute import OperatorMemory, operator_memory
from holotrace.enrich.compat import Compat
from holotrace.store.trace import Trace
from hta.facade.results.times import frame_in_microseconds

TIMES = ("time_ns", "allocated_ns", "released_ns")


def memory_frame(table: pl.DataFrame, origin_ns: int) -> pd.DataFrame:
    """Return a memory table as a frame, with times counted from `origin_ns`."""
    times = [name for name in TIMES if name in table.columns]
    return frame_in_microseconds(table.with_columns(pl.col(times) - origin_ns))


def memory_within(
    trace: Trace, start_us: float | None, end_us: float | None, compat: Compat | None, origin_ns: int
) -> OperatorMemory:
    """Return `holotrace.operator_memory` for a time window in microseconds since `origin_ns`."""
    start_ns, end_ns = (None if time is None else origin_ns + round(1_000 * time) for time in (start_us, end_us))
    return operator_memory(trace, start_ns=start_ns, end_ns=end_ns, compat=compat)
