"""The calls of `nn.Module`s, if the profiler recorded Python, and their forward and backward operators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, nearest_above
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_FUNCTION = "autograd::engine::evaluate_function:"
_ACCUMULATION = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
_ENDS = {"node": "event", "forward": "forward"}


@derived
def module_of(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the innermost module call around each operator.

    With `with_stack=True`, the profiler records module calls as Python functions with names such as
    `nn.Module: Linear_3`.

    Returns:
        One row for each operator inside a module; empty if no modules were recorded:

        event_index  uint32  the operator
        module       uint32  string id of the module's name, with the prefix
    """
    nodes = host_nodes(rank_trace)
    rows = np.flatnonzero((nodes["node_class"] == NodeClass.OPERATOR).to_numpy())
    is_module = (nodes["node_class"] == NodeClass.MODULE).to_numpy()
    around = nearest_above(nodes["parent"].to_numpy(), is_module, rows)
    return nodes[rows].select("event_index", gathered(nodes["name"], around).alias("module")).drop_nulls()


@derived
def backward_passes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the ranges of the backward pass that compute the gradients of operators, each with its forward operator.

    Each backward operator whose forward operator is known yields a range: the outermost `evaluate_function` of autograd
    around the backward operator or, if there is none, the backward operator itself. `AccumulateGrad` has no forward
    operator; its range gets the forward operator of the previous range on the same thread.

    Returns:
        In the order of `host_nodes`:

        node     int64  node of the range
        forward  int64  node of the forward operator
    """
    nodes, links = host_nodes(rank_trace), forward_of(rank_trace)
    ends = {name: rows_of_events(nodes, links[f"{column}_index"]) for name, column in _ENDS.items()}
    known = pl.DataFrame(ends).filter((pl.col("node") != NO_PARENT) & (pl.col("forward") != NO_PARENT))
    backward = known["node"].to_numpy()
    is_function = _named(nodes, rank_trace.strings.str.starts_with(_FUNCTION))
    outermost = furthest_above(nodes["parent"].to_numpy(), is_function.to_numpy(), backward)
    parts = known.with_columns(
        pl.Series("node", np.where(outermost == NO_PARENT, backward, outermost)),
        nodes["depth"].gather(backward),
    )
    outer_first = parts.sort("node", "depth", "forward").unique("node", keep="first", maintain_order=True)
    return _with_accumulations(rank_trace, nodes, outer_first.select("node", "forward"))


def _with_accumulations(rank_trace: RankTrace, nodes: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    is_accumulation = _named(nodes, rank_trace.strings == _ACCUMULATION)
    accumulations = (
        nodes.filter(is_accumulation).select(pl.col("node").cast(pl.Int64)).join(parts, on="node", how="anti")
    )
    before = parts.with_columns(
        pl.col("node").alias("before"), nodes["tree"].gather(parts["node"]).alias("tree_before")
    )
    behind = (
        accumulations.sort("node")
        .join_asof(before, on="node")
        .filter(nodes["tree"].gather(accumulations["node"].sort()).eq_missing(pl.col("tree_before")))
    )
    return pl.concat([parts, behind.select("node", "forward")]).sort("node")


def _named(nodes: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """Return whether the name of each node is among the chosen strings."""
    return nodes["name"].is_in(chosen.arg_true().cast(pl.UInt32).implode())
