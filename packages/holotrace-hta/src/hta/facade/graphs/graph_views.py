"""HTA's objects for the nodes and edges of a critical path's graph; each object is created when a script reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, binding_edges, earliest_times, path_to
from holotrace.enrich.critical_path.event_graph import EdgeType
from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.errors import InvalidOptionError
from holotrace.export.critical_path_overlay import ARROW_TYPES
from hta.facade.results.times import in_microseconds

NO_EVENT = -1
"""The event index of nodes and edges that belong to no event."""

_SETTABLE = "weight"


class CPEdgeType(Enum):
    """Types of edges, with HTA's names and values."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


@dataclass
class CPNode:
    """The start or end of an event, with `ts` in microseconds; `ev_idx` is -1 at the two ends of the window."""

    idx: int = -1
    ev_idx: int = NO_EVENT
    ts: float = 0
    is_start: bool = False
    is_blocking: bool = False


@dataclass(frozen=True)
class CPEdge:
    """The reason why node `end` comes at least `weight` microseconds after node `begin`."""

    begin: int
    end: int
    type: CPEdgeType
    weight: float = 0


class NodeList(Sequence[CPNode]):
    """The nodes of a graph; a node's position is its `idx`."""

    def __init__(self, path_graph: PathGraph, origin_ns: int) -> None:
        graph = path_graph.graph
        activities = graph.activities.select(pl.col("event_index").cast(pl.Int64), "is_waiting")
        self._nodes = activities.select(pl.all().gather(graph.nodes["activity"])).select(
            pl.col("event_index").fill_null(NO_EVENT),
            graph.nodes["time_ns"] - origin_ns,
            graph.nodes["is_start"],
            pl.col("is_waiting").fill_null(value=False),
        )

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, position: Any) -> Any:  # noqa: ANN401 -- a number gives a node, a slice a list of nodes
        chosen = range(len(self))[position]
        return self._node(chosen) if isinstance(chosen, int) else [self._node(index) for index in chosen]

    def _node(self, position: int) -> CPNode:
        event, time_ns, is_start, is_blocking = self._nodes.row(position)
        return CPNode(position, event, in_microseconds(time_ns), is_start, is_blocking)


