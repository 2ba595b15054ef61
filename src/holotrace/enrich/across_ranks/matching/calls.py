"""Extracts the communication of one rank, to match it with the communication of other ranks.

Matching needs only the `OfRank` of each rank, which takes about 30 bytes per call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from holotrace.enrich.across_ranks.matching.c10d_operators import (
    asked_by_operators,
    peer_in_name,
    with_exchange_operators,
)
from holotrace.enrich.across_ranks.matching.groups import GROUP_ARGS, ProcessGroup, configured_groups, groups_of_calls
from holotrace.enrich.collectives.batches import batches
from holotrace.enrich.collectives.collectives import (
    FAMILIES,
    POINT_TO_POINT,
    SAME_SIZE,
    answers,
    communication,
    stable_numbers,
)
from holotrace.enrich.collectives.element_types import element_bytes, type_name
from holotrace.enrich.collectives.splits import splits
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.steps.steps import window_of, windows
from holotrace.store.derived import derived_under_rules
from holotrace.store.tables.packed_tables import reduced
from holotrace.store.trace import RankTrace

Family = pl.Enum(FAMILIES)
"""The kinds of communication: `all_reduce`, …, `send`, `recv`, and `unknown`."""

_EVEN = "base|tensor"
"""Matches all-gathers and reduce-scatters of a single tensor: `_allgather_base`, `reduce_scatter_tensor_coalesced`."""

_ARGS = (
    *GROUP_ARGS,
    "in_elements",
    "out_elements",
    "in_split_sizes",
    "source_rank",
    "destination_rank",
    "is_asynchronous",
)
_TEXTS = ("group_ranks", "group_description", "in_split_sizes")


COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_index": pl.UInt32,
    "family": Family,
    "dtype": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "asked_ns": pl.Int64,
    "window": pl.Int64,
    "group": pl.UInt64,
    "sequence": pl.Int64,
    "communication_id": pl.UInt64,
    "content": pl.UInt64,
    "in_bytes": pl.Int64,
    "out_bytes": pl.Int64,
    "is_even": pl.Boolean,
    "in_splits": pl.List(pl.Int64),
    "sent_bytes": pl.Int64,
    "partners": pl.List(pl.Int64),
    "peer": pl.Int32,
    "group_peer": pl.Int32,
    "tag": pl.Int64,
    "stream": pl.Int64,
    "is_asynchronous": pl.Boolean,
}
"""Columns of `OfRank.calls`."""


class RankFacts(NamedTuple):
    """Facts about a rank as a whole.

    host        name of the host; the path of the trace file if the name was not recorded
    world_size  number of ranks of the job; None if unknown
    groups      the process groups in the header and in the rank's calls
    """

    host: str
    world_size: int | None
    groups: tuple[ProcessGroup, ...]


class OfRank(NamedTuple):
    """The calls of a rank, and the facts needed to match them. Pickling compresses the tables."""

    calls: pl.DataFrame
    facts: RankFacts

    def __reduce__(self) -> tuple[Any, ...]:
        """Compress the tables for pickling, so that a call takes about 30 bytes instead of 150."""
        return reduced(self)


def of_rank(rank_trace: RankTrace, annotation: str | None = None) -> OfRank:
    """Return the calls of a rank, and the facts needed to match them with the calls of other ranks.

    Args:
        rank_trace: the rank.
        annotation: name of the annotations to use in place of steps; see `holotrace.enrich.steps.steps.windows`.

    Returns:
        calls: one row per call, sorted by start_ns:

        event_index        uint32  the kernel or, if the host itself performs the call, the annotation
        family             Enum    all_reduce, …, send, recv, or `unknown`
        dtype              str     PyTorch's name of the element type; null if unknown
        start_ns, end_ns   int64
        asked_ns           int64   when the host requested the call; null if before the recording
        window             int64   the step in which the host requested the call; null outside all steps
        group              uint64  number of its process group, see `ProcessGroup`; null if unknown
        sequence           int64   number of the call within its group; null if not recorded
        communication_id   uint64  null if not recorded
        content            uint64  a hash of the element type, and of the size if it must be equal on all ranks
        in_bytes           int64   this rank's input; null if unknown
        out_bytes          int64   this rank's output; null if unknown
        is_even            bool    whether an all-to-all sends the same amount to every rank; null if unknown
        in_splits          list[int64]  how many rows an all-to-all sends to each rank, in group order; null if
                                 PyTorch recorded no list or a truncated one
        sent_bytes         int64   bytes that an all-to-all sends to other ranks; null if in_splits is null
        partners           list[int64]  partners of a batch: r for a send to rank r, -1 - r for a receive from rank r;
                                 null if unknown
        peer               int32   the other rank of a send or receive; null if unknown
        group_peer         int32   the peer's number within the group, if only this number is recorded
        tag                int64   tag of a send or receive; null if unknown
        stream             int64   null on the host
        is_asynchronous    bool    null if unknown
    """
    return _of_rank(rank_trace, annotation)


def calls(rank_trace: RankTrace, annotation: str | None = None) -> pl.DataFrame:
    """Return only the table `calls` that `of_rank` returns, without the facts."""
    return of_rank(rank_trace, annotation).calls


@derived_under_rules
def _of_rank(rank_trace: RankTrace, annotation: str | None) -> OfRank:
    known = _with_operators(rank_trace, _with_args(rank_trace, _with_batches(rank_trace)))
    group, of_calls = groups_of_calls(known, rank_trace.header)
    groups = tuple(dict.fromkeys((*configured_groups(rank_trace.header), *of_calls)))
    facts = RankFacts(
        host=rank_trace.header.host_name or rank_trace.source,
        world_size=rank_trace.header.world_size,
        groups=groups,
    )
    within = window_of(windows(rank_trace, annotation), known["asked_ns"]).alias("window")
    placed = known.with_columns(group, within, _position_in_group(group, of_calls, rank_trace.rank))
    return OfRank(placed.select(_VALUES), facts)


def _with_batches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls of a rank, with the partners of each batch of sends and receives.

    `described_index` is the event that describes a call. If a batch has no such event, it is the batch's first send or
    receive.
    """
    rows = communication(rank_trace)
    known = rows.hstack(batches(rank_trace, rows))
    return known.with_columns(pl.coalesce("described_index", "first_index").alias("described_index")).drop(
        "first_index"
    )


