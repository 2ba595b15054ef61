"""Find the operations of a job in the traces of its ranks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import polars as pl

from holotrace.enrich.across_ranks.axes import Axis, axes_of_groups
from holotrace.enrich.across_ranks.job_calls import JobCalls, job_calls
from holotrace.enrich.across_ranks.uses import uses_of_groups
from holotrace.enrich.collectives.collectives import POINT_TO_POINT
from holotrace.enrich.job.rank_tables import of_all_ranks
from holotrace.enrich.job_operations.rank_operations import RankOperations
from holotrace.enrich.job_operations.table import STEP_START, operations_table


class JobOperations(NamedTuple):
    """The operations of a job.

    table     `operations_table`
    findings  operations that could not be matched, aligned or assigned to a stage
    """

    table: pl.DataFrame
    findings: tuple[str, ...]


def job_operations(of_ranks: Mapping[int, RankOperations]) -> JobOperations:
    """Combine the operations of all ranks, with all times on one clock, and set the kinds of the communications.

    Ranks that send to or receive from each other are the stages of one pipeline, in order of rank, even if some of the
    ranks were not recorded. `dp_rank` numbers the pipelines or, in a job without pipelines, the ranks.
    """
    job = job_calls({rank: known.communicating for rank, known in of_ranks.items()})
    steps = of_all_ranks({rank: known.steps for rank, known in of_ranks.items()})
    began = of_all_ranks({rank: known.began_ns for rank, known in of_ranks.items()})
    computed = of_all_ranks({rank: known.computation for rank, known in of_ranks.items()})
    passes = of_all_ranks({rank: known.in_forward for rank, known in of_ranks.items()})
    asked = job.calls.with_columns(pl.lit(None, pl.String).alias("module")).join(
        passes, on=["rank", "event_index"], how="left", maintain_order="left"
    )
    axes = axes_of_groups(job.groups, uses_of_groups(asked))
    places = _places(list(of_ranks), job.calls, axes)
    calls = _ended_together(_named(_begun(job.calls, began), computed, places, axes))
    computation = _from_last_call(_aligned(job, computed), calls)
    rows = pl.concat([_late_starts(_aligned(job, steps)), computation, calls], how="diagonal_relaxed").select(
        "rank", "step", "kind", "sequence", "start_ns", "duration_ns", *_OF_SOME
    )
    placed = rows.join(places, on="rank")
    return JobOperations(placed if placed.is_empty() else operations_table(placed), job.findings)


_OF_SOME = ("microbatch", "global_chunk", "instance", "message_bytes")


def _late_starts(steps: pl.DataFrame) -> pl.DataFrame:
    """Return one operation per rank and step: it lasts from the first rank's start until this rank's start."""
    first = pl.col("start_ns").min().over("step")
    late = steps.select("rank", "step", first.alias("start_ns"), (pl.col("start_ns") - first).alias("duration_ns"))
    return late.with_columns(pl.lit(STEP_START).alias("kind"), pl.lit(0, pl.Int64).alias("sequence"))


def _begun(calls: pl.DataFrame, began: pl.DataFrame) -> pl.DataFrame:
    """Return the calls within steps; a call with a `began_ns` starts then instead of at its recorded start."""
    known = calls.drop_nulls("step").join(began, on=["rank", "event_index"], how="left", maintain_order="left")
    earlier = (pl.col("start_ns") - pl.col("began_ns")).fill_null(0)
    start = pl.coalesce("aligned_start_ns", "start_ns") - earlier
    end = pl.coalesce("aligned_end_ns", "end_ns")
    return known.with_columns(start.alias("start_ns"), (end - start).clip(0).alias("duration_ns"))


def _ended_together(calls: pl.DataFrame) -> pl.DataFrame:
    """Make a message's send and receive both end at the earlier of their two ends.

    If a host waits for a message only long after it arrived, for instance at the end of the step, the recorded end of
    the host's call is too late. But if one call ends before the other starts, both keep their ends.
    """
    end, last_start = pl.col("start_ns") + pl.col("duration_ns"), pl.col("start_ns").max().over("instance")
    marked = calls.with_columns(end.alias("end_ns"), last_start.alias("last_start")).with_columns(
        pl.when(pl.col("end_ns") >= pl.col("last_start")).then("end_ns").alias("joint_end")
    )
    first_end = pl.col("joint_end").min().over("instance")
    is_shared = pl.col("collective").is_in(POINT_TO_POINT) & pl.col("instance").is_not_null()
    ended = pl.when(is_shared & pl.col("joint_end").is_not_null()).then(first_end).otherwise("end_ns")
    return marked.with_columns((ended - pl.col("start_ns")).alias("duration_ns")).drop(
        "end_ns", "last_start", "joint_end"
    )


def _from_last_call(computation: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Move the start of each computation back to the end of the call or computation that ended last before it."""
    ended = calls.select("rank", "step", (pl.col("start_ns") + pl.col("duration_ns")).alias("last_end"))
    ordered = computation.sort("start_ns").with_columns(
        (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
        (pl.col("start_ns") + pl.col("duration_ns")).shift(1).over("rank", "step").alias("previous_end"),
    )
    known = ordered.join_asof(
        ended.sort("last_end"),
        left_on="start_ns",
        right_on="last_end",
        by=["rank", "step"],
        strategy="backward",
        check_sortedness=False,
        coalesce=False,
    )
    ready = pl.coalesce(pl.max_horizontal("last_end", "previous_end"), "start_ns")
    begun = pl.min_horizontal(ready, "start_ns")
    return known.with_columns(begun.alias("start_ns"), (pl.col("end_ns") - begun).alias("duration_ns"))


def _aligned(job: JobCalls, own_times: pl.DataFrame) -> pl.DataFrame:
    on_one_clock = job.clocks.aligned(own_times)
    start, end = (pl.coalesce(f"aligned_{name}", name) for name in ("start_ns", "end_ns"))
    return on_one_clock.with_columns(start.alias("start_ns"), (end - start).clip(0).alias("duration_ns"))


def _places(ranks: list[int], calls: pl.DataFrame, axes: Mapping[int, Axis]) -> pl.DataFrame:
    """Return a table with the dp_rank and the stage of each rank."""
    other_axes = [group for group, axis in axes.items() if axis.name not in {"pp", "world", "unknown"}]
    messages = calls.filter(
        pl.col("collective").is_in(POINT_TO_POINT) & ~pl.col("group").is_in(other_axes).fill_null(value=False)
    )
    pairs = messages.select("rank", "peer").drop_nulls().unique().rows()
    pipelines = _connected({*ranks, *(rank for pair in pairs for rank in pair)}, pairs)
    rows = [(rank, number, stage) for number, stages in enumerate(pipelines) for stage, rank in enumerate(stages)]
    return pl.DataFrame(rows, {"rank": pl.Int32, "dp_rank": pl.Int64, "stage": pl.Int64}, orient="row")


def _connected(ranks: Collection[int], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return sorted lists of ranks that are connected by the pairs, directly or through other ranks.

    >>> _connected({0, 1, 2, 3}, [(3, 1)])
    [[0], [1, 3], [2]]
    """
    first = {rank: rank for rank in ranks}

    def root(rank: int) -> int:
        while first[rank] != rank:
            first[rank] = first[first[rank]]
            rank = first[rank]
        return rank

    for pair in pairs:
        low, high = sorted(map(root, pair))
        first[high] = low
    connected: dict[int, list[int]] = {}
    for rank in sorted(ranks):
        connected.setdefault(root(rank), []).append(rank)
    return list(connected.values())


def _named(calls: pl.DataFrame, computed: pl.DataFrame, places: pl.DataFrame, axes: Mapping[int, Axis]) -> pl.DataFrame:
    """Add `kind` and `sequence`; the kind starts with the direction of a message or the axis of a collective."""
    names = {group: axis.name for group, axis in axes.items()}
    axis = pl.col("group").replace_strict(names, default="unknown", return_dtype=pl.String).fill_null("unknown")
    collective = pl.col("collective").str.replace_all("_", "-")
    directed = calls.join(
        _directions(calls, computed, places), on=["rank", "event_index"], how="left", maintain_order="left"
    )
    kind = pl.when(pl.col("direction").is_not_null()).then(pl.col("direction") + "-" + collective)
    named = directed.with_columns(kind.otherwise(axis + "-" + collective).alias("kind"))
    order = pl.col("start_ns").rank("ordinal").over("step", "rank", "kind").cast(pl.Int64) - 1
    return named.with_columns(order.alias("sequence"), pl.col("instance").cast(pl.Int64))


def _directions(calls: pl.DataFrame, computed: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Infer each message's direction from the last pass before its send; if none is known, from the stages' order."""
    messages = calls.filter(pl.col("collective").is_in(POINT_TO_POINT))
    ended = computed.filter(pl.col("kind").is_in(["forward-compute", "backward-compute", "weight-compute"])).select(
        "rank", pl.col("end_ns").alias("time"), pl.col("kind").alias("pass")
    )
    own_clock = messages.with_columns(pl.col("began_ns").alias("time")).sort("time")
    sent = own_clock.join_asof(ended.sort("time"), on="time", by="rank", strategy="backward", check_sortedness=False)
    has_backward = ended.select((pl.col("pass") != "forward-compute").any()).item()
    by_pass = pl.when(pl.col("pass") == "forward-compute").then(pl.lit("forward")).otherwise(pl.lit("backward"))
    is_send = pl.col("collective") == "send"
    of_send = sent.with_columns(
        pl.when(is_send & pl.col("pass").is_not_null() & has_backward).then(by_pass).alias("own")
    )
    shared = pl.col("own").max().over("instance")
    stages = places.select("rank", "stage")
    placed = of_send.with_columns(pl.when(pl.col("instance").is_null()).then("own").otherwise(shared).alias("known"))
    both = placed.join(stages, on="rank", how="left").join(
        stages.rename({"rank": "peer", "stage": "peer_stage"}), on="peer", how="left"
    )
    onward = (pl.col("peer_stage") > pl.col("stage")) == is_send
    by_stage = pl.when(onward).then(pl.lit("forward")).when(~onward).then(pl.lit("backward"))
    return both.select("rank", "event_index", pl.coalesce("known", by_stage).alias("direction"))
