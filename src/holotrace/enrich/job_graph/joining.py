"""The graphs of all ranks, joined at the calls in which ranks wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, binding_edges, has_cycle, slacks
from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.job_calls import JobCalls
from holotrace.enrich.collectives.collectives import POINT_TO_POINT
from holotrace.enrich.job_graph.rank_graph import RankGraph

_Int64 = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

NO_EDGE = -1
_FOREVER_NS = 2**62


class JoinType(IntEnum):
    """The kind of an edge between points of a job."""

    CHAIN = 0
    """The binding chain of a rank from one of its points to another."""
    SHORTCUT = 1
    """Another way within a rank."""
    ARRIVAL = 2
    """From the arrival of a rank in a call to the point at which all have arrived."""
    TRANSFER = 3
    """From there to the end of the call on a rank."""
    ALONE = 4
    """A call from its start to its end, without knowledge of other ranks."""
    OUTSIDE = 5
    """From the start of the step to the arrival of a rank outside its window."""
    WINDOW = 6
    """From the start of the job's step to a rank, and from the end of a rank to the end of the job's step."""


_BETWEEN_RANKS = (JoinType.ARRIVAL, JoinType.TRANSFER, JoinType.ALONE)


@dataclass(frozen=True, eq=False)
class JobGraph(EqualByContent):
    """The points of all ranks on one clock, and the ways between them.

    The first point is the start of the job's step, when the first rank begins; the last its end, when the last rank
    has ended.

    rank       per point: its rank; -1 for the ends of the step and for points at which all have arrived
    node       per point: its row in the `EventGraph.nodes` of its rank
    time_ns    per point: on the reference clock
    edges      source and target
    type       per edge: JoinType
    length_ns  per edge: the least time it takes
    call       per edge: row of `calls` for TRANSFER and ALONE and ARRIVAL, else -1
    binding    per point: the edge that arrives last, -1 for the first point
    calls      rows of `JobCalls.calls` in the windows of the ranks, in that order, with the columns start, end and arrival
               (points), is_waiting (whether the rank left after all had arrived) and is_complete (whether all
               ranks of the call were recorded)
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
        """Return the time that each edge took: with the delay on binding edges, and at most what was measured."""
        measured = np.maximum(0, self.time_ns[self.edges.target] - self.time_ns[self.edges.source])
        taken: _Int64 = np.minimum(self.length_ns, measured)
        binds = self.binding[self.binding != NO_EDGE]
        taken[binds] = measured[binds]
        return taken

    def slack_ns(self) -> _Int64:
        """Return how much later each point could be without the step ending later."""
        measured = self.time_ns[self.edges.target] - self.time_ns[self.edges.source]
        return slacks(self.edges, np.maximum(0, measured - self.taken_ns()))

    def contradicted(self) -> _Flags:
        """Return whether each edge ends before it begins, by the clocks."""
        return self.time_ns[self.edges.source] + self.length_ns > self.time_ns[self.edges.target]


class _Part(NamedTuple):
    """Edges of one kind."""

    source: _Int64
    target: _Int64
    type: JoinType
    length_ns: _Int64
    call: _Int64


def job_graph(of_ranks: Mapping[int, RankGraph], job: JobCalls) -> JobGraph:
    """Join the graphs of all ranks.

    Args:
        of_ranks: the reduced graphs, of ranks whose clocks are known.
        job: the calls of the job.
    """
    first = 1 + np.cumsum([0, *(len(graph.time_ns) for graph in of_ranks.values())])
    aligned = [_aligned(job, rank, graph.time_ns) for rank, graph in of_ranks.items()]
    begin_ns = min(int(times[0]) for times in aligned)
    calls = _calls(of_ranks, job, first, np.concatenate([[begin_ns], *aligned]))
    joints = _joints(calls)
    end_ns = max(int(times[-1]) for times in aligned)
    time_ns = np.concatenate([[begin_ns], *aligned, joints["joint_ns"].to_numpy(), [end_ns]]).astype(np.int64)
    calls = _joined(calls, joints, int(first[-1]))
    parts = [
        *_within_ranks(of_ranks, first, time_ns),
        *_between_ranks(calls, begin_ns),
        *_windows(first, time_ns),
    ]
    source, target, kind, length_ns, call = _without_cycle(time_ns, parts)
    edges = Edges(len(time_ns), source.astype(np.uint32), target.astype(np.uint32))
    arrival_ns = np.minimum(time_ns[edges.source] + length_ns, time_ns[edges.target])
    sizes = [len(graph.time_ns) for graph in of_ranks.values()]
    return JobGraph(
        rank=np.concatenate([[-1], np.repeat(list(of_ranks), sizes), np.full(len(joints) + 1, -1)]).astype(np.int32),
        node=np.concatenate(
            [[0], *(graph.node for graph in of_ranks.values()), np.zeros(len(joints) + 1, np.int64)]
        ).astype(np.int64),
        time_ns=time_ns,
        edges=edges,
        type=kind,
        length_ns=length_ns,
        call=call,
        binding=binding_edges(edges, arrival_ns),
        calls=calls,
    )


