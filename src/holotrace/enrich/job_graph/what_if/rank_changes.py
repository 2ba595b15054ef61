"""Apply changes to the graph of one rank, and reduce the graph to the points that matter to other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, contracted
from holotrace.content_equality import EqualByContent
from holotrace.enrich.critical_path.event_graph import EventGraph
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.what_if import Change, Remove, Replace, Replay, Scale, changed, own_time, unchanged
from holotrace.enrich.job_graph.call_nodes import CallGraph, call_graph
from holotrace.enrich.job_graph.python_time import python_functions, with_python_time
from holotrace.enrich.job_graph.rank_graph import points
from holotrace.errors import InvalidOptionError
from holotrace.store.trace import RankTrace

_Floats = npt.NDArray[np.float64]


class ChangedRank(NamedTuple):
    """The result of the changes on one rank.

    source, target, length_ns  edges between rows of `EventGraph.nodes`, as in `RankGraph`
    calls     event_index uint32; factor float64, which multiplies the transfer's length; replaced_ns float64, the new
              length if a change sets it, else null
    has_selected  per change: whether it selected anything on this rank
    """

    source: npt.NDArray[np.uint32]
    target: npt.NDArray[np.uint32]
    length_ns: npt.NDArray[np.int64]
    calls: pl.DataFrame
    has_selected: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class _Named(EqualByContent):
    """The graph, and the names of its activities, because changes select activities by name."""

    graph: EventGraph
    window: str
    names: pl.DataFrame


def changed_rank(
    rank_trace: RankTrace, window: PathWindow, changes: Sequence[Change], data_loading: Sequence[str]
) -> ChangedRank:
    """Apply the changes to a rank's graph of a window, and reduce the graph to its points (see `RankGraph`)."""
    known = call_graph(rank_trace, window, data_loading)
    used = known.graph.activities["name"].unique().sort()
    names = used.to_frame().with_columns(rank_trace.texts(used).alias("text"))
    named, replay = _Named(known.graph, window.name, names), unchanged(known.graph)
    into = _own_edges_to_ends(known)
    factor, replaced = np.ones(len(known.calls)), np.full(len(known.calls), np.nan)
    functions = python_functions(rank_trace, known.graph)
    has_selected = []
    for change in changes:
        before = _sums(into, replay.length_ns)
        selected = False
        with suppress(InvalidOptionError):  # the change may select something on another rank
            replay, selected = changed(named, replay, change), True
        if isinstance(change, Scale | Remove | Replace):
            in_python = with_python_time(known.graph, replay, functions, change)
            replay, selected = in_python or replay, selected or in_python is not None
        has_selected.append(selected)
        _follow(factor, replaced, before, _sums(into, replay.length_ns), is_new=isinstance(change, Replace))
    return _reduced(known, replay, factor, replaced, tuple(has_selected))


def _own_edges_to_ends(known: CallGraph) -> list[npt.NDArray[np.int64]]:
    """Return, for each call, the edges that lead to its end and represent its self time."""
    own = own_time(known.graph, len(known.graph.edges))
    call_of = np.full(len(known.graph.activities), -1)
    call_of[known.calls["activity"].to_numpy()] = np.arange(len(known.calls))
    ends = known.calls["end_node"].to_numpy()
    call = np.where(own >= 0, call_of[np.maximum(own, 0)], -1) if len(call_of) else own
    target = known.graph.edges["target"].to_numpy()
    rows = np.flatnonzero(call >= 0)
    rows = rows[target[rows] == ends[call[rows]]]
    order = rows[np.argsort(call[rows], kind="stable")]
    return np.split(order, np.searchsorted(call[order], np.arange(1, len(known.calls)))) if len(known.calls) else []


def _sums(into: Sequence[npt.NDArray[np.int64]], length_ns: _Floats) -> _Floats:
    return np.array([length_ns[rows].sum() for rows in into])


def _follow(factor: _Floats, replaced: _Floats, before: _Floats, after: _Floats, *, is_new: bool) -> None:
    """Record how a change affected the length of each call: multiplied it by a factor, or set a new length."""
    differs = before != after
    if is_new:
        replaced[differs] = after[differs]
        return
    ratio = np.where(differs, after / np.maximum(before, 1), 1.0)
    factor *= ratio
    replaced *= ratio


def _reduced(
    known: CallGraph, replay: Replay, factor: _Floats, replaced: _Floats, has_selected: tuple[bool, ...]
) -> ChangedRank:
    is_point, start_of = points(known)
    source, target = replay.edges.source, replay.edges.target
    kept = source != start_of[target]
    length_ns = np.where(start_of[target] >= 0, 0, np.rint(replay.length_ns)).astype(np.int64)
    edges = Edges(replay.edges.node_count, source[kept], target[kept])
    short = contracted(edges, length_ns[kept], is_point)
    calls = known.calls.select("event_index").with_columns(
        pl.Series("factor", factor, pl.Float64), pl.Series("replaced_ns", replaced, pl.Float64).fill_nan(None)
    )
    return ChangedRank(*short, calls, has_selected)
