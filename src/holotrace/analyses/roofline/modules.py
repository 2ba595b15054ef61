"""Find the module around each call or, for backward calls, around the forward operator."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.events.event_rows import gathered, of_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.forward_backward import forward_of_calls
from holotrace.enrich.host.host_names import MODULE_PREFIX, NodeClass
from holotrace.enrich.host.modules import module_of
from holotrace.schema import KernelKind
from holotrace.store.trace import RankTrace

_LAYERS = {"module": pl.String, "call_count": pl.Int64, "busy_ns": pl.Int64}


def modules_of_calls(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.Series:
    """Return the innermost `nn.Module` of each call, such as `Linear_3`; null if unknown or if none was recorded."""
    if not rank_trace.strings.str.starts_with(MODULE_PREFIX).any():
        return pl.Series("module", [None] * calls.height, dtype=pl.String)
    modules = module_of(rank_trace)
    own = of_events(modules, calls["event_index"])["module"]
    forward = of_events(modules, forward_of_calls(rank_trace, calls["row"]))["module"]
    ids = pl.Series(own).zip_with(own.is_not_null(), forward)
    return rank_trace.texts(ids).str.strip_prefix(MODULE_PREFIX).alias("module")


def layers_without_operators(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the inferred layers of graph replays, each with the total time of its kernels whose operator is unknown.

    Returns:
        module, call_count (replays of the layer), busy_ns (without communication).
    """
    if not may_graft(rank_trace):
        return pl.DataFrame(schema=_LAYERS)
    nodes, owners = grafts(rank_trace)
    work = of_events(
        device_work(rank_trace).select("event_index", "kernel_kind", "start_ns", "end_ns"), owners["event_index"]
    )
    is_operator, is_module = (
        (nodes["node_class"] == kind).to_numpy() for kind in (NodeClass.OPERATOR, NodeClass.MODULE)
    )
    above, graft = nodes["above"].to_numpy(), owners["graft"].to_numpy()
    layer = itself_or_above(above, is_module, graft)
    computes = (work["kernel_kind"] != KernelKind.COMMUNICATION).fill_null(value=False).to_numpy()
    wanted = computes & (layer != NO_PARENT) & (itself_or_above(above, is_operator, graft) == NO_PARENT)
    names = rank_trace.texts(gathered(nodes["name"], layer[wanted])).str.strip_prefix(MODULE_PREFIX)
    modules, group = np.unique(names.to_numpy(), return_inverse=True)
    starts, ends = (work[name].to_numpy()[wanted] for name in ("start_ns", "end_ns"))
    replays = pl.DataFrame({"group": group, "layer": layer[wanted]}).group_by("group").agg(pl.col("layer").n_unique())
    columns = (modules, replays.sort("group")["layer"], covered_by_number(group, starts, ends, len(modules)))
    return pl.DataFrame(dict(zip(_LAYERS, columns, strict=True)), schema=_LAYERS)
