"""A copy of a trace in which the events of the critical path are marked and connected by arrows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.critical_path.event_graph import EdgeType
from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.export.chrome_trace import KEPT, LEFT_OUT, MARKED, Edits, edited
from holotrace.export.json_columns import decimal_text, joined, track_texts
from holotrace.locations import Location, name_of
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

MARK = "critical"
"""Events on the path have this arg, with the value 1."""

ARROW_TYPES: Mapping[EdgeType, str] = MappingProxyType(
    {
        EdgeType.OPERATOR: "critical_path_operator",
        EdgeType.HOST_GAP: "critical_path_dependency",
        EdgeType.LAUNCH: "critical_path_kernel_launch_delay",
        EdgeType.STREAM_ORDER: "critical_path_kernel_kernel_delay",
        EdgeType.EVENT_WAIT: "critical_path_sync_dependency",
        EdgeType.HOST_SYNCHRONISATION: "critical_path_sync_dependency",
        EdgeType.HAND_OVER: "critical_path_dependency",
        EdgeType.WINDOW: "critical_path_dependency",
    }
)
"""Values of the arrows' arg `type`: the same five strings as in the copies that HTA writes."""

BETWEEN_ACTIVITIES = (
    EdgeType.HOST_GAP,
    EdgeType.LAUNCH,
    EdgeType.EVENT_WAIT,
    EdgeType.HOST_SYNCHRONISATION,
    EdgeType.HAND_OVER,
)
"""Types of path edges drawn as arrows by default; edges of other types lie within one event or join consecutive events
on a stream."""

_ALWAYS_SHOWN = (EventKind.USER_ANNOTATION, EventKind.PYTHON_FUNCTION, EventKind.INSTANT, EventKind.MEMORY)
_ROWS_AT_ONCE = 50_000


def overlaid_path_name(source: str, copy: int = 1) -> str:
    """Return the name of a copy: `overlaid_critical_path_<name>`, then `overlaid_critical_path_2_<name>` and so on."""
    name = name_of(source)
    plain = name.removesuffix(".zst").removesuffix(".zstd")
    number = "" if copy == 1 else f"{copy}_"
    return f"overlaid_critical_path_{number}{plain if plain == name else f'{plain}.gz'}"


def write_critical_path_overlay(  # noqa: PLR0913 -- what to show, and where to write
    rank_trace: RankTrace,
    path_graph: PathGraph,
    target: Location,
    *,
    path_edges: pl.Series | None = None,
    only_critical: bool = True,
    all_edges: bool = False,
    zero_launches: bool = False,
    arrows: Collection[EdgeType] = BETWEEN_ACTIVITIES,
    overwrite: bool = False,
) -> None:
    """Copy a rank's file, mark the events on the critical path, and draw the path's edges as arrows.

    A marked event has the arg `critical`. An arrow is a flow with the category `critical_path` and the args `weight` (µs),
    `critical` and `type`. Other events are dropped or copied byte by byte, so even large files need little memory.

    Args:
        rank_trace: the rank.
        path_graph: the result of `holotrace.critical_path_graph` for the rank.
        target: where to write; compressed if the name ends in `.gz`.
        path_edges: row numbers of the edges to draw as the path; by default, the edges of the path's segments.
        only_critical: drop the profiler's arrows, and all events that have a duration but are not on the path; keep
            annotations and Python functions in any case.
        all_edges: draw all edges of the graph, not only the edges of the path.
        zero_launches: with `all_edges`, also draw edges of length 0 from a launch to its work.
        arrows: the types of path edges to draw.
        overwrite: replace an existing file.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, or its folder is missing or cannot be written.
        UnreadableTraceError: the file can no longer be read, or has changed.
    """
    edges = _edges(path_graph, path_graph.segments["edge"] if path_edges is None else path_edges)
    is_critical = edges["is_critical"]
    if all_edges:
        is_zero_launch = (edges["type"] == EdgeType.LAUNCH) & (edges["length_ns"] == 0) & ~is_critical
        drawn = edges if zero_launches else edges.filter(~is_zero_launch)
    else:
        drawn = edges.filter(is_critical & edges["type"].is_in([int(edge_type) for edge_type in arrows]))
    fates = _fates(rank_trace, _events(path_graph, edges.filter(is_critical)), only_critical=only_critical)
    edits = Edits(fates, np.zeros(len(fates), np.uint32), [f'"{MARK}":1'])
    edited(rank_trace, target, edits, _flows(rank_trace, path_graph, drawn), overwrite=overwrite)