def _with_args(rank_trace: RankTrace, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the streams of the calls, and the args of the events that describe the calls."""
    args = of_events(rank_trace.table("collectives", ["event_index", *_ARGS]), rows["described_index"])
    texts = args.with_columns(rank_trace.texts(args[column]) for column in _TEXTS)
    streams = of_events(device_work(rank_trace).select("event_index", "stream"), rows["event_index"])
    known = rows.drop("group").hstack(texts).hstack(streams)
    dtype = answers(known["dtype"], type_name, pl.String).alias("dtype")
    sizes = answers(known["dtype"], element_bytes, pl.Int64).alias("element_bytes")
    return known.with_columns(dtype, sizes).with_columns(_content(known.with_columns(dtype)))


def _with_operators(rank_trace: RankTrace, known: pl.DataFrame) -> pl.DataFrame:
    """Add group_peer and tag, and the request times of calls that the host itself performs."""
    if known["stream"].null_count() == len(known):
        return known.with_columns(asked_by_operators(rank_trace, known))
    complete = with_exchange_operators(rank_trace, known)
    has_pairs = known["family"].is_in(POINT_TO_POINT).any()
    peer = peer_in_name(rank_trace, known["described_index"]) if has_pairs else pl.lit(None, pl.Int32)
    return complete.with_columns(peer.alias("group_peer"), pl.lit(None, pl.Int64).alias("tag"))


def _content(known: pl.DataFrame) -> pl.Series:
    """Return a hash of the element type, and of the size if the call has the same size on all ranks."""
    is_even = pl.col("family").is_in(SAME_SIZE | {"send", "recv"}) | pl.col("recorded_collective").str.contains(_EVEN)
    size = pl.when(is_even).then(pl.col("byte_count").cast(pl.String)).fill_null("")
    texts = known.select(content=pl.format("{} {}", pl.col("dtype").fill_null(""), size))
    return stable_numbers(texts["content"])


def _position_in_group(group: pl.Series, groups: tuple[ProcessGroup, ...], rank: int) -> pl.Series:
    """Return, for each call, the number of this rank within the call's group; null if unknown."""
    positions = {known.number: known.ranks.index(rank) for known in groups if known.ranks and rank in known.ranks}
    return group.replace_strict(positions, default=None, return_dtype=pl.Int64).alias("position")


_VALUES = (
    pl.col("event_index"),
    pl.col("family").cast(Family),
    pl.col("dtype"),
    pl.col("start_ns"),
    pl.col("end_ns"),
    pl.col("asked_ns"),
    pl.col("window"),
    pl.col("group"),
    pl.col("sequence"),
    pl.when(pl.col("communication_id") > 0).then("communication_id"),
    pl.col("content"),
    pl.col("byte_count").alias("in_bytes"),
    (pl.col("out_elements") * pl.col("element_bytes")).alias("out_bytes"),
    *splits(),
    pl.col("partners"),
    pl.when(pl.col("family") == "send")
    .then("destination_rank")
    .when(pl.col("family") == "recv")
    .then("source_rank")
    .cast(pl.Int32)
    .alias("peer"),
    pl.col("group_peer"),
    pl.col("tag"),
    pl.col("stream"),
    pl.col("is_asynchronous"),
)