class EdgeTable:
    """The edges as arrays, sorted by source and target.

    If several edges connect the same nodes, keeps only one: the edge on the critical path, or else the longest edge.

    row             row number in `graph.edges`
    source, target  nodes
    length_ns       weight plus delay; scripts may set it
    event           event to which the edge's time is attributed, or -1
    """

    def __init__(self, path_graph: PathGraph) -> None:
        graph = path_graph.graph
        edges = graph.edges.with_columns(_lengths(path_graph)).with_row_index("row")
        is_critical = edges["row"].is_in(path_graph.segments["edge"].implode()).alias("is_critical")
        by_pair = edges.with_columns(is_critical).sort(
            "source", "target", "is_critical", "length_ns", descending=[False, False, True, True], maintain_order=True
        )
        table = by_pair.unique(["source", "target"], keep="first", maintain_order=True)
        self.row = table["row"].to_numpy()
        self.source, self.target = table["source"].to_numpy(), table["target"].to_numpy()
        self.length_ns = table["length_ns"].to_numpy().copy()
        self.type, self.path_class = table["type"].to_numpy(), table["path_class"].to_numpy()
        events = graph.activities["event_index"].cast(pl.Int64).gather(table["activity"])
        self.event = events.fill_null(NO_EVENT).to_numpy()
        self._node_count = len(graph.nodes)
        self._keys = self._key(self.source.astype(np.int64), self.target.astype(np.int64))

    def __len__(self) -> int:
        return len(self.source)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield (source, target) for each edge."""
        return zip(self.source.tolist(), self.target.tolist(), strict=True)

    def row_of(self, begin: int, end: int) -> int | None:
        """Return the position of the edge between two nodes, or None if there is none."""
        row = int(np.searchsorted(self._keys, self._key(begin, end)))
        is_there = row < len(self) and (self.source[row], self.target[row]) == (begin, end)
        return row if is_there else None

    def edge(self, position: int) -> CPEdge:
        """Return an edge with its current weight."""
        kind = CPEdgeType(ARROW_TYPES[EdgeType(int(self.type[position]))])
        begin, end, length_ns = (int(values[position]) for values in (self.source, self.target, self.length_ns))
        return CPEdge(begin, end, kind, in_microseconds(length_ns))

    def longest_path(self) -> npt.NDArray[np.int64]:
        """Return the positions of the edges on the longest path from the first node to the last, in order."""
        edges = Edges(self._node_count, self.source, self.target)
        arrival = earliest_times(edges, self.length_ns)[self.source] + self.length_ns
        return path_to(self._node_count - 1, edges, binding_edges(edges, arrival)).astype(np.int64)

    def positions_of_rows(self, rows: pl.Series) -> npt.NDArray[np.int64]:
        """Return, for each given row of `graph.edges`, its position in this table."""
        position_of = np.zeros(int(self.row.max(initial=0)) + 1, np.int64)
        position_of[self.row] = np.arange(len(self))
        positions: npt.NDArray[np.int64] = position_of[rows.to_numpy()]
        return positions

    def _key(self, begin: Any, end: Any) -> Any:  # noqa: ANN401 -- one number or an array
        return begin * self._node_count + end


def _lengths(path_graph: PathGraph) -> pl.Series:
    """Return each edge's length: its weight plus delay, capped at the measured time between its nodes.

    If an edge is on the measured path, its length is that of its path segment instead. As a result, the measured path
    is the longest path and exactly as long as the window.
    """
    edges, times = path_graph.graph.edges, path_graph.graph.nodes["time_ns"]
    measured = times.gather(edges["target"]) - times.gather(edges["source"])
    shortest = pl.min_horizontal(pl.col("weight_ns") + pl.col("delay_ns"), measured.clip(lower_bound=0))
    lengths = edges.select(shortest.alias("length_ns")).to_series().to_numpy().copy()
    path = path_graph.segments
    lengths[path["edge"].to_numpy()] = (path["end_ns"] - path["start_ns"]).to_numpy()
    return pl.Series("length_ns", lengths)


class EdgeAttributes(MutableMapping[str, Any]):
    """The value of `graph.edges[u, v]`: a settable `weight` in microseconds, and the `CPEdge` as `object`."""

    def __init__(self, edges: EdgeTable, position: int) -> None:
        self._edges = edges
        self._position = position

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 -- as networkx
        if key not in {_SETTABLE, "object"}:
            raise KeyError(key)
        edge = self._edges.edge(self._position)
        return edge.weight if key == _SETTABLE else edge

    def __setitem__(self, key: str, value: float) -> None:
        if key != _SETTABLE or not value >= 0:
            message = f"cannot set {key}={value!r}: only an edge's weight can be set, and it must be at least 0 µs"
            raise InvalidOptionError(message)
        self._edges.length_ns[self._position] = round(1_000 * value)

    def __delitem__(self, key: str) -> None:
        message = f"{key!r} of an edge cannot be removed; set its weight to 0"
        raise InvalidOptionError(message)

    def __iter__(self) -> Iterator[str]:
        return iter((_SETTABLE, "object"))

    def __len__(self) -> int:
        return 2


class NodeView(Mapping[int, Mapping[str, Any]]):
    """The nodes, as in networkx: iterating yields node indices; nodes have no attributes."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self, data: bool | str = False) -> Iterable[Any]:  # noqa: FBT001, FBT002 -- as networkx
        """Return the nodes, or pairs of a node and its attributes if `data=True`."""
        return self if not data else [(node, {}) for node in self]

    def __getitem__(self, node: int) -> Mapping[str, Any]:
        if not 0 <= node < self._count:
            raise KeyError(node)
        return {}

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._count))

    def __len__(self) -> int:
        return self._count


class EdgeView(Mapping[tuple[int, int], EdgeAttributes]):
    """The edges: iterating yields (u, v); `edges[u, v]["weight"]` may be read and set."""

    def __init__(self, edges: EdgeTable) -> None:
        self._edges = edges

    def __call__(self, data: bool | str = False) -> Iterator[tuple[Any, ...]]:  # noqa: FBT001, FBT002 -- as networkx
        """Iterate over (u, v), with `data=True` over (u, v, attributes), with `data="weight"` over (u, v, weight)."""
        for row, pair in enumerate(self._edges.pairs()):
            attributes = EdgeAttributes(self._edges, row)
            yield (*pair, attributes[data] if isinstance(data, str) else attributes) if data else pair

    def __getitem__(self, pair: tuple[int, int]) -> EdgeAttributes:
        row = self._edges.row_of(*pair)
        if row is None:
            raise KeyError(pair)
        return EdgeAttributes(self._edges, row)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self._edges.pairs()

    def __len__(self) -> int:
        return len(self._edges)
