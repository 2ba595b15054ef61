"""Longest paths through a directed graph without cycles.

Nodes are numbered from 0; edge i leads from `source[i]` to `target[i]`. The passes visit every edge once, in native
code: a graph of a large trace has tens of millions.
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
    """Who comes before whom."""

    node_count: int
    source: Nodes
    target: Nodes


def has_cycle(edges: Edges) -> bool:
    """Say whether some node comes before itself."""
    return _native.has_cycle(*edges)


def binding_edges(edges: Edges, arrival: Int64Array) -> Int64Array:
    """Return the edge into each node with the greatest arrival, of equal ones the first; `NO_EDGE` where none is."""
    return _native.binding_edges(*edges, arrival)


def earliest_times(edges: Edges, weight: Int64Array) -> Int64Array:
    """Return when each node is reached: the longest way from any node without a predecessor, which counts as 0.

    Raises:
        ValueError: there is a cycle.
    """
    return _native.earliest_times(*edges, weight)


def slacks(edges: Edges, spare: Int64Array) -> Int64Array:
    """Return how much later each node could be without any node being later that nothing follows.

    Args:
        edges: the graph.
        spare: by how much later the source of each edge could be without its target being later; not below 0.

    Raises:
        ValueError: there is a cycle.
    """
    return _native.slacks(*edges, spare)


def way_to(last: int, edges: Edges, binding: Int64Array) -> Nodes:
    """Return the edges on the way to a node, the first one first, following the binding edge of each node.

    Raises:
        ValueError: the way runs in a circle.
    """
    return _native.way_to(last, edges.source, edges.target, binding)
