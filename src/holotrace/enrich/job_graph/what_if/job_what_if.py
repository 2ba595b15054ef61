"""Predict how long a step of the job would take after given changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, earliest_times
from holotrace.algorithms.latency_fit import fit_latency
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.what_if import Change, WhatIf
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job_graph.job_edges import JoinType
from holotrace.enrich.job_graph.job_window import JobWindow, WindowOptions, job_window
from holotrace.enrich.job_graph.joining import NO_EDGE, JobGraph
from holotrace.enrich.job_graph.what_if.peers_median import PeersMedian, RankEdges, with_peers_median
from holotrace.enrich.job_graph.what_if.rank_changes import ChangedRank, changed_rank
from holotrace.errors import InconsistentTimesError, InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import percent_text

_Int64: TypeAlias = npt.NDArray[np.int64]

REPLAY_TOLERANCE = 0.03
"""An unchanged replay of a job may differ from the measured window by at most this fraction."""


@dataclass(frozen=True)
class FasterLink:
    """Multiply the latency of transfers by `latency_factor`, and divide the rest of their time by `bandwidth_factor`.

    For each group and collective, the latency is estimated by fitting a line to transfer time against message size. If
    the sizes are too similar for a fit, the whole transfer time is divided by `bandwidth_factor`.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.what_if_across_ranks(small_job(), [holotrace.FasterLink(bandwidth_factor=2.0)]).saved_ns
    50000
    """

    bandwidth_factor: float = 2.0
    latency_factor: float = 1.0
    process_group: str | None = None


JobChange: TypeAlias = Change | FasterLink | PeersMedian


class _Lengths(NamedTuple):
    """The lengths of edges in a replay: `within` for edges inside each rank, `between_ns` for edges of `JobGraph`."""

    within: Mapping[int, RankEdges]
    between_ns: npt.NDArray[np.float64]


def what_if_across_ranks(  # noqa: PLR0913 -- options by name
    trace: Trace,
    changes: Sequence[JobChange],
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
    force: bool = False,
    executor: Executor = IN_PROCESS,
) -> WhatIf:
    """Predict how long the step of the job would take with these changes.

    All start and end times on all ranks are recomputed. A faster rank arrives earlier in its collectives, and ranks
    that waited for it continue as soon as all other ranks have arrived too. Delays and gaps keep their measured length.
    Changes can also select recorded Python functions; such a change applies only to the time that the functions spend
    outside operators and runtime calls.

    Args:
        trace: the job.
        changes: any changes that `holotrace.what_if` accepts, and `holotrace.FasterLink` and `holotrace.PeersMedian`;
            these two are applied last.
        annotation: the window, as in `holotrace.critical_path`.
        instance: as in `holotrace.critical_path`.
        time_range_ns: as in `holotrace.critical_path`.
        data_loading: regular expressions for the names of host ranges that load data.
        force: predict even if the unchanged replay is over 3 % longer or shorter than the measured time.
        executor: processes the ranks.

    Raises:
        InconsistentTimesError: the unchanged replay is over 3 % longer or shorter than the measured time.
        InvalidOptionError: a change selects nothing on any rank, or asks for a negative duration or factor.

    Source: docs/reference/analyses/critical_path.md describes the graph.

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> gemm = holotrace.Scale(pl.col("name") == "gemm", 0.5)
    >>> result = holotrace.what_if_across_ranks(small_job(), [gemm])
    >>> result.measured_ns, result.replayed_ns, result.predicted_ns
    (1000000, 1000000, 750000)
    """
    options = WindowOptions(annotation, instance, time_range_ns, tuple(data_loading))
    window = job_window(trace, options, executor)
    return predicted(window, changes, force=force, executor=executor)


def predicted(
    window: JobWindow, changes: Sequence[JobChange], *, force: bool = False, executor: Executor = IN_PROCESS
) -> WhatIf:
    """Predict the length of a window whose graph is already built; see `what_if_across_ranks`."""
    graph = window.graph
    before = _Lengths(
        {rank: (of.node[of.source], of.node[of.target], of.length_ns) for rank, of in window.graphs.items()},
        graph.length_ns.astype(np.float64),
    )
    replayed_ns = _replayed_ns(window, before)
    error = abs(replayed_ns - graph.duration_ns) / max(1, graph.duration_ns)
    if error > REPLAY_TOLERANCE and not force:
        message = (
            f"what_if_across_ranks: without any change the replay takes {replayed_ns:,} ns, but {window.name} took "
            f"{graph.duration_ns:,} ns (a difference of {percent_text(error)}), because, according to the clocks of "
            "the trace, some events happen before events on which they depend; predict anyway with force=True"
        )
        raise InconsistentTimesError(message)
    after = _changed(window, before, changes, executor)
    return WhatIf(graph.duration_ns, replayed_ns, graph.duration_ns - (replayed_ns - _replayed_ns(window, after)))


def _changed(window: JobWindow, lengths: _Lengths, changes: Sequence[JobChange], executor: Executor) -> _Lengths:
    of_events = [change for change in changes if not isinstance(change, FasterLink | PeersMedian)]
    if of_events:
        lengths = _with_changed_ranks(window, lengths, of_events, executor)
    for change in changes:
        if isinstance(change, FasterLink):
            lengths = lengths._replace(between_ns=_with_faster_link(window, lengths.between_ns, change))
        elif isinstance(change, PeersMedian):
            lengths = lengths._replace(within=with_peers_median(window, lengths.within, change))
    return lengths


def _with_changed_ranks(
    window: JobWindow, lengths: _Lengths, changes: Sequence[Change], executor: Executor
) -> _Lengths:
    for wanted in changes:
        if getattr(wanted, "factor", 0) < 0 or getattr(wanted, "duration_ns", 0) < 0:
            message = f"what_if_across_ranks: {wanted} is negative; choose 0 or more"
            raise InvalidOptionError(message)
    change = partial(_change, spans=window.spans, changes=changes, data_loading=window.options.data_loading)
    ranks = window.trace.visit(change, executor).results
    for number, wanted in enumerate(changes):
        if not any(of.has_selected[number] for of in ranks.values()):
            message = f"what_if_across_ranks: {wanted} selects nothing on any rank in {window.name}"
            raise InvalidOptionError(message)
    within = {
        rank: (of.source.astype(np.int64), of.target.astype(np.int64), of.length_ns) for rank, of in ranks.items()
    }
    return _Lengths(within, _with_changed_calls(window.graph, lengths.between_ns, ranks))


def _change(
    rank_trace: RankTrace,
    *,
    spans: Mapping[int, PathWindow],
    changes: Sequence[Change],
    data_loading: tuple[str, ...],
) -> ChangedRank:
    return changed_rank(rank_trace, spans[rank_trace.rank], changes, data_loading)


def _with_changed_calls(
    graph: JobGraph, between_ns: npt.NDArray[np.float64], ranks: Mapping[int, ChangedRank]
) -> npt.NDArray[np.float64]:
    of_ranks = [of.calls.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, of in ranks.items()]
    known = graph.calls.select("rank", "event_index").join(
        pl.concat(of_ranks), on=["rank", "event_index"], how="left", maintain_order="left"
    )
    rows = _transfers(graph)
    calls = graph.call[rows]
    factor = known["factor"].fill_null(1.0).to_numpy()[calls]
    replaced = known["replaced_ns"].fill_null(np.nan).to_numpy()[calls]
    lengths = between_ns.copy()
    lengths[rows] = np.where(np.isnan(replaced), lengths[rows] * factor, replaced)
    return lengths


def _transfers(graph: JobGraph) -> _Int64:
    """Return the edges that represent the transfer of a call."""
    is_transfer = (graph.type == JoinType.TRANSFER) | ((graph.type == JoinType.ALONE) & (graph.length_ns > 0))
    return np.flatnonzero(is_transfer)


def _with_faster_link(
    window: JobWindow, between_ns: npt.NDArray[np.float64], change: FasterLink
) -> npt.NDArray[np.float64]:
    if change.bandwidth_factor <= 0 or change.latency_factor < 0:
        message = f"what_if_across_ranks: {change}: choose a bandwidth factor above 0 and a latency factor of 0 or more"
        raise InvalidOptionError(message)
    graph, groups = window.graph, window.graph.calls["process_group"].fill_null("")
    rows = _transfers(graph)
    rows = rows[graph.type[rows] == JoinType.TRANSFER]
    if change.process_group is not None:
        rows = rows[(groups == change.process_group).to_numpy()[graph.call[rows]]]
        if not len(rows):
            message = f"what_if_across_ranks: no call in {window.name} belongs to the group {change.process_group!r}"
            raise InvalidOptionError(message)
    latency_ns = np.minimum(_latencies(window)[graph.call[rows]], between_ns[rows])
    lengths = between_ns.copy()
    rest = between_ns[rows] - latency_ns
    lengths[rows] = latency_ns * change.latency_factor + rest / change.bandwidth_factor
    return lengths


def _latencies(window: JobWindow) -> npt.NDArray[np.float64]:
    """Return the fitted latency of each call of the graph; 0 where no line could be fitted."""
    keys = ["process_group", "collective"]
    known = window.job.calls.drop_nulls(["instance", "message_bytes", "transfer_ns"])
    rows = []
    for key, calls in known.group_by(keys):
        fit = fit_latency(calls["message_bytes"].to_numpy(), calls["transfer_ns"].to_numpy())
        rows.append((*key, max(0.0, fit.latency_ns) if fit else 0.0))
    fitted = pl.DataFrame(
        rows, {"process_group": pl.String, "collective": pl.String, "latency_ns": pl.Float64}, orient="row"
    )
    joined = window.graph.calls.select(keys).join(fitted, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined["latency_ns"].fill_null(0.0).to_numpy()


def _replayed_ns(window: JobWindow, lengths: _Lengths) -> int:
    """Return how long the window would last with these edge lengths; binding edges keep their measured delays."""
    graph = window.graph
    first = {rank: int(np.argmax(graph.rank == rank)) for rank in window.graphs}
    extra = len(graph.time_ns)
    sources, targets, taken = [], [], []
    for rank, (source, target, length_ns) in lengths.within.items():
        nodes = window.graphs[rank].node
        numbers, extra = _numbers(nodes, np.concatenate([source, target]), first[rank], extra)
        sources.append(numbers[: len(source)])
        targets.append(numbers[len(source) :])
        taken.append(length_ns.astype(np.float64))
    source, target, length = np.concatenate(sources), np.concatenate(targets), np.concatenate(taken)
    late_source, late_target, late_length = _delayed_ends(graph, source, target, length)
    between = np.flatnonzero(~np.isin(graph.type, (JoinType.CHAIN, JoinType.SHORTCUT)))
    all_edges = Edges(
        extra,
        np.concatenate([source, late_source, graph.edges.source[between]]).astype(np.uint32),
        np.concatenate([target, late_target, graph.edges.target[between]]).astype(np.uint32),
    )
    everything = np.concatenate([length, late_length, lengths.between_ns[between] + _delays(graph)[between]])
    return int(earliest_times(all_edges, np.rint(everything).astype(np.int64))[len(graph.time_ns) - 1])


def _numbers(known: _Int64, nodes: _Int64, first: int, extra: int) -> tuple[_Int64, int]:
    """Return the numbers of a rank's nodes in a replay, and the next free number.

    The points of the rank (see `RankGraph`) have the same numbers as in the joined graph. All other nodes get new
    numbers, starting at `extra`.
    """
    place = np.searchsorted(known, nodes).clip(max=len(known) - 1)
    is_known = known[place] == nodes
    new = np.unique(nodes[~is_known])
    return np.where(is_known, first + place, extra + np.searchsorted(new, nodes)), extra + len(new)


def _delays(graph: JobGraph) -> npt.NDArray[np.float64]:
    """Return how much longer each binding edge took than its `length_ns`; 0 for all other edges."""
    delays = np.zeros(len(graph.length_ns))
    binds = graph.binding[graph.binding != NO_EDGE]
    source, target = graph.edges.source[binds], graph.edges.target[binds]
    delays[binds] = np.maximum(0, graph.time_ns[target] - graph.time_ns[source] - graph.length_ns[binds])
    return delays


def _delayed_ends(
    graph: JobGraph, source: _Int64, target: _Int64, length: npt.NDArray[np.float64]
) -> tuple[_Int64, _Int64, npt.NDArray[np.float64]]:
    """Return the binding chains that have a measured delay, with this delay added to their lengths.

    Each of these chains leads to the end of a call that was delayed by its own rank, not by another rank.
    """
    delays = _delays(graph)
    rows = np.flatnonzero((graph.type == JoinType.CHAIN) & (delays > 0))
    late_source, late_target = (side[rows].astype(np.int64) for side in (graph.edges.source, graph.edges.target))
    count = len(graph.time_ns) + len(source) + 1
    keys, wanted = source * count + target, late_source * count + late_target
    order = np.argsort(keys)
    place = np.searchsorted(keys[order], wanted).clip(max=max(0, len(keys) - 1))
    is_known = keys[order][place] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
    rows, late_source, late_target, place = (values[is_known] for values in (rows, late_source, late_target, place))
    return late_source, late_target, length[order][place] + delays[rows]
