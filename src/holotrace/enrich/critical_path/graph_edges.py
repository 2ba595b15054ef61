"""The edges of an event graph while it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass

Int64Array: TypeAlias = npt.NDArray[np.int64]
NO_ACTIVITY = -1


class GraphEdges(NamedTuple):
    """Edges as arrays of equal length; see `holotrace.enrich.critical_path.event_graph.EventGraph`.

    The field `activity` is `NO_ACTIVITY` for gaps.
    """

    source: npt.NDArray[np.uint32]
    target: npt.NDArray[np.uint32]
    type: npt.NDArray[np.uint8]
    weight_ns: Int64Array
    path_class: npt.NDArray[np.uint8]
    activity: npt.NDArray[np.int32]

    def where(self, wanted: npt.NDArray[np.bool_]) -> GraphEdges:
        """Return the edges for which `wanted` is true."""
        return GraphEdges._make(column[wanted] for column in self)


def graph_edges(  # noqa: PLR0913 -- the columns of an edge
    source: npt.NDArray[np.integer],
    target: npt.NDArray[np.integer],
    edge_type: EdgeType,
    path_class: PathClass | npt.NDArray[np.uint8],
    *,
    activity: npt.NDArray[np.integer] | int = NO_ACTIVITY,
    weight_ns: Int64Array | int = 0,
) -> GraphEdges:
    """Return edges of one type; an argument that is a single value, not an array, applies to all edges."""
    count = len(target)
    return GraphEdges(
        _full(source, count, np.uint32),
        _full(target, count, np.uint32),
        _full(edge_type, count, np.uint8),
        _full(weight_ns, count, np.int64),
        _full(path_class, count, np.uint8),
        _full(activity, count, np.int32),
    )


def joined(parts: Sequence[GraphEdges]) -> GraphEdges:
    """Concatenate edges."""
    return GraphEdges._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def same_as_before(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Return whether each row equals the previous row in all columns."""
    same = np.ones(len(columns[0]), np.bool_)
    same[:1] = False
    for column in columns:
        same[1:] &= column[1:] == column[:-1]
    return same


def _full(value: npt.ArrayLike, count: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    given = np.asarray(value, kind)
    return given if given.ndim else np.full(count, given)
