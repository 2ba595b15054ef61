"""Predicts how long a window takes after changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, earliest_times
from holotrace.content_equality import EqualByContent
from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass
from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.enrich.critical_path.replayed_lengths import replayed_lengths_ns
from holotrace.errors import InconsistentTimesError, InvalidOptionError
from holotrace.schema import KernelKind

REPLAY_TOLERANCE = 0.01
"""The length of an unchanged replay may differ from the measured length of the window by at most this fraction."""


@dataclass(frozen=True)
class Scale:
    """Multiply the time of selected device work, and the self time of selected host ranges, by `factor`.

    `where` is a polars expression that selects activities. The expression may use `duration_ns` and the columns
    of `EventGraph.activities`; `name` can be compared with strings.

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> holotrace.what_if(graph, [holotrace.Scale(pl.col("name") == "gemm", factor=2.0)]).saved_ns
    -500000
    """

    where: pl.Expr
    factor: float


@dataclass(frozen=True)
class Remove:
    """Set the time of selected device work, and the self time of selected host ranges, to 0; for `where`, see `Scale`.

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> holotrace.what_if(graph, [holotrace.Remove(pl.col("name") == "gemm")]).saved_ns
    500000
    """

    where: pl.Expr


@dataclass(frozen=True)
class Replace:
    """Set the time of each selected kernel, copy or fill, and the self time of each selected host range.

    For `where`, see `Scale`.

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> holotrace.what_if(graph, [holotrace.Replace(pl.col("name") == "gemm", duration_ns=100_000)]).saved_ns
    400000
    """

    where: pl.Expr
    duration_ns: int


@dataclass(frozen=True)
class NoLaunchOverhead:
    """Set the time of all calls that launch work to 0, and remove the delay between each launch and its work.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> holotrace.what_if(graph, [holotrace.NoLaunchOverhead()]).saved_ns
    21000
    """


@dataclass(frozen=True)
class PerfectOverlap:
    """Let communication on devices delay only other communication and the end of the window.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> holotrace.what_if(graph, [holotrace.PerfectOverlap()]).saved_ns
    115000
    """


@dataclass(frozen=True)
class NoWait:
    """Make the selected host calls return without waiting for a device; for `where`, see `Scale`."""

    where: pl.Expr


Change: TypeAlias = Scale | Remove | Replace | NoLaunchOverhead | PerfectOverlap | NoWait


@dataclass(frozen=True)
class WhatIf:
    """The length of a window, measured and predicted.

    measured_ns   the measured length
    replayed_ns   the length of an unchanged replay; its difference from `measured_ns` is the error of the method
    predicted_ns  the length after the changes: measured_ns minus the time that the changes save in the replay

    >>> import holotrace
    >>> holotrace.WhatIf(measured_ns=1_000_000, replayed_ns=1_000_000, predicted_ns=750_000).saved_fraction
    0.25
    """

    measured_ns: int
    replayed_ns: int
    predicted_ns: int

    @property
    def saved_ns(self) -> int:
        """How much shorter the window becomes; negative if it becomes longer."""
        return self.measured_ns - self.predicted_ns

    @property
    def saved_fraction(self) -> float | None:
        """The saved time as a fraction of the measured length; None for a window of length zero."""
        return self.saved_ns / self.measured_ns if self.measured_ns else None


class NamedGraph(Protocol):
    """A graph with the names of its activities, such as a `PathGraph`."""

    @property
    def graph(self) -> EventGraph:
        """The dependencies."""

    @property
    def window(self) -> str:
        """The name of the window, such as `ProfilerStep#3`."""

    @property
    def names(self) -> pl.DataFrame:
        """The text of each name: name uint32 (string id), text str."""


@dataclass(frozen=True, eq=False)
class Replay(EqualByContent):
    """The edges of a graph with their lengths.

    Applying a change creates a new `Replay`, possibly with more edges at the end.
    """

    edges: Edges
    length_ns: npt.NDArray[np.float64]


def what_if(found: PathGraph, changes: Sequence[Change]) -> WhatIf:
    """Predict how long the window of a critical path would take after these changes.

    Every start and end is recomputed from the dependencies, which stay the same unless a change removes them. Delays
    that no dependency explains, and gaps between host ranges, stay as measured.

    Args:
        found: the result of `critical_path_graph`.
        changes: the changes, applied in this order.

    Raises:
        InconsistentTimesError: the replay without changes is longer or shorter than measured by more than 1 %.
        InvalidOptionError: a change selects nothing, or its factor or duration is negative.

    The graph is described in docs/reference/analyses/critical_path.md.

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> result = holotrace.what_if(graph, [holotrace.Scale(pl.col("name") == "gemm", 0.5)])
    >>> result.measured_ns, result.predicted_ns
    (1000000, 750000)
    """
    graph = found.graph
    measured_ns = graph.window_end_ns - graph.window_start_ns
    replay = unchanged(graph)
    replayed_ns = window_ns(replay)
    if abs(replayed_ns - measured_ns) > REPLAY_TOLERANCE * measured_ns:
        message = (
            f"what_if: without any change the replay takes {replayed_ns:,} ns, but {found.window} took "
            f"{measured_ns:,} ns. According to the clocks of the trace, {graph.contradicted_count:,} dependencies are "
            "violated (an event happens before one on which it depends), so a prediction would be meaningless"
        )
        raise InconsistentTimesError(message)
    for change in changes:
        replay = changed(found, replay, change)
    return WhatIf(measured_ns, replayed_ns, measured_ns - (replayed_ns - window_ns(replay)))


def unchanged(graph: EventGraph) -> Replay:
    """Return the edges of the graph with their lengths in an unchanged replay."""
    return Replay(graph.order(), replayed_lengths_ns(graph).astype(np.float64))


def window_ns(replay: Replay) -> int:
    """Return how long the window takes in this replay."""
    return int(earliest_times(replay.edges, np.rint(replay.length_ns).astype(np.int64))[-1])


def changed(found: NamedGraph, replay: Replay, change: Change) -> Replay:
    """Return the replay with a change applied; raises InvalidOptionError in the same cases as `what_if`."""
    if isinstance(change, PerfectOverlap):
        return _with_perfect_overlap(found.graph, replay)
    if isinstance(change, NoLaunchOverhead):
        return _without_launch_overhead(found.graph, replay)
    selected = _selected(found, change.where)
    if isinstance(change, NoWait):
        return _without_waits(found.graph, replay, selected)
    own = own_time(found.graph, len(replay.length_ns))
    if isinstance(change, Replace):
        factors = _checked(change.duration_ns) / np.maximum(_sums(own, replay.length_ns, len(selected)), 1)
    else:
        factors = np.full(len(selected), _checked(change.factor) if isinstance(change, Scale) else 0.0)
    rows = np.flatnonzero((own >= 0) & selected[own])
    return _scaled(replay, rows, factors[own[rows]])


def _scaled(replay: Replay, rows: npt.NDArray[np.int64], factors: npt.NDArray[np.float64] | float) -> Replay:
    length_ns = replay.length_ns.copy()
    length_ns[rows] *= factors
    return Replay(replay.edges, length_ns)


def _selected(found: NamedGraph, where: pl.Expr) -> npt.NDArray[np.bool_]:
    activities = found.graph.activities.join(found.names, on="name", how="left", maintain_order="left")
    readable = activities.with_columns(
        pl.col("text").alias("name"), (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns")
    )
    selected = readable.select(where.fill_null(value=False).alias("selected"))["selected"].to_numpy()
    if not selected.any():
        message = f"what_if: none of the {len(activities):,} activities of {found.window} is selected by {where}"
        raise InvalidOptionError(message)
    return selected


def own_time(graph: EventGraph, count: int) -> npt.NDArray[np.int64]:
    """Return the activity whose self time each edge represents; -1 for gaps, delays and added edges."""
    is_own = (pl.col("type") == EdgeType.OPERATOR) | (
        (pl.col("type") == EdgeType.LAUNCH) & (pl.col("path_class") == PathClass.CPU_OPERATOR)
    )
    own = graph.edges.select(pl.when(is_own).then("activity").cast(pl.Int64).fill_null(-1)).to_series().to_numpy()
    return np.concatenate([own, np.full(count - len(own), -1)])


def _sums(own: npt.NDArray[np.int64], length_ns: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    known = own >= 0
    return np.bincount(own[known], length_ns[known], count).astype(np.float64)


def _checked(value: float) -> float:
    if value < 0:
        message = f"what_if: {value} is negative; choose 0 or more"
        raise InvalidOptionError(message)
    return value


def _without_launch_overhead(graph: EventGraph, replay: Replay) -> Replay:
    nodes, edges = graph.nodes["activity"], graph.edges
    launches = edges.filter(pl.col("type") == EdgeType.LAUNCH)
    calls = nodes.gather(launches["source"]).unique()
    own = own_time(graph, len(replay.length_ns))
    overhead = np.zeros(len(replay.length_ns), np.bool_)
    is_overhead = (pl.col("type") == EdgeType.LAUNCH) & (pl.col("path_class") != PathClass.UNKNOWN)
    overhead[: len(edges)] = edges.select(is_overhead).to_series().to_numpy()
    return _scaled(replay, np.flatnonzero(overhead | np.isin(own, calls.to_numpy())), 0.0)


def _without_waits(graph: EventGraph, replay: Replay, selected: npt.NDArray[np.bool_]) -> Replay:
    """Remove the edges from device work to the ends of the selected calls."""
    is_wait = (graph.edges["type"] == EdgeType.HOST_SYNCHRONISATION).to_numpy()
    target = graph.nodes["activity"].gather(graph.edges["target"]).fill_null(0).to_numpy()
    freed = np.zeros(len(replay.length_ns), np.bool_)
    freed[: len(is_wait)] = is_wait & selected[target]
    edges = Edges(
        replay.edges.node_count, np.where(freed, 0, replay.edges.source).astype(np.uint32), replay.edges.target
    )
    return Replay(edges, np.where(freed, 0.0, replay.length_ns))


def _with_perfect_overlap(graph: EventGraph, replay: Replay) -> Replay:
    """Remove the edges from communication to other work, but let the window end only after all communication."""
    kinds, is_start = graph.activities["kernel_kind"], graph.nodes["is_start"].to_numpy()
    of_node = kinds.gather(graph.nodes["activity"]).fill_null(KernelKind.OTHER).to_numpy()
    is_communication = of_node == KernelKind.COMMUNICATION
    source, target = replay.edges.source, replay.edges.target
    last = len(is_start) - 1
    freed = is_communication[source] & ~is_start[source] & ~is_communication[target] & (target != last)
    ends = np.unique(source[freed])
    edges = Edges(
        replay.edges.node_count,
        np.concatenate([np.where(freed, 0, source), ends]).astype(np.uint32),
        np.concatenate([target, np.full(len(ends), last)]).astype(np.uint32),
    )
    return Replay(edges, np.concatenate([np.where(freed, 0.0, replay.length_ns), np.zeros(len(ends))]))