def _without_cycle(
    time_ns: _Int64, parts: Sequence[_Part]
) -> tuple[_Int64, _Int64, npt.NDArray[np.uint8], _Int64, _Int64]:
    """Join the parts; if wrong matches or clocks make a cycle, drop edges between ranks that lead back or take no time."""
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
    """Return the times of a rank on the reference clock, never before the first."""
    offset = job.clocks.corrections(rank, time_ns)["offset_ns"].fill_null(strategy="forward")
    times: _Int64 = time_ns + offset.fill_null(strategy="backward").to_numpy()
    from_begin: _Int64 = np.maximum(times, times[0])
    return from_begin


def _calls(of_ranks: Mapping[int, RankGraph], job: JobCalls, first: _Int64, time_ns: _Int64) -> pl.DataFrame:
    """Return the calls that a point belongs to, and the calls of other ranks that belong to the same instance.

    arrives_ns and ends_ns are on the reference clock; arrival, start and end are null for calls outside the windows.
    """
    points = pl.concat(
        graph.calls.select(
            pl.lit(rank, pl.Int32).alias("rank"),
            "event_index",
            *((pl.col(name).cast(pl.Int64) + int(begin)).alias(name) for name in ("asked", "start", "end")),
            pl.Series("awaited_ns", _awaited_ns(graph), pl.Int64),
        )
        for (rank, graph), begin in zip(of_ranks.items(), first, strict=False)
    )
    rows = job.calls.with_row_index("row").join(points, on=["rank", "event_index"], how="left", maintain_order="left")
    inside = rows.filter(pl.col("start").is_not_null())
    concerned = rows.filter(
        pl.col("start").is_not_null() | pl.col("instance").is_in(inside["instance"].drop_nulls().unique().implode())
    )
    # A host sends and receives from its request on: PyTorch's annotation begins later.
    from_request = pl.col("collective").is_in(POINT_TO_POINT) & pl.col("stream").is_null()
    arrival = pl.when(from_request).then("asked").otherwise("start")
    early = pl.when(from_request & pl.col("asked_ns").is_not_null()).then(pl.col("start_ns") - pl.col("asked_ns"))
    placed = concerned.with_columns(arrival.alias("arrival"))
    times = pl.Series("time_ns", time_ns)
    return placed.with_columns(
        pl.coalesce(times.gather(placed["arrival"]), pl.col("aligned_start_ns") - early.fill_null(0)).alias(
            "arrives_ns"
        ),
        pl.coalesce(times.gather(placed["end"]), "aligned_end_ns").alias("ends_ns"),
        times.gather(placed["start"]).alias("starts_ns"),
    ).drop_nulls("arrives_ns")


def _awaited_ns(graph: RankGraph) -> _Int64:
    """Return for how long each call lasted after the last event of its own rank that leads to its end.

    A thread that waits late for a receive says nothing about when the message arrived.
    """
    ends = graph.calls["end"].to_numpy()
    reached = graph.reached_from[ends]
    ready_ns = graph.time_ns[np.maximum(reached, 0)] + graph.chain_ns[ends]
    lasted: _Int64 = np.where(reached >= 0, graph.time_ns[ends] - ready_ns, _FOREVER_NS)
    return np.maximum(0, lasted)


