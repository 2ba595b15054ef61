"""The critical path with HTA's interface: a graph object with HTA's attributes and methods.

Wraps the graph from `holotrace.critical_path_graph`. Objects for nodes and edges are created only when a script reads
them, because graphs may have millions of nodes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.export.critical_path_overlay import (
    ARROW_TYPES,
    BETWEEN_ACTIVITIES,
    overlaid_path_name,
    write_critical_path_overlay,
)
from holotrace.export.saved_path_graph import load_path_graph, save_path_graph
from holotrace.locations import Location, expect_writable_folder, located
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text
from hta.configs.env_options import is_switched_on
from hta.facade.graphs.graph_views import NO_EVENT, CPEdge, CPEdgeType, CPNode, EdgeTable, EdgeView, NodeList, NodeView
from hta.facade.imports.modules_later import nx
from hta.facade.trace.edited_rank import expect_events_of_file
from hta.facade.trace.names import shorten_name
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_frame import trace_frame
from hta.facade.trace.trace_view import TraceView

logger = logging.getLogger("holotrace")

SHOW_LAUNCHES_VARIABLE = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
"""Environment variable, read at each call; if it is 1, trace copies with all edges include launch edges of length 0."""

STRICT_VARIABLE = "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"
"""Environment variable, read at each call; if it is 1, the analysis fails when an edge ends before it starts."""

_TYPES = {int(edge_type): text for edge_type, text in ARROW_TYPES.items()}
_OF_NETWORKX = ("_adj", "_node", "_pred", "_succ")
"""Private attributes that networkx functions read from graphs."""

_COLUMNS = ("s_name", "cat", "pid", "tid", "stream", "index")


class BoundType(Enum):
    """The activity or wait that bounds a part of the path: six values of HTA, and four that it lacks."""

    GPU_KERNEL_KERNEL_OVERHEAD = "gpu_kernel_kernel_overhead"
    GPU_KERNEL_LAUNCH_OVERHEAD = "gpu_kernel_launch_overhead"
    DATA_LOADING = "data_loading"
    CPU_BOUND = "cpu_bound"
    GPU_COMPUTE_BOUND = "gpu_compute_bound"
    GPU_COMMUNICATION_BOUND = "gpu_communication_bound"
    GPU_COPY_BOUND = "gpu_copy_bound"
    HOST_GAP = "host_gap"
    SYNCHRONIZATION_WAIT = "synchronization_wait"
    UNKNOWN = "unknown"


_BOUND_BY: Mapping[int, str] = {
    PathClass.CPU_OPERATOR: BoundType.CPU_BOUND.value,
    PathClass.HOST_GAP: BoundType.HOST_GAP.value,
    PathClass.DATA_LOADING: BoundType.DATA_LOADING.value,
    PathClass.LAUNCH_DELAY: BoundType.GPU_KERNEL_LAUNCH_OVERHEAD.value,
    PathClass.KERNEL_KERNEL_DELAY: BoundType.GPU_KERNEL_KERNEL_OVERHEAD.value,
    PathClass.COMPUTATION: BoundType.GPU_COMPUTE_BOUND.value,
    PathClass.COMMUNICATION: BoundType.GPU_COMMUNICATION_BOUND.value,
    PathClass.COPY: BoundType.GPU_COPY_BOUND.value,
    PathClass.SYNCHRONISATION_WAIT: BoundType.SYNCHRONIZATION_WAIT.value,
    PathClass.UNKNOWN: BoundType.UNKNOWN.value,
}


class CPGraph:
    """The graph of a rank's events within a window, and its critical path.

    networkx functions accept this object like a `networkx.DiGraph`; `to_networkx()` creates a real `DiGraph`. Nodes are
    integers in order of time; the first node is the start of the window, the last node its end. `edges`, `nodes`,
    `number_of_nodes()` and `number_of_edges()` work as in networkx. If a script changes weights of `edges`,
    `critical_path()` recomputes the path.

    rank, data_load_events   the arguments of `critical_path_analysis`
    t, t_full                the whole trace, `analyzer.t`
    path_graph               the graph with its measured weights, for use with functions of `holotrace`
    """

    def __init__(
        self, view: TraceView, rank: int, path_graph: PathGraph, data_load_events: Sequence[str] | None = None
    ) -> None:
        self.rank = rank
        self.t = self.t_full = view
        self.data_load_events = None if data_load_events is None else list(data_load_events)
        self.path_graph = path_graph
        self._rank_trace: RankTrace = view.trace.select([rank]).ranks[rank]
        self._edges = EdgeTable(path_graph)
        self._measured_ns = self._edges.length_ns.copy()
        self._on_path = self._edges.positions_of_rows(path_graph.segments["edge"])
        self._drawn: tuple[nx.DiGraph, npt.NDArray[np.int64]] | None = None

    def __repr__(self) -> str:
        """Return a string with the rank, the window, and the numbers of nodes and edges."""
        return (
            f"CPGraph(rank={self.rank}, window={self.path_graph.window!r}, nodes={len(self)}, edges={len(self._edges)})"
        )

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.path_graph.graph.nodes)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the nodes."""
        return iter(range(len(self)))

    def __contains__(self, node: object) -> bool:
        """Return whether the graph has this node."""
        return isinstance(node, (int, np.integer)) and 0 <= int(node) < len(self)

    def __getitem__(self, node: int) -> Mapping[int, Mapping[str, object]]:
        """Return {target node: attributes} for the edges that leave a node."""
        targets: Mapping[int, Mapping[str, object]] = self._as_networkx()[node]
        return targets

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as networkx
        """Return any other attribute of `networkx.DiGraph`, such as `in_edges`, `out_degree` or `successors`.

        With these attributes, networkx functions accept the graph. The functions receive a copy of the graph, so their
        changes are lost; to change weights, use `edges`.
        """
        is_inner = name.startswith("_") and not name.startswith("__networkx") and name not in _OF_NETWORKX
        drawn = None if is_inner or "_drawn" not in self.__dict__ else self._as_networkx()
        if drawn is None or not hasattr(drawn, name):
            message = f"'CPGraph' object has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(drawn, name)

    @property
    def nodes(self) -> NodeView:
        """The nodes."""
        return NodeView(len(self))

    @property
    def edges(self) -> EdgeView:
        """The edges, at most one between two nodes: the one on the critical path or, if there is none, the longest."""
        return EdgeView(self._edges)

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self)

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return len(self._edges)

    @cached_property
    def node_list(self) -> NodeList:
        """The nodes as `CPNode` objects."""
        return NodeList(self.path_graph, self.t.frame_origin_ns(self.rank))

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """The table that maps the ids in `cat` and `name` of the frames to text."""
        return self.t.symbol_table

    @cached_property
    def trace_df(self) -> pd.DataFrame:
        """The frame of the events that have nodes."""
        events = self.path_graph.graph.activities["event_index"].sort().to_list()
        return self.full_trace_df.loc[events].copy()

    @property
    def full_trace_df(self) -> pd.DataFrame:
        """The frame of all events of the rank."""
        return self.t.get_trace(self.rank)

    @property
    def critical_path_nodes(self) -> list[int]:
        """The nodes of the path in order, from the start of the window to its end."""
        return [0, *self._edges.target[self._on_path].tolist()]

    @property
    def critical_path_events_set(self) -> set[int]:
        """The events whose starts or ends are nodes of the path."""
        activities = self.path_graph.graph.nodes["activity"].gather(self.critical_path_nodes).drop_nulls()
        return set(self.path_graph.graph.activities["event_index"].gather(activities).to_list())

    @property
    def critical_path_edges_set(self) -> set[CPEdge]:
        """The edges of the path."""
        return set(map(self._edges.edge, self._on_path.tolist()))

    @cached_property
    def event_to_start_node_map(self) -> dict[int, int]:
        """{event: its start node}."""
        return self._nodes_of_events(is_start=True)

    @cached_property
    def event_to_end_node_map(self) -> dict[int, int]:
        """{event: its end node}."""
        return self._nodes_of_events(is_start=False)

    @cached_property
    def edge_to_event_map(self) -> dict[tuple[int, int], int]:
        """{(u, v): the event to which the time of the edge from u to v is attributed}."""
        events = zip(self._edges.pairs(), self._edges.event.tolist(), strict=True)
        return {pair: event for pair, event in events if event != NO_EVENT}

    def critical_path(self) -> bool:
        """Recompute the path with the current weights.

        Returns:
            False if an edge ends before it starts and the environment variable
            CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS is 1; otherwise True.
        """
        edges = self._edges
        if (edges.length_ns != self._measured_ns).any():
            self._on_path = edges.longest_path()
        else:
            self._on_path = edges.positions_of_rows(self.path_graph.segments["edge"])
        return not (is_switched_on(STRICT_VARIABLE) and self.path_graph.graph.contradicted_count)

    def get_critical_path_breakdown(self) -> pd.DataFrame:
        """Return the path's edges in order, each with the event to which its time is attributed.

        Returns:
            event_idx (NaN for none), duration (µs), type, s_name (shortened), cat, pid, tid, stream, index,
            bound_by. The durations add up to the length of the window.
        """
        edges, on_path = self._edges, self._on_path
        events = pd.Series(edges.event[on_path]).replace(NO_EVENT, np.nan).astype(float)
        lengths = edges.length_ns[on_path]
        frame = self._frame(pl.Series(edges.event[on_path]).unique())
        texts = self.symbol_table.get_sym_table()
        frame["s_name"] = [shorten_name(texts[number]) for number in frame["name"]]
        columns = {
            "event_idx": events.to_numpy(),
            "duration": lengths / 1_000 if (lengths % 1_000).any() else lengths // 1_000,
            "type": [_TYPES[edge_type] for edge_type in edges.type[on_path].tolist()],
        }
        described = frame[list(_COLUMNS)].reindex(events).reset_index(drop=True)
        bound_by = [_BOUND_BY[path_class] for path_class in edges.path_class[on_path].tolist()]
        return pd.DataFrame(columns).join(described).assign(bound_by=bound_by)

    def summary(self) -> pd.Series:
        """Print the length of the path, and return what percentage of it each activity or wait takes.

        Returns:
            The percentage of the path's length for each value of `bound_by`; the percentages add up to 100.
        """
        edges, on_path = self._edges, self._on_path
        lengths = edges.length_ns[on_path]
        total = int(lengths.sum())
        print(f"Critical path of {self.path_graph.window}: {duration_text(total)}; percentage by activity or wait:")  # noqa: T201 -- as HTA
        bounds = pd.Series(
            [_BOUND_BY[path_class] for path_class in edges.path_class[on_path].tolist()], name="bound_by"
        )
        sums = pd.Series(lengths, name="duration").groupby(bounds).sum()
        return sums[sums > 0] / max(1, total) * 100

    def show_critical_path(self) -> None:
        """Log each node of the path with the name of its event."""
        for number in self.critical_path_nodes:
            node = self.node_list[number]
            logger.info("Critical %s, ev_id = %s ev_name = %s", node, node.ev_idx, self._names.get(node.ev_idx))

    def get_nodes_for_event(self, ev_id: int) -> tuple[CPNode | None, CPNode | None]:
        """Return the start node and the end node of an event, each None if the event has no such node."""
        nodes = (self.event_to_start_node_map.get(ev_id), self.event_to_end_node_map.get(ev_id))
        start, end = (None if number is None else self.node_list[number] for number in nodes)
        return start, end

    def get_events_for_edge(self, edge: CPEdge) -> tuple[int, int]:
        """Return the events of an edge's two nodes; -1 for the ends of the window."""
        return self.node_list[edge.begin].ev_idx, self.node_list[edge.end].ev_idx

    def get_event_attribution_for_edge(self, edge: CPEdge) -> int | None:
        """Return the event to which an edge's time is attributed, or None if there is none."""
        row = self._edges.row_of(edge.begin, edge.end)
        event = NO_EVENT if row is None else int(self._edges.event[row])
        return None if event == NO_EVENT else event

    def get_edges_attributed_to_event(self, ev_idx: int) -> list[CPEdge]:
        """Return the edges whose time is attributed to an event."""
        return [self._edges.edge(row) for row in np.flatnonzero(self._edges.event == ev_idx).tolist()]

    def save(self, out_dir: str, overwrite: bool = True) -> str:  # noqa: FBT001, FBT002 -- like the other methods
        """Write the graph with its measured weights to `<out_dir>.zip`, for `restore_cpgraph`; return that path.

        Replaces an existing file, unless `overwrite` is false.

        Raises:
            InvalidOptionError: the file exists and `overwrite` is false, or its folder is not writable.
        """
        target = located(f"{out_dir}.zip")
        target.parent.mkdir(parents=True, exist_ok=True)
        save_path_graph(self._rank_trace, self.path_graph, target, overwrite=overwrite)
        return str(target)

    def to_networkx(self) -> nx.DiGraph:
        """Return a networkx graph whose edges have the current `weight` (µs) and the `CPEdge` as `object`.

        Raises:
            MissingDataError: networkx is not installed.
        """
        try:
            import networkx as nx  # noqa: PLC0415 -- an optional library
        except ImportError as error:
            message = "to_networkx needs the package networkx, which is not installed: pip install networkx"
            raise MissingDataError(message) from error
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from((begin, end, dict(attributes)) for begin, end, attributes in self.edges(data=True))
        return graph

    def _as_networkx(self) -> nx.DiGraph:
        """Return a cached result of `to_networkx()`, rebuilt when weights have changed."""
        lengths = self._edges.length_ns
        if self._drawn is None or (self._drawn[1] != lengths).any():
            self._drawn = (self.to_networkx(), lengths.copy())
        return self._drawn[0]

    def path_edges(self) -> pl.Series:
        """Return the row numbers in `path_graph.graph.edges` of the edges on the path."""
        return pl.Series(self._edges.row[self._on_path])

    def _nodes_of_events(self, *, is_start: bool) -> dict[int, int]:
        graph = self.path_graph.graph
        nodes = graph.nodes.with_row_index("node").filter(pl.col("is_start") == is_start).drop_nulls("activity")
        return dict(zip(graph.activities["event_index"].gather(nodes["activity"]), nodes["node"], strict=True))

    @cached_property
    def _names(self) -> dict[int, str]:
        path_graph = self.path_graph
        named = path_graph.graph.activities.join(path_graph.names, on="name", how="left", maintain_order="left")
        return dict(zip(named["event_index"], named["text"], strict=True))

    def _frame(self, event_index: pl.Series) -> pd.DataFrame:
        chosen = self._rank_trace.where(partial(_is_listed, listed=event_index))
        return trace_frame(chosen, self.symbol_table, self.t.frame_origin_ns(self.rank))


