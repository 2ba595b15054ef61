"""Repeats, for each replay of a graph, the operators and modules that launched its kernels during the capture.

In the host trees, the replayed operators and modules start at the launch of the graph and take no host time, because a
replay does not call them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.enrich.events.event_rows import of_events, rows_of_events
from holotrace.enrich.graph_attribution.attribution import Match, references_of, replays
from holotrace.enrich.graph_attribution.inferred_layers import inferred_layers
from holotrace.enrich.graph_attribution.references import KERNEL_NAME, LAYER, NODE_ID
from holotrace.enrich.graph_attribution.replays import replayed_work
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.nodes import recorded_nodes, recorded_runtime_owner
from holotrace.store.captures import annotated_modules, replays_graphs
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_GRAFTED = (NodeClass.OPERATOR, NodeClass.MODULE, NodeClass.LIGHTNING_MODULE, NodeClass.OPTIMIZER)
"""Annotations and steps are not repeated, because they mark times in the recording, not in the replay."""

GENERATED_KERNEL = r"^triton_[a-z]{2,4}_fused"
"""For each kernel that Inductor generates, an operator with the same name is recorded: `triton_poi_fused_add_0`."""

_NODES = {
    "event_index": pl.UInt32,
    "launch_index": pl.UInt32,
    "above": pl.Int64,
    "node_class": pl.UInt8,
    "name": pl.UInt32,
    "is_counted": pl.Boolean,
    "reference": pl.Int64,
    "reference_index": pl.UInt32,
    "start_ns": pl.Int64,
    "track_id": pl.UInt32,
}
_OWNERS = {"event_index": pl.UInt32, "graft": pl.Int64, "how": pl.String}


class Grafts(NamedTuple):
    """The operators and modules of replayed graphs, and their work.

    nodes   operators and modules, outer ones first:

        event_index      uint32  a new number, which no event in the file has
        launch_index     uint32  the call that launched the graph
        above            int64   row of the enclosing node in this table; -1 if no node encloses it, only the launch
        node_class       uint8   NodeClass
        name             uint32  string id
        is_counted       bool    see `host_nodes`
        reference        int64   number of the recording (in `references_of`) that names the node; null if no recording does
        reference_index  uint32  the node's event in that recording; null if `reference` is null
        start_ns         int64   start of the launch
        track_id         uint32  thread of the launch

    owners  kernels, copies and memsets that graphs replay, in the order of `replayed_work`:

        event_index      uint32
        graft            int64   row in `nodes` of the innermost node; -1 if unknown
        how              str     how the node was found, see `references`; null if unknown
    """

    nodes: pl.DataFrame
    owners: pl.DataFrame


class _Template(NamedTuple):
    """The nodes that one replay adds.

    rows   row of each node in `recorded_nodes` of the recording
    above  for each node, the index in `rows` of the enclosing node; -1 if there is none
    owner  for each kernel, copy or memset, the index in `rows` of its node; -1 if there is none
    """

    rows: _Rows
    above: _Rows
    owner: _Rows


@derived
def grafts(rank_trace: RankTrace) -> Grafts:
    """Return the operators and modules of all graph replays; empty if the rank replays no graph."""
    if not may_graft(rank_trace) or replayed_work(rank_trace).is_empty():
        return Grafts(pl.DataFrame(schema=_NODES), pl.DataFrame(schema=_OWNERS))
    work = replayed_work(rank_trace)
    explained = _explained(rank_trace, work)
    is_left = explained.owner == NO_PARENT
    named = _named_by_themselves(rank_trace, work.filter(is_left))
    owner, how = explained.owner.copy(), explained.how.clone()
    owner[is_left] = np.where(named.owner == NO_PARENT, NO_PARENT, named.owner + explained.nodes.height)
    how[np.flatnonzero(is_left)] = named.how
    above = pl.when(pl.col("above") != NO_PARENT).then(pl.col("above") + explained.nodes.height).otherwise(NO_PARENT)
    added = named.nodes.with_columns(above=above)
    nodes = _numbered(rank_trace, pl.concat([explained.nodes, added], how="diagonal_relaxed"))
    return Grafts(nodes, work.select("event_index", graft=pl.Series(owner), how=how))


class _Part(NamedTuple):
    """Nodes and, for each kernel or copy, the row of its node (-1 if unknown) and the kind of attribution."""

    nodes: pl.DataFrame
    owner: _Rows
    how: pl.Series


def _numbered(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `Grafts.nodes`; the event numbers continue after the last event number in the file."""
    used = rank_trace.unselected.table("events", ["event_index"])["event_index"].to_numpy()
    first = int(used.max(initial=0)) + 1
    numbers = pl.int_range(first, first + nodes.height, dtype=pl.UInt32, eager=True)
    return nodes.with_columns(event_index=numbers).select(pl.col(name).cast(kind) for name, kind in _NODES.items())


