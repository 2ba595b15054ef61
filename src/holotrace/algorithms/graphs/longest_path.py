"""Find longest paths through a directed acyclic graph.

Nodes are numbered from 0; edge i leads from `source[i]` to `target[i]`. The loops over edges are native code, because
the graph of a large trace has tens of millions of edges.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

Nodes: TypeAlias = npt.NDArray[np.uint32]
Int64Array: TypeAlias = npt.NDArray[np.int64]

NO_EDGE = -1


class Edges(NamedTuple):
    """The edges of a graph."""

    node_count: int
    source: Nodes
    target: Nodes


def has_cycle(edges: Edges) -> bool:
    """Whether the graph has a cycle."""
    return _native.has_cycle(*edges)


def binding_edges(edges: Edges, arrival: Int64Array) -> Int64Array:
    """Return, for each node, the incoming edge that arrives last (on a tie, the first such edge), or `NO_EDGE`."""
    return _native.binding_edges(*edges, arrival)


class MeasuredBinding(NamedTuple):
    """The edges that determine the measured times of the nodes.

    binding             for each node, the incoming edge that arrives last, as in `binding_edges`; an edge that arrives
                        after the measured time of its target is treated as arriving at that time
    delay               for each binding edge, the time from its arrival to the measured time of its target; 0 for all
                        other edges
    contradicted_count  number of edges whose arrival is later than the measured time of their target
    """

    binding: Int64Array
    delay: Int64Array
    contradicted_count: int


def measured_binding(edges: Edges, time: Int64Array, weight: Int64Array) -> MeasuredBinding:
    """Return the edges that determine the measured time of each node; `weight` is the minimum time of each edge."""
    return MeasuredBinding(*_native.measured_binding(edges.source, edges.target, time, weight))


def earliest_times(edges: Edges, weight: Int64Array) -> Int64Array:
    """Return the earliest time of each node, if all nodes without predecessors are at time 0.

    It is the length of the longest path to the node from a node without predecessors.

    Raises:
        ValueError: there is a cycle.
    """
    return _native.earliest_times(*edges, weight)


def slacks(edges: Edges, spare: Int64Array) -> Int64Array:
    """Return by how much each node could be delayed without delaying any node that has no successor.

    Args:
        edges: the graph.
        spare: for each edge, by how much its source could be delayed without delaying its target; at least 0.

    Raises:
        ValueError: there is a cycle.
    """
    return _native.slacks(*edges, spare)


class Contracted(NamedTuple):
    """The edges of a smaller graph with the same node numbers; each `weight` is the length of the path replaced."""

    source: Nodes
    target: Nodes
    weight: Int64Array


def contracted(edges: Edges, weight: Int64Array, is_kept: npt.NDArray[np.bool_]) -> Contracted:
    """Remove nodes that need not be kept, unless this adds edges; longest paths between kept nodes keep their lengths.

    A node with i incoming and o outgoing edges is removed only if i·o ≤ i + o; at most i·o edges replace it. Of
    parallel edges, only the longest is kept.

    Raises:
        ValueError: there is a cycle.
    """
    return Contracted(*_native.contract(*edges, weight, is_kept))


def path_to(last: int, edges: Edges, binding: Int64Array) -> Nodes:
    """Return the path of binding edges that ends at the node `last`, first edge first.

    Raises:
        ValueError: the binding edges form a cycle.
    """
    return _native.path_to(last, edges.source, edges.target, binding)


class Chains(NamedTuple):
    """The chains of binding edges that end at chosen nodes; each is traced back until it meets an earlier chain.

    edges         the edges of all chains, one chain after another; each chain is listed from its end to its beginning
    first         the edges of chain i are `edges[first[i]:first[i + 1]]`
    parent        for each chain, the earlier chain on which it begins; `NO_EDGE` if it begins at a node without a
                  binding edge
    origin        for each chain, the node where it begins
    chain_of_end  for each chosen node, the chain that contains it
    """

    edges: Nodes
    first: Int64Array
    parent: Int64Array
    origin: Nodes
    chain_of_end: Int64Array


def chains(edges: Edges, binding: Int64Array, ends: Nodes) -> Chains:
    """From each of `ends` in turn, follow the binding edges back until they end or meet an earlier chain."""
    return Chains(*_native.chains(edges.source, edges.target, binding, ends))