def critical_path_of(
    view: TraceView,
    rank: int,
    annotation: str,
    instance_id: int | tuple[int, int] | None,
    data_load_events: Sequence[str] | None,
) -> tuple[CPGraph, bool]:
    """Return a rank's graph with its critical path, and whether the analysis succeeded; see `TraceAnalysis`."""
    rank_trace = view.trace.select([rank]).ranks[rank]
    path_graph = critical_path_graph(
        rank_trace,
        annotation=annotation,
        instance=(0 if instance_id is None else instance_id) if annotation else None,
        data_loading=DATA_LOADING if data_load_events is None else _patterns(data_load_events),
    )
    graph = CPGraph(view, rank, path_graph, data_load_events)
    return graph, graph.critical_path()


def overlaid_critical_path(  # noqa: PLR0913 -- HTA's arguments
    view: TraceView,
    rank: int,
    graph: CPGraph,
    output_dir: str,
    *,
    only_show_critical_events: bool,
    show_all_edges: bool,
    edge_types_to_viz: set[CPEdgeType] | None = None,
) -> str:
    """Write a copy of a rank's file that marks the critical path; return the copy's path. See `TraceAnalysis`."""
    if graph.rank != rank:
        message = f"the critical path belongs to rank {graph.rank} and cannot be drawn into the trace of rank {rank}"
        raise InvalidOptionError(message)
    rank_trace = view.trace.select([rank]).ranks[rank]
    expect_events_of_file(rank_trace)
    target = _path_within(located(output_dir), overlaid_path_name(rank_trace.source))
    write_critical_path_overlay(
        rank_trace,
        graph.path_graph,
        target,
        path_edges=graph.path_edges(),
        only_critical=only_show_critical_events,
        all_edges=show_all_edges and not only_show_critical_events,
        zero_launches=is_switched_on(SHOW_LAUNCHES_VARIABLE),
        arrows=BETWEEN_ACTIVITIES if edge_types_to_viz is None else _edge_types(edge_types_to_viz),
        overwrite=True,
    )
    return str(target)


