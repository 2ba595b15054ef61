"""Explains what launched a kernel of a graph when the graph was captured."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.graph_attribution.carried_operators import carried_operators
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.graph_attribution.inferred_layers import inferred_layers
from holotrace.enrich.graph_attribution.references import KERNEL_NAME, LAYER
from holotrace.enrich.host.host_names import MODULE_PREFIX, NodeClass
from holotrace.enrich.host.operator_stacks import operator_stacks
from holotrace.store.trace import RankTrace

_INPUTS = {
    "input_dims": "captured_input_dims",
    "input_types": "captured_input_types",
    "concrete_inputs": "captured_concrete_inputs",
}


def explained_kernel(rank_trace: RankTrace, event_index: int) -> Iterator[tuple[str, str]]:
    """Yield the operators, modules, inputs and Python frames of a kernel that a graph replays, as (name, text).

    Yield nothing for other events. `attributed_by` is the kind of attribution; see
    `holotrace.enrich.graph_attribution.references`. If the operator of the kernel is unknown, `inferred_layer` is the
    layer inferred from the order of the kernels, and `inferred_operator` is the operator of the matching kernel in a
    recording of a similar layer.
    """
    owner = _owner(rank_trace, event_index)
    if owner is None:
        return
    graft, how = owner
    yield "attributed_by", how if how is not None and how != LAYER else "unknown"
    for layer, count, position in _layer(rank_trace, event_index):
        yield "inferred_layer", f"{layer} of {count}, kernel {position}"
    if how == LAYER and event_index in carried_operators(rank_trace):
        yield "inferred_operator", carried_operators(rank_trace)[event_index]
    if graft == NO_PARENT or how == LAYER:
        return
    nodes = grafts(rank_trace).nodes[list(_chain(rank_trace, graft))]
    if how == KERNEL_NAME:
        nodes = nodes.head(1)
    names = rank_trace.texts(nodes["name"]).str.strip_prefix(MODULE_PREFIX)
    for label, node_class in (("captured_operators", NodeClass.OPERATOR), ("captured_modules", NodeClass.MODULE)):
        of_class = names.filter(nodes["node_class"] == int(node_class)).to_list()
        if of_class:
            yield label, " > ".join(reversed(of_class))
    yield from _details(
        rank_trace, nodes.filter(pl.col("node_class") == int(NodeClass.OPERATOR)).head(1)["event_index"]
    )


def _layer(rank_trace: RankTrace, event_index: int) -> list[tuple[int, int, int]]:
    rows = inferred_layers(rank_trace).filter(pl.col("event_index") == event_index)
    return rows.select("layer", "layer_count", "position").rows()


def _owner(rank_trace: RankTrace, event_index: int) -> tuple[int, str | None] | None:
    """Return the row of a kernel's innermost node and the kind of attribution; None for work outside graphs."""
    if not may_graft(rank_trace):
        return None
    rows = grafts(rank_trace).owners.filter(pl.col("event_index") == event_index)
    return rows.select("graft", "how").row(0) if rows.height else None


def _chain(rank_trace: RankTrace, graft: int) -> Iterator[int]:
    above = grafts(rank_trace).nodes["above"]
    while graft != NO_PARENT:
        yield graft
        graft = above[graft]


def _details(rank_trace: RankTrace, operator: pl.Series) -> Iterator[tuple[str, str]]:
    inputs = of_events(described_events(rank_trace, "operator_inputs", ["event_index", *_INPUTS]), operator)
    for column, label in _INPUTS.items():
        for text in rank_trace.texts(inputs[column]).drop_nulls():
            yield label, text
    stacks = operator_stacks(rank_trace)
    for stack in of_events(stacks.stack_of, operator)["stack"].drop_nulls():
        yield "captured_call_stack", stacks.texts[stack]
