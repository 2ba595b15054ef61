"""The module of each call: of the operator itself, or of the forward operator whose gradient it computes."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.enrich.host.host_names import MODULE_PREFIX
from holotrace.enrich.host.modules import module_of
from holotrace.store.trace import RankTrace


def modules_of_calls(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.Series:
    """Return the innermost `nn.Module` of each call, such as `Linear_3`; null if unknown or if none was recorded."""
    if not rank_trace.strings.str.starts_with(MODULE_PREFIX).any():
        return pl.Series("module", [None] * calls.height, dtype=pl.String)
    modules = module_of(rank_trace)
    own = of_events(modules, calls["event_index"])["module"]
    forward = of_events(modules, _forward(rank_trace, calls["row"]))["module"]
    ids = pl.Series(own).zip_with(own.is_not_null(), forward)
    return rank_trace.texts(ids).str.strip_prefix(MODULE_PREFIX).alias("module")


def _forward(rank_trace: RankTrace, rows: pl.Series) -> pl.Series:
    """Return the event of the forward operator of the nearest backward operator around each call."""
    stacks, links = call_stacks(rank_trace), forward_of(rank_trace)
    backward = rows_of_events(stacks, links["event_index"])
    link_of_row = np.full(stacks.height, NO_PARENT, np.int64)
    known = backward != NO_PARENT
    link_of_row[backward[known]] = np.flatnonzero(known)
    around = itself_or_above(stacks["parent_row"].to_numpy(), link_of_row != NO_PARENT, rows.to_numpy())
    link = np.where(around == NO_PARENT, NO_PARENT, link_of_row[around])
    return gathered(links["forward_index"], link)
