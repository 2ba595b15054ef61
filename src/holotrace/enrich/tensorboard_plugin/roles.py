"""Find when a rank computes, copies, communicates, loads data or runs operators, according to the plugin."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, intervals_of, union
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.steps.step_roles import host_class, intervals_where
from holotrace.enrich.tensorboard_plugin.communication import communication_events, communication_kernels
from holotrace.enrich.tensorboard_plugin.events import PluginType, plugin_events
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_HOST_TYPES = (PluginType.OPERATOR, PluginType.USER_ANNOTATION, PluginType.PYTHON)


@derived
def plugin_roles(rank_trace: RankTrace) -> dict[str, Intervals]:
    """Return the plugin's `roles`."""
    events = plugin_events(rank_trace)
    asked, carried_out = communication_events(rank_trace), communication_kernels(rank_trace)
    is_asked, is_carried_out = _is_one_of(asked), _is_one_of(carried_out)
    host = events.filter(pl.col("type").is_in(_HOST_TYPES))
    classed = host.with_columns(host_class(rank_trace, host["name"]))
    # The plugin never treats a pure Python range as a data loader.
    is_loader = (pl.col("class") == NodeClass.DATALOADER) & (pl.col("type") != PluginType.PYTHON)
    intervals = {
        "kernel": intervals_where(events, _is(PluginType.KERNEL) & ~is_carried_out),
        "memcpy": intervals_where(events, _is(PluginType.MEMCPY)),
        "memset": intervals_where(events, _is(PluginType.MEMSET)),
        "communication": concatenated([intervals_of(carried_out), intervals_of(asked)]),
        "runtime": intervals_where(events, _is(PluginType.RUNTIME)),
        "dataloader": intervals_where(classed, is_loader),
        "cpu": intervals_where(classed, ~is_loader & ~is_asked),
    }
    return {role: union(*of_role) for role, of_role in intervals.items()}


def _is(plugin_type: PluginType) -> pl.Expr:
    return pl.col("type") == int(plugin_type)


def _is_one_of(events: pl.DataFrame) -> pl.Expr:
    return pl.col("event_index").is_in(events["event_index"].implode())
