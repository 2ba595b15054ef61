"""Find the operations of one rank in its trace: communications, and the computation between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_before, distinct_times, holding, union
from holotrace.enrich.across_ranks.forward_calls import in_forward
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.collectives.collectives import POINT_TO_POINT
from holotrace.enrich.job_operations.phases import Phases, phases
from holotrace.enrich.job_operations.table import PREPARATION
from holotrace.enrich.steps.steps import device_extended_windows, rows_of_windows
from holotrace.store.trace import RankTrace

LEAST_WAIT_NS = 100_000
LEAST_WAIT = 0.5
"""A rank's idle time just before a call ends is treated as a wait for the call if it lasts at least `LEAST_WAIT_NS`, or
at least the fraction `LEAST_WAIT` of the call's duration."""

SMALL_PASS = 0.2
"""A computation is merged into a neighbouring computation if its busy time is below this fraction of the mean busy time
of computations of the same kind."""

Int64Array = npt.NDArray[np.int64]


class RankOperations(NamedTuple):
    """The operations of one rank.

    communicating  the rank's communication calls, and what is needed to match them with the calls of other ranks
    began_ns       event_index and began_ns of each call; sends and receives that run on the host begin when they are
                   requested, all other calls at their start
    computation    the computation between calls: step, kind, sequence, start_ns, end_ns, global_chunk, microbatch; rows
                   with equal step, kind and sequence belong to the same operation
    steps          step, start_ns, end_ns
    in_forward     event_index and in_forward of each call: whether the host requested it in the forward pass; null if
                   unknown
    """

    communicating: OfRank
    began_ns: pl.DataFrame
    computation: pl.DataFrame
    steps: pl.DataFrame
    in_forward: pl.DataFrame


def rank_operations(rank_trace: RankTrace) -> RankOperations:
    """Return the operations of a rank.

    Everything in a step except waiting for calls is treated as computation, even the host's idle time. A rank that
    sleeps or collects garbage therefore appears slow. Computation is split where a call begins and where the phase
    changes.
    """
    communicating = of_rank(rank_trace)
    steps = device_extended_windows(rank_trace).rename({"window": "step"})
    calls = communicating.calls
    began = began_ns(calls)
    known = phases(rank_trace)
    waits = _waits(began, calls["end_ns"].to_numpy(), known.busy)
    pieces = _pieces(steps, waits, began, known)
    is_message = calls["family"].cast(pl.String).is_in(["send", "recv", "send_recv"]).to_numpy()
    return RankOperations(
        communicating,
        pl.DataFrame([calls["event_index"], pl.Series("began_ns", began)]),
        _numbered(_passes(_prepared(pieces, calls, began), np.sort(began[is_message]))),
        steps,
        pl.DataFrame([calls["event_index"], in_forward(rank_trace, calls["asked_ns"])]),
    )


def began_ns(calls: pl.DataFrame) -> Int64Array:
    """Return when each call began; sends and receives that run on the host begin when they are requested."""
    is_host_message = pl.col("stream").is_null() & pl.col("family").cast(pl.String).is_in(POINT_TO_POINT)
    requested = pl.min_horizontal("asked_ns", "start_ns")
    return calls.select(pl.when(is_host_message).then(requested).otherwise("start_ns")).to_series().to_numpy()


def _waits(began: Int64Array, ended: Int64Array, busy: Intervals) -> Intervals:
    """Return the intervals in which the rank computes nothing and waits for a call to end."""
    idle_from = np.concatenate([[np.iinfo(np.int64).min], busy[1]])
    idle_to = np.concatenate([busy[0], [np.iinfo(np.int64).max]])
    gap = np.searchsorted(idle_from, ended, side="left") - 1
    waits_from = np.maximum(began, idle_from[gap])
    is_idle = (ended <= idle_to[gap]) & (ended > waits_from)
    length = ended - waits_from
    is_wait = is_idle & ((length >= LEAST_WAIT_NS) | (length >= LEAST_WAIT * (ended - began)))
    return union(waits_from[is_wait], ended[is_wait])


def _pieces(steps: pl.DataFrame, waits: Intervals, began: Int64Array, known: Phases) -> pl.DataFrame:
    """Remove the waits from the steps, then split the steps where a call begins and where the phase changes."""
    windows = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    changes = _changes(known.table)
    bounds = distinct_times(*windows, *waits, began, changes)
    starts, ends = bounds[:-1], bounds[1:]
    row = rows_of_windows(steps, starts)
    is_computing = (row >= 0) & (holding(waits, starts) < 0)
    starts, ends, row = starts[is_computing], ends[is_computing], row[is_computing]
    busy_ns = covered_before(known.busy, ends) - covered_before(known.busy, starts)
    columns = {"step": steps["step"].to_numpy()[row], "start_ns": starts, "end_ns": ends, "busy_ns": busy_ns}
    return pl.DataFrame(columns).hstack(_phase_of(known.table, starts, ends))