def _explained(rank_trace: RankTrace, work: pl.DataFrame) -> _Part:
    """Return the nodes of all replays for which a matching recording was found."""
    templates, parts = _Templates(rank_trace), [pl.DataFrame(schema=_NODES)]
    owner = np.full(work.height, NO_PARENT, np.int64)
    how: list[str | None] = [None] * work.height
    count = 0
    for replay in replays(rank_trace):
        if replay.match is None:
            continue
        template = templates.of(replay.match, work["launch_index"][replay.first])
        own = np.where(template.owner == NO_PARENT, NO_PARENT, template.owner + count)
        owner[replay.first : replay.last] = own
        how[replay.first : replay.last] = [replay.match.how if row != NO_PARENT else None for row in own.tolist()]
        parts.append(
            _placed(
                templates.nodes(replay.match.reference, template), template, count, work.row(replay.first, named=True)
            )
        )
        count += len(template.rows)
    return _Part(pl.concat(parts, how="diagonal_relaxed"), owner, pl.Series(how, dtype=pl.String))


def _placed(nodes: pl.DataFrame, template: _Template, before: int, launch: dict[str, Any]) -> pl.DataFrame:
    """Return the nodes of one replay; `before` is the total number of nodes of all earlier replays."""
    return nodes.with_columns(
        pl.Series("above", np.where(template.above == NO_PARENT, NO_PARENT, template.above + before)),
        launch_index=pl.lit(launch["launch_index"], pl.UInt32),
        start_ns=pl.lit(launch["launch_start_ns"], pl.Int64),
        track_id=pl.lit(launch["track_id"], pl.UInt32),
    )


@derived
def may_graft(rank_trace: RankTrace) -> bool:
    """Return whether the rank may replay graphs; if it does not, the attribution of replayed work can be skipped."""
    return replays_graphs(rank_trace.strings)


def _named_by_themselves(rank_trace: RankTrace, work: pl.DataFrame) -> _Part:
    """Return nodes for replayed work that `_explained` leaves without a node.

    A kernel's node in the graph may have an annotation that names the module. If torch.compile generated a kernel, the
    kernel's name shows its operator. Otherwise, the order of the kernels may show to which layer a kernel belongs.
    """
    modules = of_events(annotated_modules(rank_trace), work["event_index"])["module"]
    layers = _layers(rank_trace, work, modules)
    is_compiled = rank_trace.texts(work["name"]).str.contains(GENERATED_KERNEL) & modules.is_null()
    described = work.select("launch_index", "launch_start_ns", "track_id").with_columns(
        work["name"].zip_with(is_compiled, _ids_of_texts(rank_trace, modules)).alias("name"),
        node_class=pl.when(is_compiled).then(int(NodeClass.OPERATOR)).otherwise(int(NodeClass.MODULE)).cast(pl.UInt8),
        how=pl.when(is_compiled).then(pl.lit(KERNEL_NAME)).when(modules.is_not_null()).then(pl.lit(NODE_ID)),
        call=pl.when(is_compiled).then(pl.int_range(pl.len())).otherwise(-1),
        above=pl.Series(layers.owner),
    )
    nodes, rows = _distinct_nodes(described)
    is_named = rows != NO_PARENT
    owner = np.where(is_named, rows + layers.nodes.height, layers.owner)
    how = described["how"].zip_with(pl.Series(is_named), layers.how)
    return _Part(pl.concat([layers.nodes, nodes]), owner, how)


def _layers(rank_trace: RankTrace, work: pl.DataFrame, modules: pl.Series) -> _Part:
    """Make a node for each inferred layer of each launch; assign the work whose module is unknown to these nodes."""
    inferred = of_events(inferred_layers(rank_trace).select("event_index", "module"), work["event_index"])["module"]
    names = _ids_of_texts(rank_trace, inferred.zip_with(modules.is_null(), modules.clear(len(modules))))
    described = work.select("launch_index", "launch_start_ns", "track_id").with_columns(
        names.alias("name"),
        node_class=pl.lit(int(NodeClass.MODULE), pl.UInt8),
        how=pl.when(names.is_not_null()).then(pl.lit(LAYER)),
        call=pl.lit(-1, pl.Int64),
        above=pl.lit(NO_PARENT, pl.Int64),
    )
    nodes, rows = _distinct_nodes(described)
    return _Part(nodes, rows, described["how"])


def _distinct_nodes(described: pl.DataFrame) -> tuple[pl.DataFrame, _Rows]:
    """Return the distinct nodes of each launch; also return the row of each kernel's or copy's node, or -1 if it has none."""
    keys = ["launch_index", "node_class", "name", "call"]
    nodes = described.drop_nulls("how").unique(keys, keep="first", maintain_order=True)
    numbered = nodes.select(*keys, row=pl.int_range(pl.len(), dtype=pl.Int64))
    rows = described.join(numbered, on=keys, how="left", maintain_order="left")["row"].fill_null(NO_PARENT)
    listed = nodes.select(
        "launch_index",
        "node_class",
        "name",
        "track_id",
        "above",
        is_counted=pl.col("node_class") == int(NodeClass.OPERATOR),
        start_ns="launch_start_ns",
        reference=pl.lit(None, pl.Int64),
        reference_index=pl.lit(None, pl.UInt32),
    )
    return listed, rows.to_numpy()


