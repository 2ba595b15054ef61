"""Memory as frames: times in microseconds since the first event of the job, as HTA's frames count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl

from holotrace.analyses.operator_memory.compute import OperatorMemory, operator_memory
from hta.facade.results.times import frame_in_microseconds

if TYPE_CHECKING:
    from holotrace.enrich.host.host_names import Compat
    from holotrace.store.trace import Trace

MOMENTS = ("time_ns", "allocated_ns", "released_ns")


def memory_frame(table: pl.DataFrame, origin_ns: int) -> pd.DataFrame:
    """Return a table of memory as a frame, its moments counted from `origin_ns`."""
    moments = [name for name in MOMENTS if name in table.columns]
    return frame_in_microseconds(table.with_columns(pl.col(moments) - origin_ns))


def memory_within(
    trace: Trace, start_us: float | None, end_us: float | None, compat: Compat | None, origin_ns: int
) -> OperatorMemory:
    """Return `holotrace.operator_memory` of a window in such times."""
    start_ns, end_ns = (None if time is None else origin_ns + round(1_000 * time) for time in (start_us, end_us))
    return operator_memory(trace, start_ns=start_ns, end_ns=end_ns, compat=compat)
