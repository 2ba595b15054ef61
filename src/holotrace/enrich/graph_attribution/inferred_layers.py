"""Infers layers from the order of a graph's kernels, if no recording names their operators.

An inferred layer only groups kernels; it does not show which operators launched them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above
from holotrace.enrich.events.event_rows import of_events, rows_of_events
from holotrace.enrich.graph_attribution.attribution import replays
from holotrace.enrich.graph_attribution.repeated_layers import Layers, repeated_layers
from holotrace.enrich.graph_attribution.replays import replayed_work
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.nodes import recorded_nodes, recorded_runtime_owner
from holotrace.store.captures import inferred_layer_name
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_BACKWARD = r"^autograd::engine::evaluate_function|Backward\d*$"
_GEOMETRY = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COLUMNS = {
    "event_index": pl.UInt32,
    "module": pl.String,
    "layer": pl.Int64,
    "layer_count": pl.Int64,
    "position": pl.Int64,
}


@derived
def inferred_layers(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the layer of each kernel, copy and memset of the graph replays that match no recording.

    A graph that contains a whole model is divided into layers without regard to other graphs. A piecewise graph
    contains only a part of a layer, so all piecewise graphs of one pass through the model are divided together. A new
    pass begins where the annotation around the launches changes, or where the first graph of the pass is replayed
    again.

    Returns:
        Only work inside layers, in the order of `replayed_work`:

        event_index  uint32
        module       str    such as `nn.Module: inferred layer 3`
        layer        int64  from 1, in the order of the forward pass
        layer_count  int64
        position     int64  from 1, within the layer, in the order in which the kernels run
    """
    replayed = [(replay.first, replay.last) for replay in replays(rank_trace) if replay.match is None]
    if not replayed:
        return pl.DataFrame(schema=_COLUMNS)
    search = _Search(rank_trace)
    alone = [part for part in replayed if search.layers(search.rows(part)) is not None]
    together = sorted(set(replayed) - set(alone))
    several = [together[first:last] for first, last in search.passes(together)]
    sequences = [search.rows(*parts) for parts in [*([part] for part in alone), *several]]
    tables = [
        search.table(rows, is_backward=is_backward)
        for rows, is_backward in zip(sequences, search.are_backward(sequences), strict=True)
    ]
    listed = pl.concat([pl.DataFrame(schema=_COLUMNS), *tables])
    return listed[np.argsort(rows_of_events(replayed_work(rank_trace), listed["event_index"]), kind="stable")]


class _Search:
    """Divides replays into layers; if several replays have the same kernels, divides them only once."""

    def __init__(self, rank_trace: RankTrace) -> None:
        work = replayed_work(rank_trace)
        self._rank_trace = rank_trace
        self._events, self._launches = work["event_index"], work["launch_index"]
        self._streams = work["stream"].to_numpy()
        self._names = rank_trace.texts(work["name"]).to_list()
        self._kernels = _numbered(rank_trace, work)
        self._known: dict[bytes, Layers | None] = {}
        nodes = recorded_nodes(rank_trace)
        self._parent, self._node_class = nodes["parent"].to_numpy(), nodes["node_class"]
        names = rank_trace.texts(nodes["name"])
        self._is_backward = names.str.contains(_BACKWARD).fill_null(value=False).to_numpy()

    def rows(self, *parts: tuple[int, int]) -> _Rows:
        """Return the rows of these replays on the stream that has the most of their rows.

        Rows on other streams are left out, because their order relative to these rows may differ between replays.
        """
        rows = np.concatenate([np.arange(*part) for part in parts])
        numbers, counts = np.unique(self._streams[rows], return_counts=True)
        chosen: _Rows = rows[self._streams[rows] == numbers[np.argmax(counts)]]
        return chosen

    def layers(self, rows: _Rows) -> Layers | None:
        """Return the layers of a sequence of kernels, or None if no layers were found."""
        key = self._kernels[rows].tobytes()
        if key not in self._known:
            self._known[key] = repeated_layers(self._kernels[rows], [self._names[row] for row in rows])
        return self._known[key]

    def passes(self, replayed: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield, for each pass through the model, its range of replays [first, last)."""
        around = self._annotations(self._launches.gather([first for first, _ in replayed]))
        contents = [self._kernels[first:last].tobytes() for first, last in replayed]
        begin = 0
        for number in range(1, len(replayed) + 1):
            is_end = number == len(replayed) or around[number] != around[begin]
            if is_end or (contents[number] == contents[begin] != contents[number - 1]):
                yield begin, number
                begin = number

    def _annotations(self, launches: pl.Series) -> list[int]:
        """Return, for each launch, the row in `recorded_nodes` of the outermost annotation or step around it, or -1."""
        is_annotation = self._node_class.is_in([int(NodeClass.ANNOTATION), int(NodeClass.STEP)]).to_numpy()
        around = self._around(launches)
        furthest = furthest_above(self._parent, is_annotation, around)
        itself = itself_or_above(self._parent, is_annotation, around)
        outermost: list[int] = np.where(furthest == NO_PARENT, itself, furthest).tolist()
        return outermost

    def _around(self, launches: pl.Series) -> _Rows:
        owners = recorded_runtime_owner(self._rank_trace)
        around: _Rows = np.append(owners["node"].to_numpy(), NO_PARENT)[rows_of_events(owners, launches)]
        return around

    def are_backward(self, sequences: list[_Rows]) -> list[bool]:
        """Return, for each sequence, whether its first graph was launched inside a backward operator."""
        around = self._around(self._launches.gather([int(rows[0]) for rows in sequences]))
        are_inside: list[bool] = (itself_or_above(self._parent, self._is_backward, around) != NO_PARENT).tolist()
        return are_inside

    def table(self, rows: _Rows, *, is_backward: bool) -> pl.DataFrame:
        """Return the columns of `inferred_layers` for a sequence of kernels."""
        layers = self.layers(rows)
        if layers is None:
            return pl.DataFrame(schema=_COLUMNS)
        inside = np.flatnonzero(layers.layer >= 0)
        counts, part = layers.layer_count[inside], layers.part[inside]
        numbers = layers.layer[inside] + 1
        if is_backward:
            numbers = counts - layers.layer[inside]
        names = _names(numbers, part if part.any() else None)
        columns = (self._events.gather(rows[inside]), names, numbers, counts, layers.position[inside] + 1)
        return pl.DataFrame(dict(zip(_COLUMNS, columns, strict=True)), schema=_COLUMNS)


def _names(layers: _Rows, parts: _Rows | None) -> list[str]:
    if parts is None:
        return [inferred_layer_name(layer) for layer in layers.tolist()]
    return [inferred_layer_name(layer, part + 1) for layer, part in zip(layers.tolist(), parts.tolist(), strict=True)]


def _numbered(rank_trace: RankTrace, work: pl.DataFrame) -> _Rows:
    """Return a number for each kernel; kernels with equal names and launch geometries have equal numbers."""
    geometry = of_events(rank_trace.table("kernels", ["event_index", *_GEOMETRY]), work["event_index"])
    keys = pl.concat([work.select("name"), geometry], how="horizontal")
    return keys.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64)).to_series().to_numpy()