def _ids_of_texts(rank_trace: RankTrace, texts: pl.Series) -> pl.Series:
    own = rank_trace.strings.to_frame("text").with_row_index("id").unique("text", keep="first", maintain_order=True)
    return texts.alias("text").to_frame().join(own, on="text", how="left", maintain_order="left")["id"].cast(pl.UInt32)


class _Templates:
    """Makes the nodes that each replay adds; if several replays are equal, makes their nodes only once."""

    def __init__(self, rank_trace: RankTrace) -> None:
        self._rank_trace = rank_trace
        self._references = references_of(rank_trace)
        self._made: dict[tuple[int, bytes, frozenset[str]], _Template] = {}
        self._tables: dict[tuple[int, int], pl.DataFrame] = {}
        self._names: dict[int, tuple[list[str], pl.Series]] = {}

    def of(self, match: Match, launch: int) -> _Template:
        """Return the nodes of a replay; `launch` is the call that launched the replay."""
        around = self._names_around(launch)
        key = (match.reference, match.nodes.tobytes(), around)
        if key not in self._made:
            self._made[key] = self._template(match, around)
        return self._made[key]

    def nodes(self, reference: int, template: _Template) -> pl.DataFrame:
        """Return the columns of `Grafts.nodes` that are the same for every replay."""
        key = (reference, id(template))
        if key not in self._tables:
            nodes = recorded_nodes(self._references[reference])[template.rows]
            self._tables[key] = nodes.select(
                "node_class",
                self._ids(reference).gather(nodes["name"]).alias("name"),
                "is_counted",
                pl.lit(reference, pl.Int64).alias("reference"),
                pl.col("event_index").alias("reference_index"),
            )
        return self._tables[key]

    def _template(self, match: Match, around: frozenset[str]) -> _Template:
        nodes = recorded_nodes(self._references[match.reference])
        parent = nodes["parent"].to_numpy()
        is_kept = nodes["node_class"].is_in(list(map(int, _GRAFTED))).to_numpy().copy()
        rows = _with_all_above(parent, match.nodes)
        texts, _ = self._texts(match.reference)
        names = nodes["name"].gather(rows).to_list()
        again = [row for row, name in zip(rows.tolist(), names, strict=True) if texts[name] in around]
        is_kept[_with_all_above(parent, np.array(again, np.int64))] = False
        kept = rows[is_kept[rows]]
        place = np.full(nodes.height + 1, NO_PARENT, np.int64)
        place[kept] = np.arange(len(kept))
        itself = np.where(
            np.append(is_kept, False)[match.nodes], match.nodes, nearest_above(parent, is_kept, match.nodes)
        )
        return _Template(kept, place[nearest_above(parent, is_kept, kept)], place[itself])

    def _names_around(self, launch: int) -> frozenset[str]:
        """Return the names of the operators and modules that enclose a graph's launch.

        A replay leaves out each recorded node that has one of these names, and all nodes above it: the launch is
        already inside such nodes.
        """
        nodes, owners = recorded_nodes(self._rank_trace), recorded_runtime_owner(self._rank_trace)
        row = rows_of_events(owners, pl.Series([launch], dtype=pl.UInt32))[0]
        at = np.array([NO_PARENT if row == NO_PARENT else owners["node"][int(row)]])
        around = nodes[_with_all_above(nodes["parent"].to_numpy(), at)]
        chosen = around.filter(pl.col("node_class").is_in(list(map(int, _GRAFTED))))
        return frozenset(self._rank_trace.texts(chosen["name"]))

    def _texts(self, reference: int) -> tuple[list[str], pl.Series]:
        """Return the strings of a recording, and the ids of these strings in the rank's table of strings."""
        if reference not in self._names:
            strings = self._references[reference].strings
            self._names[reference] = strings.to_list(), ids_of(self._rank_trace, self._references[reference])
        return self._names[reference]

    def _ids(self, reference: int) -> pl.Series:
        return self._texts(reference)[1]


def ids_of(rank_trace: RankTrace, reference: RankTrace) -> pl.Series:
    """Return, for each string in a recording, its id in the rank's table of strings."""
    if reference is rank_trace.unselected:
        return pl.int_range(len(rank_trace.strings), dtype=pl.UInt32, eager=True)
    return _ids_of_texts(rank_trace, reference.strings)


def _with_all_above(parent: _Rows, rows: _Rows) -> _Rows:
    """Return these rows and all their ancestors, without duplicates, in order."""
    collected, at = [np.empty(0, np.int64)], np.unique(rows[rows != NO_PARENT])
    while len(at):
        collected.append(at)
        at = np.unique(parent[at])
        at = at[at != NO_PARENT]
    return np.unique(np.concatenate(collected))
