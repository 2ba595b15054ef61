"""Which `nn.Module` each operator belongs to, where the profiler recorded Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from hta.algorithms.nesting import nearest_above, nesting
from hta.enrich.call_stack import gathered
from hta.enrich.event_ranges import event_ranges
from hta.schema import EventKind

if TYPE_CHECKING:
    from hta.store.trace import RankTrace

MODULE_PREFIX = "nn.Module: "


def module_of(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the innermost module call around each operator; use with `rank_trace.derive`.

    Modules are Python functions that the profiler calls `nn.Module: Linear_3`; it records them with `with_stack=True`.

    Returns:
        One row for each operator inside a module, in file order; none without recorded modules:

        event_index  uint32  the operator
        module       uint32  string id of the module's name, with the prefix
    """
    ids = rank_trace.strings.str.starts_with(MODULE_PREFIX).arg_true().cast(pl.UInt32)
    columns = ["event_index", "track_id", "start_ns", "end_ns", "name"]
    frames = event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], columns).filter(pl.col("name").is_in(ids.implode()))
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], columns)
    if frames.is_empty() or operators.is_empty():
        return pl.DataFrame(schema={"event_index": pl.UInt32, "module": pl.UInt32})
    both = pl.concat([frames, operators])  # frames first, so that of two equal ranges the frame is outside
    nested = nesting(*(both[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))
    rows = np.arange(both.height)
    around = nearest_above(nested.parent, rows < frames.height, rows[frames.height :])
    modules = gathered(both["name"], around).alias("module")
    return operators.select("event_index").with_columns(modules).drop_nulls()