def _edges(path_graph: PathGraph, path_edges: pl.Series) -> pl.DataFrame:
    """Return the edges with their lengths (weight + delay) and the flag `is_critical` for edges on the path."""
    edges = path_graph.graph.edges
    is_critical = np.zeros(len(edges), np.bool_)
    is_critical[path_edges.to_numpy()] = True
    length = (pl.col("weight_ns") + pl.col("delay_ns")).alias("length_ns")
    return edges.select("source", "target", "type", length, pl.Series("is_critical", is_critical))


def _events(path_graph: PathGraph, edges: pl.DataFrame) -> pl.Series:
    """Return the `event_index` of every event at which one of these edges starts or ends."""
    nodes = pl.concat([edges["source"], edges["target"]]).unique()
    activities = path_graph.graph.nodes["activity"].gather(nodes).drop_nulls().unique()
    return path_graph.graph.activities["event_index"].gather(activities)


def _fates(rank_trace: RankTrace, critical: pl.Series, *, only_critical: bool) -> npt.NDArray[np.uint8]:
    """Return whether to keep, mark or drop each event."""
    fates = np.full(rank_trace.health.event_count, KEPT, np.uint8)
    if only_critical:
        everything = rank_trace.unselected
        events = everything.table("events", ["event_index", "kind"])
        fates[events.filter(~pl.col("kind").is_in(list(map(int, _ALWAYS_SHOWN))))["event_index"].to_numpy()] = LEFT_OUT
        fates[everything.table("flows", ["event_index"])["event_index"].to_numpy()] = LEFT_OUT
    fates[critical.to_numpy()] = MARKED
    return fates


def _flows(rank_trace: RankTrace, path_graph: PathGraph, edges: pl.DataFrame) -> Iterator[str]:
    """For each edge, yield the JSON text of two events: the start and the end of the edge's arrow."""
    places = _places(rank_trace, path_graph)
    ends = edges.filter(_has_event(places, edges["source"]) & _has_event(places, edges["target"]))
    for rows in ends.with_row_index("flow").iter_slices(_ROWS_AT_ONCE):
        leaving, arriving = (
            rows.hstack(places[rows[end].to_numpy()]).select(_flow_text(is_start=end == "source")).to_series().to_list()
            for end in ("source", "target")
        )
        for pair in zip(leaving, arriving, strict=True):
            yield from pair


def _has_event(places: pl.DataFrame, nodes: pl.Series) -> pl.Series:
    return places["pid"].is_not_null().gather(nodes)


def _places(rank_trace: RankTrace, path_graph: PathGraph) -> pl.DataFrame:
    """Return pid, tid and ts of each node as JSON text; null for the two nodes that mark the ends of the window.

    If a node is the end of an event, its ts is one nanosecond before that end, because a timeline attaches arrows only
    to events that are still running.
    """
    graph = path_graph.graph
    events = graph.activities.select("event_index", "start_ns", "end_ns").join(
        rank_trace.unselected.table("events", ["event_index", "track_id"]),
        on="event_index",
        how="left",
        maintain_order="left",
    )
    tracks = events.join(track_texts(rank_trace), on="track_id", how="left", maintain_order="left")
    rows = tracks.select("pid", "tid", "start_ns", "end_ns").select(pl.all().gather(graph.nodes["activity"]))
    last = pl.max_horizontal(pl.col("end_ns") - 1, "start_ns")
    time_ns = pl.when(graph.nodes["is_start"]).then("start_ns").otherwise(last) - rank_trace.header.base_time_ns
    return rows.select("pid", "tid", decimal_text(time_ns, 3).alias("ts"))


def _flow_text(*, is_start: bool) -> pl.Expr:
    begin = '{"ph":"s"' if is_start else '{"ph":"f","bp":"e"'
    kinds = pl.col("type").replace_strict({int(edge_type): text for edge_type, text in ARROW_TYPES.items()})
    return joined(
        f'{begin},"cat":"critical_path","name":"critical_path","id":',
        pl.col("flow"),
        ',"pid":',
        pl.col("pid"),
        ',"tid":',
        pl.col("tid"),
        ',"ts":',
        pl.col("ts"),
        ',"args":{"weight":',
        decimal_text(pl.col("length_ns"), 3),
        ',"critical":',
        pl.when("is_critical").then(pl.lit("true")).otherwise(pl.lit("false")),
        ',"type":"',
        kinds,
        '"}}',
    )
