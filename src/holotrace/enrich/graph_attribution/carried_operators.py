"""Suggests operators for the layers of a graph, from the layers of other recordings.

A recording may run the same layers with partly different kernels, for example if it contains a prefill and the graph is
a decode step. Such a recording has too few kernels in common with a replay of the graph to attribute the whole replay.
But kernels with equal names at the same position of a layer probably have the same operators. These operators are
hints, shown beside a kernel; no table contains them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.common_subsequence import NO_PARTNER, common_subsequence
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.graph_attribution.attribution import references_of
from holotrace.enrich.graph_attribution.inferred_layers import inferred_layers
from holotrace.enrich.graph_attribution.kernel_names import numbered_names
from holotrace.enrich.graph_attribution.references import Sequence, captured_sequences, eager_sequences
from holotrace.enrich.graph_attribution.repeated_layers import repeated_layers
from holotrace.enrich.graph_attribution.replays import replayed_work
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.nodes import recorded_nodes
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Layer = list[tuple[str, str]]
"""Name and operator of each kernel of a layer."""

_LEAST_SHARE = 0.5
"""A layer gets the operators of another layer only if the two have at least this share of their kernels in common."""

_MOST_SEQUENCES = 10


@derived
def carried_operators(rank_trace: RankTrace) -> dict[int, str]:
    """Return {event: suggested operator} for events in inferred layers."""
    inferred = inferred_layers(rank_trace)
    if inferred.is_empty():
        return {}
    work = of_events(replayed_work(rank_trace).select("event_index", "launch_index", "name"), inferred["event_index"])
    names = rank_trace.texts(work["name"])
    runs = inferred.select("event_index", "module").hstack([work["launch_index"], names.alias("name")])
    models = list(_recorded_layers(rank_trace))
    known: dict[tuple[str, ...], list[str | None]] = {}
    operators: dict[int, str] = {}
    for layer in runs.partition_by("launch_index", "module", maintain_order=True):
        kernels = tuple(layer["name"].to_list())
        if kernels not in known:
            known[kernels] = _suggested(list(kernels), models)
        pairs = zip(layer["event_index"].to_list(), known[kernels], strict=True)
        operators.update((event, operator) for event, operator in pairs if operator)
    return operators


def _recorded_layers(rank_trace: RankTrace) -> Iterator[_Layer]:
    """Yield each distinct layer of the recordings, as the name and the operator of each kernel."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    for reference in references_of(rank_trace):
        sequences = (*captured_sequences(reference), *eager_sequences(reference))[:_MOST_SEQUENCES]
        for sequence in sequences:
            for layer in _layers_of(reference, sequence):
                if tuple(layer) not in seen:
                    seen.add(tuple(layer))
                    yield layer


def _layers_of(reference: RankTrace, sequence: Sequence) -> Iterator[_Layer]:
    names = [name or "" for name in sequence.names]
    (numbers,) = numbered_names([*sequence.names], [])[:1]
    layers = repeated_layers(numbers, names)
    if layers is None:
        return
    operators = _operators(reference, sequence.nodes)
    borders = np.flatnonzero(np.diff(layers.layer, prepend=-2) != 0)
    for first, last in zip(borders, [*borders[1:], len(names)], strict=True):
        if layers.layer[first] >= 0:
            yield list(zip(names[first:last], operators[first:last], strict=True))


def _operators(reference: RankTrace, rows: _Rows) -> list[str]:
    nodes = recorded_nodes(reference)
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    innermost = itself_or_above(nodes["parent"].to_numpy(), is_operator, rows)
    texts = reference.texts(nodes["name"]).to_list()
    return [texts[row] if row != NO_PARENT else "" for row in innermost.tolist()]


def _suggested(kernels: list[str], models: list[_Layer]) -> list[str | None]:
    """Return, for each kernel, the operator that launched its counterparts in similar recorded layers, or None.

    The result is None if the kernel has no counterparts, or if different operators launched them.
    Layers are similar if they have at least `_LEAST_SHARE` of their kernels in common.
    """
    said: list[set[str]] = [set() for _ in kernels]
    for model in models:
        own, others = numbered_names([*kernels], [name for name, _ in model])
        partner = common_subsequence(own, others)
        pairs = np.flatnonzero(partner != NO_PARTNER)
        if len(pairs) >= _LEAST_SHARE * max(len(kernels), len(model)):
            for place in pairs.tolist():
                said[place].add(model[partner[place]][1])
    return [min(operators) or None if len(operators) == 1 else None for operators in said]
