"""Replace the work of a rank with the work of the median rank among the ranks that make the same calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_graph.job_window import JobWindow
from holotrace.enrich.job_graph.rank_graph import RankGraph
from holotrace.errors import InvalidOptionError

RankEdges: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The edges within a rank: their sources and targets (rows of `EventGraph.nodes`), and their lengths."""

_ALIKE = ["collective", "message_bytes", "group_size"]
"""Calls of two ranks correspond if they are equal in these columns."""


@dataclass(frozen=True)
class PeersMedian:
    """Make these ranks (by default all) spend as much time between calls as their median peer.

    The peers of a rank make the same calls in the same order, with messages of the same size. The median peer is the
    one that spends the median time between calls. If `ranks` are given, only ranks that are not among them can be
    peers.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.what_if_across_ranks(small_job(), [holotrace.PeersMedian(ranks=[1])]).saved_ns
    200000
    """

    ranks: Sequence[int] | None = None


def with_peers_median(window: JobWindow, within: Mapping[int, RankEdges], change: PeersMedian) -> dict[int, RankEdges]:
    """Return the edges of all ranks; the edges of each chosen rank are replaced by those of its median peer.

    Raises:
        InvalidOptionError: a rank is not in the graph, or has no peers.
    """
    calls = _whole_calls(window)
    alike = _signatures(calls, window.graphs)
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
        changed[rank] = _replaced(window, calls, within, rank, peers)
    return changed


def _whole_calls(window: JobWindow) -> pl.DataFrame:
    """Return the calls that are in the window on every rank that makes them, sorted by rank and start.

    A call near the beginning or end of the window may be inside the window on only some ranks, because ranks begin a
    step at different times. The result contains the columns in `_ALIKE`.
    """
    calls = window.graph.calls.drop_nulls("start")
    is_whole = pl.col("instance").is_null() | (pl.len().over("instance") >= pl.col("member_count").fill_null(0))
    return calls.filter(is_whole).select("rank", "event_index", "start", *_ALIKE).sort("rank", "start")


def _signatures(calls: pl.DataFrame, ranks: Iterable[int]) -> dict[int, tuple[tuple[object, ...], ...]]:
    """Return the kinds and sizes of each rank's calls, in the order of `calls`."""
    signatures: dict[int, list[tuple[object, ...]]] = {rank: [] for rank in ranks}
    for rank, *call in calls.select("rank", *_ALIKE).iter_rows():
        signatures[rank].append(tuple(call))
    return {rank: tuple(call) for rank, call in signatures.items()}


def _replaced(
    window: JobWindow, calls: pl.DataFrame, within: Mapping[int, RankEdges], rank: int, peers: Sequence[int]
) -> RankEdges:
    """Return the median peer's edges, with nodes renumbered for this rank.

    The nodes of calls and the ends of the window get this rank's node numbers; all other nodes get new numbers.
    """
    peer = sorted(peers, key=lambda other: (_work_ns(window.graphs[other]), other))[(len(peers) - 1) // 2]
    own, other = (_nodes_of_calls(window.graphs[each], calls.filter(rank=each)) for each in (rank, peer))
    source, target, length_ns = within[peer]
    first = int(window.graphs[rank].node[-1]) + 1
    count = int(max(np.max(source, initial=0), np.max(target, initial=0), np.max(other))) + 1
    node = np.arange(first, first + count)
    node[other] = own
    return node[source], node[target], length_ns


def _work_ns(graph: RankGraph) -> int:
    """Return the time that a rank spends between calls: the total length of its binding chains."""
    return int(graph.chain_ns.sum())


def _nodes_of_calls(graph: RankGraph, calls: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return the nodes at both ends of the window, and at the request, start and end of each of these calls.

    If two ranks make the same calls, the nodes of both are in the same order.
    """
    points = calls.select("event_index").join(graph.calls, on="event_index", maintain_order="left")
    return np.concatenate(
        [graph.node[[0, -1]], *(graph.node[points[kind].to_numpy()] for kind in ("asked", "start", "end"))]
    )