def restore_cpgraph(zip_filename: str, t_full: TraceView, rank: int) -> CPGraph:
    """Read a graph that `CPGraph.save` wrote.

    Args:
        zip_filename: the file.
        t_full: `analyzer.t` of the graph's trace.
        rank: the graph's rank.

    Raises:
        NotASavedPathError: the file is not a saved graph, is damaged, or has another format version.
        InvalidOptionError: the graph belongs to another trace.
        UnknownRankError: the rank does not exist.
        OSError: the file cannot be opened.
    """
    rank_trace = t_full.trace.select([rank]).ranks[rank]
    return CPGraph(t_full, rank, load_path_graph(located(zip_filename), rank_trace))


def _patterns(texts: Sequence[str]) -> tuple[str, ...]:
    """Return patterns that match these strings literally, because HTA's names for data loading contain brackets."""
    return tuple(re.escape(text) for text in texts)


def _is_listed(rank_trace: RankTrace, *, listed: pl.Series) -> npt.NDArray[np.bool_]:
    events = rank_trace.table("events", ["event_index"])["event_index"]
    return events.is_in(listed.implode()).to_numpy()


def _edge_types(wanted: set[CPEdgeType]) -> list[EdgeType]:
    return [edge_type for edge_type in EdgeType if CPEdgeType(ARROW_TYPES[edge_type]) in wanted]


def _path_within(folder: Location, name: str) -> Location:
    """Return the path of the file `name` in `folder`; create the folder if it is missing."""
    if folder.exists():
        expect_writable_folder(folder)
    else:
        folder.mkdir(parents=True)
    return folder / name
