"""Join the graphs of all ranks at the calls in which ranks wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, binding_edges, has_cycle, slacks
from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.job_calls import JobCalls
from holotrace.enrich.job_graph.job_edges import JoinEdges, JoinType, between_ranks, to_the_ends, within_ranks
from holotrace.enrich.job_graph.joined_calls import joined_calls, joints, placed_calls
from holotrace.enrich.job_graph.rank_graph import RankGraph

_Int64 = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

NO_EDGE = -1
_BETWEEN_RANKS = (JoinType.ARRIVAL, JoinType.TRANSFER, JoinType.ALONE)


@dataclass(frozen=True, eq=False)
class JobGraph(EqualByContent):
    """The points of all ranks on one clock, and the edges between them.

    The first point is the start of the job's step, when the first rank begins. The last point is the end of the step,
    when the last rank ends.

    rank       per point: its rank; -1 for the start and end of the step, and for joints (the points where all ranks of
               a call have arrived)
    node       per point: its row in its rank's `EventGraph.nodes`
    time_ns    per point: on the reference clock
    edges      source and target
    type       per edge: JoinType
    length_ns  per edge: its minimum duration
    call       per edge: row of `calls` for TRANSFER, ALONE and ARRIVAL, else -1
    binding    per point: the edge that arrives last, -1 for the first point
    calls      rows of `JobCalls.calls` within the windows, in the same order, with the columns start, end and arrival
               (points), is_waiting (whether the rank left after all had arrived) and is_complete (whether all ranks of
               the call were recorded)
    """

    rank: npt.NDArray[np.int32]
    node: _Int64
    time_ns: _Int64
    edges: Edges
    type: npt.NDArray[np.uint8]
    length_ns: _Int64
    call: _Int64
    binding: _Int64
    calls: pl.DataFrame

    @property
    def duration_ns(self) -> int:
        """The length of the job's step."""
        return int(self.time_ns[-1] - self.time_ns[0])

    def taken_ns(self) -> _Int64:
        """Return how long each edge took: at most its `length_ns`, except that edges in `binding` took the measured time."""
        measured = np.maximum(0, self.time_ns[self.edges.target] - self.time_ns[self.edges.source])
        taken: _Int64 = np.minimum(self.length_ns, measured)
        binds = self.binding[self.binding != NO_EDGE]
        taken[binds] = measured[binds]
        return taken

    def slack_ns(self) -> _Int64:
        """Return by how much each point could be delayed without delaying the end of the step."""
        measured = self.time_ns[self.edges.target] - self.time_ns[self.edges.source]
        return slacks(self.edges, np.maximum(0, measured - self.taken_ns()))

    def contradicted(self) -> _Flags:
        """Return, for each edge, whether the measured time between its points is shorter than its minimum duration."""
        return self.time_ns[self.edges.source] + self.length_ns > self.time_ns[self.edges.target]


def job_graph(of_ranks: Mapping[int, RankGraph], job: JobCalls) -> JobGraph:
    """Join the graphs of all ranks.

    Args:
        of_ranks: {rank: its reduced graph}, for the ranks with known clocks.
        job: the calls of the job.
    """
    first = 1 + np.cumsum([0, *(len(graph.time_ns) for graph in of_ranks.values())])
    aligned = [_aligned(job, rank, graph.time_ns) for rank, graph in of_ranks.items()]
    begin_ns = min(int(times[0]) for times in aligned)
    calls = placed_calls(of_ranks, job, first, np.concatenate([[begin_ns], *aligned]))
    all_arrived = joints(calls)
    end_ns = max(int(times[-1]) for times in aligned)
    time_ns = np.concatenate([[begin_ns], *aligned, all_arrived["joint_ns"].to_numpy(), [end_ns]]).astype(np.int64)
    calls = joined_calls(calls, all_arrived, int(first[-1]))
    parts = [
        *within_ranks(of_ranks, first, time_ns),
        *between_ranks(calls, begin_ns),
        *to_the_ends(first, time_ns),
    ]
    source, target, kind, length_ns, call = _without_cycle(time_ns, parts)
    edges = Edges(len(time_ns), source.astype(np.uint32), target.astype(np.uint32))
    arrival_ns = np.minimum(time_ns[edges.source] + length_ns, time_ns[edges.target])
    sizes = [len(graph.time_ns) for graph in of_ranks.values()]
    between = np.full(len(all_arrived) + 1, -1)
    rank = np.concatenate([[-1], np.repeat(list(of_ranks), sizes), between])
    node = np.concatenate([[0], *(graph.node for graph in of_ranks.values()), np.zeros_like(between)])
    return JobGraph(
        rank=rank.astype(np.int32),
        node=node.astype(np.int64),
        time_ns=time_ns,
        edges=edges,
        type=kind,
        length_ns=length_ns,
        call=call,
        binding=binding_edges(edges, arrival_ns),
        calls=calls,
    )


def _without_cycle(
    time_ns: _Int64, parts: Sequence[JoinEdges]
) -> tuple[_Int64, _Int64, npt.NDArray[np.uint8], _Int64, _Int64]:
    """Combine the edges, and break cycles, which are caused by wrongly matched calls or wrong clocks.

    If there are cycles, edges between ranks are dropped: first those that end before they start and, if cycles remain,
    also those that take 0 ns.
    """
    source, target, length_ns, call = (
        np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)
        for name in ("source", "target", "length_ns", "call")
    )
    kind = np.concatenate([np.full(len(part.source), part.type, np.uint8) for part in parts])
    lasts_ns = time_ns[target] - time_ns[source]
    is_between = np.isin(kind, _BETWEEN_RANKS)
    everything = np.ones(len(source), np.bool_)
    for kept in (everything, ~is_between | (lasts_ns >= 0), ~is_between | (lasts_ns > 0)):
        if not has_cycle(Edges(len(time_ns), source[kept].astype(np.uint32), target[kept].astype(np.uint32))):
            break
    return source[kept], target[kept], kind[kept], length_ns[kept], call[kept]


def _aligned(job: JobCalls, rank: int, time_ns: _Int64) -> _Int64:
    """Convert a rank's times to the reference clock; raise those that precede the first result to the first result."""
    offset = job.clocks.corrections(rank, time_ns)["offset_ns"].fill_null(strategy="forward")
    times: _Int64 = time_ns + offset.fill_null(strategy="backward").to_numpy()
    from_begin: _Int64 = np.maximum(times, times[0])
    return from_begin