def _changes(table: pl.DataFrame) -> Int64Array:
    """Return the end of each range that is followed by a range of a different phase."""
    differs = pl.any_horizontal(
        pl.col("kind") != pl.col("kind").shift(-1), pl.col("action") != pl.col("action").shift(-1)
    )
    return table.filter(differs)["end_ns"].to_numpy()


def _phase_of(table: pl.DataFrame, starts: Int64Array, ends: Int64Array) -> pl.DataFrame:
    """Return the phase of the first computation in each range or, if there is none, of the last computation before it."""
    if table.is_empty():
        nothing = pl.repeat(None, len(starts), dtype=pl.Int64, eager=True)
        kind = pl.repeat("forward-compute", len(starts), eager=True)
        action = pl.repeat(-1, len(starts), dtype=pl.Int64, eager=True)
        return pl.DataFrame({"kind": kind, "action": action, "global_chunk": nothing, "microbatch": nothing})
    following = np.searchsorted(table["end_ns"].to_numpy(), starts, side="right")
    has_work = following < len(table)
    following = np.minimum(following, len(table) - 1)
    begins = table["start_ns"].to_numpy()[following]
    is_within = has_work & (begins < ends)
    row = np.where(is_within, following, np.maximum(following - has_work.astype(np.int64), 0))
    return table.select("kind", "action", "global_chunk", "microbatch")[row]


def _passes(pieces: pl.DataFrame, messages: Int64Array) -> pl.DataFrame:
    """Add the column `operation`: all computation of one phase between two messages belongs to one operation.

    A pass that the pipeline's schedule annotates is always one operation. Any other small operation is merged into the
    previous operation if no message separates the two, else into the next operation.
    """
    after_message = np.searchsorted(messages, pieces["start_ns"].to_numpy(), side="right")
    key = pl.struct("step", "kind", "action", "message").rle_id()
    marked = pieces.with_columns(pl.Series("message", after_message)).with_columns(
        pl.when(pl.col("action") < 0).then("message").otherwise(0).alias("message")
    )
    runs = _after_backward(marked).with_columns(key.alias("operation"))
    keys = ("operation", "step", "kind", "action", "message")
    totals = runs.group_by(keys).agg(pl.col("busy_ns").sum()).sort("operation")
    is_small = (pl.col("action") < 0) & (pl.col("busy_ns") < SMALL_PASS * pl.col("busy_ns").mean().over("kind"))
    kept = totals.with_columns(pl.when(~is_small).then("operation").alias("kept"))
    joined = kept.select(
        "operation",
        pl.coalesce(
            pl.col("kept").forward_fill().over("step", "message"),
            pl.col("kept").backward_fill().over("step"),
            pl.col("kept").forward_fill().over("step"),
            "operation",
        ).alias("joined"),
    )
    chosen = runs.join(joined, on="operation", how="left", maintain_order="left")
    facts = runs.group_by("operation").agg(pl.col("kind", "global_chunk", "microbatch").first())
    return chosen.select("step", "start_ns", "end_ns", pl.col("joined").alias("operation")).join(
        facts, on="operation", how="left", maintain_order="left"
    )


def _prepared(pieces: pl.DataFrame, calls: pl.DataFrame, began: Int64Array) -> pl.DataFrame:
    """If the first message of a step is a receive, set the kind of the computation before it to preparation."""
    family = calls["family"].cast(pl.String)
    messages = pl.DataFrame({"step": calls["window"], "began": began, "family": family})
    first = (
        messages.filter(pl.col("family").is_in(POINT_TO_POINT))
        .sort("began")
        .group_by("step")
        .agg(pl.col("began", "family").first())
        .filter(pl.col("family") == "recv")
        .select("step", "began")
    )
    known = pieces.join(first, on="step", how="left", maintain_order="left")
    is_before = (pl.col("start_ns") < pl.col("began")) & (pl.col("action") < 0) & (pl.col("kind") == "forward-compute")
    kind = pl.when(is_before).then(pl.lit(PREPARATION)).otherwise("kind")
    return known.with_columns(kind.alias("kind")).drop("began")


def _after_backward(pieces: pl.DataFrame) -> pl.DataFrame:
    """Relabel forward computations after a step's last backward pass as optimizer work, such as gradient clipping."""
    is_backward = pl.col("kind").is_in(["backward-compute", "weight-compute"])
    last = pl.when(is_backward).then("end_ns").max().over("step")
    is_late = (pl.col("kind") == "forward-compute") & (pl.col("start_ns") >= last)
    return pieces.with_columns(pl.when(is_late).then(pl.lit("optimizer")).otherwise("kind").alias("kind"))


def _numbered(pieces: pl.DataFrame) -> pl.DataFrame:
    sequence = (pl.col("operation").rank("dense").over("step", "kind").cast(pl.Int64) - 1).alias("sequence")
    return pieces.select("step", "kind", sequence, "start_ns", "end_ns", "global_chunk", "microbatch")