def _joints(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the instances in which ranks wait: when all had arrived, and how long the transfer took from then on."""
    members = calls.drop_nulls("instance").with_columns(
        pl.col("arrives_ns").max().over("instance").alias("joint_ns"),
        pl.when(pl.col("clock").n_unique().over("instance") > 1)
        .then(2 * pl.col("half_width_ns").max().over("instance"))
        .otherwise(0)
        .alias("doubt_ns"),
    )
    waits = pl.col("ends_ns") >= pl.col("joint_ns") - pl.col("doubt_ns").fill_null(0)
    after = (pl.col("ends_ns") - pl.col("joint_ns")).clip(0)
    is_awaited = waits & (pl.col("awaited_ns") >= after)
    # A thread that began to wait after the last arrival says only that the transfer took at most this long: others of
    # this kind and size, which a thread or device awaited from the start, say how long it usually takes.
    usual = after.filter(is_awaited).median().over(["process_group", "collective", "message_bytes"]).cast(pl.Int64)
    members = members.with_columns(
        pl.when(is_awaited)
        .then(after)
        .otherwise(pl.min_horizontal(after, pl.coalesce(usual, "awaited_ns")))
        .alias("transfer_after_ns")
    )
    return (
        members.group_by("instance", maintain_order=True)
        .agg(
            pl.col("joint_ns").first(),
            pl.col("doubt_ns").first(),
            pl.col("transfer_after_ns").filter(waits).min().alias("least_transfer_ns"),
            (waits & pl.col("end").is_not_null()).any().alias("is_joint"),
            pl.len().alias("member_count"),
        )
        .filter("is_joint", pl.col("member_count") > 1)
        .drop("is_joint")
    )


def _joined(calls: pl.DataFrame, joints: pl.DataFrame, first: int) -> pl.DataFrame:
    """Add the joint of each call, and the last arrival before the end of calls that end before all have arrived."""
    numbered = joints.with_columns(pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("joint"))
    known = calls.join(numbered, on="instance", how="left", maintain_order="left").with_row_index("call")
    waits = pl.col("ends_ns") >= pl.col("joint_ns") - pl.col("doubt_ns").fill_null(0)
    with_waits = known.with_columns(
        (waits & pl.col("end").is_not_null()).fill_null(value=False).alias("is_waiting"),
        (pl.col("member_count") >= pl.col("group_size")).fill_null(value=False).alias("is_complete"),
    )
    arrivals = (
        with_waits.drop_nulls("instance")
        .select("instance", pl.col("arrives_ns").alias("before_ns"), pl.col("arrival").alias("before"))
        .sort("before_ns")
    )
    early = with_waits.filter(~pl.col("is_waiting") & pl.col("end").is_not_null()).sort("ends_ns")
    last = early.join_asof(
        arrivals, left_on="ends_ns", right_on="before_ns", by="instance", check_sortedness=False
    ).select("call", "before", "before_ns")
    return with_waits.join(last, on="call", how="left", maintain_order="left")


def _within_ranks(of_ranks: Mapping[int, RankGraph], first: _Int64, time_ns: _Int64) -> list[_Part]:
    """Return the binding chains first, so that they bind where others arrive at the same time."""
    chains, shortcuts = [], []
    for graph, begin in zip(of_ranks.values(), first, strict=False):
        targets = np.flatnonzero(graph.reached_from >= 0)
        sources = graph.reached_from[targets]
        offset = begin + targets
        measured = time_ns[offset] - time_ns[begin + sources]
        is_whole = graph.time_ns[targets] - graph.time_ns[sources] == graph.chain_ns[targets]
        # The clocks may run at different rates, so a whole chain takes as long as the reference clock says.
        lengths = np.where(is_whole, measured, np.minimum(graph.chain_ns[targets], measured))
        chains.append(_Part(begin + sources, offset, JoinType.CHAIN, lengths, np.full(len(targets), -1)))
        shortcuts.append(
            _Part(
                begin + graph.source.astype(np.int64),
                begin + graph.target.astype(np.int64),
                JoinType.SHORTCUT,
                graph.length_ns,
                np.full(len(graph.source), -1),
            )
        )
    return [*chains, *shortcuts]


def _between_ranks(calls: pl.DataFrame, begin_ns: int) -> list[_Part]:
    """Return the edges of the calls."""
    joint = calls.filter(pl.col("joint").is_not_null())
    present, absent = joint.filter(pl.col("arrival").is_not_null()), joint.filter(pl.col("arrival").is_null())
    waiting = joint.filter("is_waiting")
    rest = calls.filter(~pl.col("is_waiting") & pl.col("end").is_not_null())
    is_unmatched, is_outside = pl.col("before_ns").is_null(), pl.col("before").is_null()
    source = pl.when(is_unmatched).then("start").when(is_outside).then(0).otherwise("before")
    since = pl.when(is_unmatched).then("starts_ns").when(is_outside).then(begin_ns).otherwise("before_ns")
    alone = rest.with_columns(source.alias("source"), (pl.col("ends_ns") - since).clip(0).alias("length_ns"))
    return [
        _part(present, "arrival", "joint", JoinType.ARRIVAL, pl.lit(0)),
        _part(absent, pl.lit(0), "joint", JoinType.OUTSIDE, (pl.col("arrives_ns") - begin_ns).clip(0)),
        _part(waiting, "joint", "end", JoinType.TRANSFER, "least_transfer_ns"),
        _part(alone, "source", "end", JoinType.ALONE, "length_ns"),
        _part(calls.drop_nulls("end"), "start", "end", JoinType.ALONE, pl.lit(0)),
    ]


def _part(calls: pl.DataFrame, source: str | pl.Expr, target: str, kind: JoinType, length_ns: str | pl.Expr) -> _Part:
    named = {"source": source, "target": target, "length_ns": length_ns, "call": "call"}
    columns = calls.select(
        (pl.col(value) if isinstance(value, str) else value).cast(pl.Int64).alias(name) for name, value in named.items()
    )
    arrays = {name: columns[name].to_numpy() for name in named}
    return _Part(arrays["source"], arrays["target"], kind, arrays["length_ns"], arrays["call"])


def _windows(first: _Int64, time_ns: _Int64) -> list[_Part]:
    begins, ends = first[:-1], first[1:] - 1
    none = np.full(len(begins), -1)
    last = np.full(len(ends), len(time_ns) - 1)
    return [
        _Part(np.zeros(len(begins), np.int64), begins, JoinType.WINDOW, time_ns[begins] - time_ns[0], none),
        _Part(ends, last, JoinType.WINDOW, np.zeros(len(ends), np.int64), none),
    ]
