"""Replace the work of ranks by that of the ranks that communicate alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_graph.job_window import JobWindow
from holotrace.enrich.job_graph.rank_graph import RankGraph
from holotrace.errors import InvalidOptionError

RankEdges: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Source and target (rows of `EventGraph.nodes`) and length of the edges within a rank."""


@dataclass(frozen=True)
class PeersMedian:
    """The work of these ranks between their calls takes as long as the median of their peers; of all ranks by default.

    The peers of a rank make the same calls in the same order, with messages of the same size. The ranks themselves do not
    count for the median, unless all ranks are replaced.
    """

    ranks: Sequence[int] | None = None


def with_peers_median(window: JobWindow, within: Mapping[int, RankEdges], change: PeersMedian) -> dict[int, RankEdges]:
    """Return the edges with the lengths of the chosen ranks replaced.

    Raises:
        InvalidOptionError: a rank is not in the graph, or has no peers.
    """
    alike = _signatures(window)
    chosen = list(window.graphs) if change.ranks is None else list(change.ranks)
    changed = dict(within)
    for rank in chosen:
        peers = [
            other
            for other in window.graphs
            if alike[other] == alike.get(rank) and (change.ranks is None or other not in chosen)
        ]
        if rank not in alike or not peers:
            message = f"what_if_across_ranks: no other rank makes the same calls as rank {rank}, so it has no peers"
            raise InvalidOptionError(message)
        changed[rank] = _replaced(window, within, rank, peers)
    return changed


def _signatures(window: JobWindow) -> dict[int, tuple[tuple[object, ...], ...]]:
    """Return the kinds and sizes of the calls of each rank in its window, in the order of its graph."""
    calls = window.graph.calls.drop_nulls("start").sort("start")
    rows = calls.select("rank", "collective", "message_bytes", "group_size").iter_rows()
    signatures: dict[int, list[tuple[object, ...]]] = {rank: [] for rank in window.graphs}
    for rank, *call in rows:
        signatures[rank].append(tuple(call))
    return {rank: tuple(call) for rank, call in signatures.items()}


def _replaced(window: JobWindow, within: Mapping[int, RankEdges], rank: int, peers: Sequence[int]) -> RankEdges:
    own = _labelled(window.graphs[rank], within[rank])
    others = pl.concat([_labelled(window.graphs[peer], within[peer]) for peer in peers])
    medians = others.drop_nulls().group_by("from", "to").agg(pl.col("length_ns").median().alias("median_ns"))
    known = own.join(medians, on=["from", "to"], how="left", maintain_order="left")
    lengths = known.select(pl.coalesce(pl.col("median_ns").round().cast(pl.Int64), "length_ns")).to_series().to_numpy()
    return (*within[rank][:2], lengths)


def _labelled(graph: RankGraph, edges: RankEdges) -> pl.DataFrame:
    """Return the edges with labels of their ends that are equal on ranks with the same calls."""
    ordered = graph.calls.sort("start")
    named = {"node": graph.node[_is_other(graph)], "begin": graph.node[:1], "window": graph.node[-1:]}
    named.update({kind: graph.node[ordered[kind].to_numpy()] for kind in ("asked", "start", "end")})
    parts = [
        pl.DataFrame({"node": nodes}, {"node": pl.Int64}).select(
            "node", pl.format("{} {}", pl.lit(kind), pl.int_range(pl.len())).alias("label")
        )
        for kind, nodes in named.items()
    ]
    label = pl.concat(parts).unique("node", keep="last", maintain_order=True)
    table = pl.DataFrame({"source": edges[0], "target": edges[1], "length_ns": edges[2]})
    for side, name in (("source", "from"), ("target", "to")):
        ends = label.rename({"node": side, "label": name})
        table = table.with_columns(pl.col(side).cast(pl.Int64)).join(ends, on=side, how="left", maintain_order="left")
    return table.select("from", "to", "length_ns")


def _is_other(graph: RankGraph) -> npt.NDArray[np.bool_]:
    """Return whether each point belongs to no call and is not an end of the window."""
    is_other = np.ones(len(graph.node), np.bool_)
    is_other[[0, -1]] = False
    for kind in ("asked", "start", "end"):
        is_other[graph.calls[kind].to_numpy()] = False
    return is_other
