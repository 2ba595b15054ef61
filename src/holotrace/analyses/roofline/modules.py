"""The module around each call or, in the backward pass, around the forward operator whose gradient it computes."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.forward_backward import forward_of_calls
from holotrace.enrich.host.host_names import MODULE_PREFIX
from holotrace.enrich.host.modules import module_of
from holotrace.store.trace import RankTrace


def modules_of_calls(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.Series:
    """Return the innermost `nn.Module` of each call, such as `Linear_3`; null if unknown or if none was recorded."""
    if not rank_trace.strings.str.starts_with(MODULE_PREFIX).any():
        return pl.Series("module", [None] * calls.height, dtype=pl.String)
    modules = module_of(rank_trace)
    own = of_events(modules, calls["event_index"])["module"]
    forward = of_events(modules, forward_of_calls(rank_trace, calls["row"]))["module"]
    ids = pl.Series(own).zip_with(own.is_not_null(), forward)
    return rank_trace.texts(ids).str.strip_prefix(MODULE_PREFIX).alias("module")
