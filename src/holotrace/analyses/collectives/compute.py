"""Which rank was late in each collective, how long did the others wait, and how fast was the transfer?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_group
from holotrace.algorithms.summary import sum_or_null
from holotrace.analyses.collectives.latency import PER_FIT, mergeable, per_fit
from holotrace.analyses.collectives.pairs import left_out, per_pair, slow_pairs
from holotrace.analyses.collectives.slow_parts import SLOW, slow_parts
from holotrace.analyses.collectives.verdicts import verdict
from holotrace.enrich.across_ranks.job_calls import job_calls, per_second
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.job.rank_tables import typed
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import Trace
from holotrace.units import duration_text, size_text

_EQUAL = ("process_group", "group_size", "collective", "dtype", "message_bytes")
"""Collectives with equal values in all these columns share a row."""

_PER_COLLECTIVE = {
    "process_group": pl.String,
    "group_size": pl.Int64,
    "collective": pl.String,
    "dtype": pl.String,
    "message_bytes": pl.Int64,
    "instance_count": pl.Int64,
    "collective_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "wait_fraction": pl.Float64,
    "median_transfer_ns": pl.Float64,
    "algorithm_bytes_per_s": pl.Float64,
    "bus_bytes_per_s": pl.Float64,
    "verdict": pl.String,
    "late_rank": pl.Int32,
    "late_fraction": pl.Float64,
    "mergeable_count": pl.Int64,
    "mergeable_ns": pl.Int64,
}
_PER_CALL = {
    "instance": pl.Int64,
    "step": pl.Int64,
    "process_group": pl.String,
    "group_size": pl.Int64,
    "collective": pl.String,
    "dtype": pl.String,
    "message_bytes": pl.Int64,
    "rank": pl.Int32,
    "event_index": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "lateness_ns": pl.Int64,
    "lateness_half_width_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "is_last": pl.Boolean,
    "transfer_ns": pl.Int64,
    "transfer_basis": pl.String,
    "algorithm_bytes_per_s": pl.Float64,
    "bus_bytes_per_s": pl.Float64,
    "matched_by": pl.String,
}
_PER_RANK = {
    "rank": pl.Int32,
    "host": pl.String,
    "collective_count": pl.Int64,
    "wait_ns": pl.Int64,
    "last_count": pl.Int64,
    "caused_wait_ns": pl.Int64,
    "collective_ns": pl.Int64,
    "bus_bytes": pl.Int64,
    "bus_bytes_per_s": pl.Float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Collectives(Result):
    """Every collective of a job: which rank was late, which ranks waited, and how fast the transfer was.

    per_collective  one row per process group, collective, element type and size, the longest time first:

        process_group          str      description and ranks of the group, such as `mesh_dp [0, 2]`; null if unknown
        group_size             int64
        collective             str      all_reduce, send …
        dtype                  str      null if unknown
        message_bytes          int64    size of one collective, as defined by nccl-tests; null if unknown
        instance_count         int64    how often the collective ran
        collective_ns          int64    time in the collective, summed over ranks
        wait_ns                int64    part of collective_ns spent waiting for other ranks; null if only one rank
                                        recorded calls
        wait_fraction          float64  0..1; null if only one rank recorded calls
        median_transfer_ns     float64
        algorithm_bytes_per_s  float64  message_bytes / median_transfer_ns
        bus_bytes_per_s        float64  algorithm_bytes_per_s times the bus factor
        verdict                str      transfer-bound, skew-bound, mixed, or inconclusive
        late_rank              int32    the rank that came last most often; null if no rank waits
        late_fraction          float64  0..1, the share of instances in which late_rank came last
        mergeable_count        int64    small calls, each of which could be merged with the previous call
        mergeable_ns           int64    latency and pauses that each rank would save if each series of such calls were
                                        merged into one call

    per_call        one row per collective and rank, sorted by instance and rank:

        instance                int64    number of the collective, the same on all its ranks; null if the call was not matched
        step                    int64    null outside the steps
        process_group, group_size, collective, dtype, message_bytes
        rank                    int32
        event_index             uint32
        start_ns                int64    on the rank's own clock
        duration_ns             int64
        lateness_ns             int64    how much later this rank arrived than the first rank; null if the clocks are
                                         not exact enough
        lateness_half_width_ns  int64    uncertainty of lateness_ns due to the clocks; null if unknown
        wait_ns                 int64    null if no other rank recorded the collective
        is_last                 bool     whether the other ranks waited only for this rank
        transfer_ns             int64
        transfer_basis          str      what transfer_ns is based on: one clock, aligned clocks, or shortest duration
                                         (an upper bound)
        algorithm_bytes_per_s   float64
        bus_bytes_per_s         float64
        matched_by              str      sequence, communication_id, signature, time, stream_order, send_receive; null if
                                         the call was not matched

    per_rank        one row per rank:

        rank                int32
        host                str
        collective_count    int64
        wait_ns             int64    time spent waiting for other ranks
        last_count          int64    collectives in which this rank alone came last
        caused_wait_ns      int64    time that the other ranks waited in collectives in which this rank alone came last
        collective_ns       int64    time in which at least one collective runs
        bus_bytes           int64    bytes sent over the rank's link, computed with the bus factors; null if a size is
                                     unknown
        bus_bytes_per_s     float64  bus_bytes divided by the part of collective_ns in which data moves

    per_fit         latency and bandwidth, fitted to the transfer times of messages of different sizes; one row for each
                    group and collective with at least three sizes, of which the largest is at least four times the
                    smallest:

        process_group, group_size, collective, instance_count, size_count,
        latency_ns, latency_low_ns, latency_high_ns, bus_bytes_per_s, low_bytes_per_s, high_bytes_per_s; a bandwidth is null
        if the time does not grow with the size

    per_pair        for each pair of sender and receiver, one row for sends and one for all-to-alls:

        collective          str      send or all_to_all
        source_rank         int32
        destination_rank    int32
        instance_count      int64    transfers between the two ranks
        bytes               int64    null if a size is unknown
        median_transfer_ns  float64
        median_bytes_per_s  float64
        slowdown            float64  median slowdown of the pair's transfers; the slowdown of a transfer is its time
                                     divided by the median time of its peers
        is_slow             bool     whether the slowdown is an outlier; null with fewer than 3 transfers

    slow            hosts, links and groups that are slower than their peers:

        kind                str      host, link or group
        part                str      name of the host, link or group
        collective          str
        message_bytes       int64    null for barriers
        instance_count      int64
        median_transfer_ns  float64
        peer_transfer_ns    float64  median transfer time of the peers
        slowdown            float64  median_transfer_ns / peer_transfer_ns

    per_host        one row per clock, see `holotrace.enrich.across_ranks.clocks.clocks.Clocks`:

        host, rank, rank_count, valid_from_ns, valid_to_ns, instance_count, offset_at_ns, offset_ns, half_width_ns, drift_ppb,
        drift_half_width_ppb

    coverage        how the calls were matched: matched_by, call_count, call_fraction, byte_fraction, time_fraction
    findings        slow hosts, links, groups and pairs, and calls that could not be matched or aligned

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.collectives(small_job()).answer.split("; ")[0]
    '50.0 % of the time in collectives (800 µs over all ranks) is waiting, most of it for rank 1'
    """

    per_collective: pl.DataFrame
    per_call: pl.DataFrame
    per_rank: pl.DataFrame
    per_fit: pl.DataFrame
    per_pair: pl.DataFrame
    slow: pl.DataFrame
    per_host: pl.DataFrame
    coverage: pl.DataFrame
    findings: tuple[str, ...] = ()


def collectives(trace: Trace, *, steps: Sequence[int] | None = None, executor: Executor = IN_PROCESS) -> Collectives:
    """Match collectives across ranks, align the hosts' clocks, and divide each collective's time into waiting and transfer.

    For a message of size S with transfer time t, in a group of n ranks:

        algorithm bandwidth = S / t
        bus bandwidth       = factor * S / t

    in decimal GB/s. S and the factor are defined as in nccl-tests. The factor is 2 (n - 1) / n for all_reduce;
    (n - 1) / n for all_gather, reduce_scatter, all_to_all, gather and scatter; 1 for broadcast, reduce, send and recv.
    For an uneven all-to-all with recorded splits, factor * S is the number of bytes that a rank sends to other ranks.

    The verdict depends on how much of a collective's time, summed over all ranks, is spent waiting. If at most a
    quarter of the time is waiting, the collective is transfer-bound; if at least three quarters is waiting, it is
    skew-bound; in between, it is mixed. The verdict is inconclusive if there are fewer than 3 instances, or if most of
    the calls were recorded on only one rank.

    Args:
        trace: the job.
        steps: count only collectives of these steps.
        executor: processes each rank.

    Raises:
        InvalidOptionError: a step does not exist; the message lists the existing steps.

    Source: docs/reference/analyses/collectives.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> calls = holotrace.collectives(small_job()).per_call
    >>> calls.select("instance", "rank", "wait_ns", "transfer_ns").rows()
    [(0, 0, 200000, 100000), (0, 1, 0, 100000), (1, 0, 200000, 100000), (1, 1, 0, 100000)]
    """
    return plan(steps=steps).run(trace, executor)


def plan(*, steps: Sequence[int] | None = None) -> Plan[OfRank, Collectives]:
    """Return the two functions of `collectives`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(of_rank, partial(_combine, steps=steps))


def _combine(of_ranks: dict[int, OfRank], *, steps: Sequence[int] | None) -> Collectives:
    job = job_calls(of_ranks)
    calls = _numbered(_of_steps(job.calls, steps))
    instances = _instances(calls)
    fits = per_fit(instances)
    slow = slow_parts(instances)
    pairs = per_pair(calls, job.groups)
    return Collectives(
        _per_collective(calls, instances.join(mergeable(instances, fits), on="operation", how="left")),
        typed(calls, _PER_CALL).sort("instance", "rank", "start_ns", nulls_last=True),
        _per_rank(calls),
        typed(fits, PER_FIT),
        pairs,
        typed(slow, SLOW),
        job.clocks.per_host,
        job.coverage,
        (*_slow_findings(slow), *slow_pairs(pairs), *left_out(calls), *job.findings),
    )


def _of_steps(calls: pl.DataFrame, steps: Sequence[int] | None) -> pl.DataFrame:
    if steps is None:
        return calls
    available = calls["step"].unique().drop_nulls().sort().to_list()
    unknown = sorted(set(steps) - set(available))
    if unknown or not steps:
        raise InvalidOptionError.unknown(unknown, available, what="step")
    return calls.filter(pl.col("step").is_in(list(steps)))


def _numbered(calls: pl.DataFrame) -> pl.DataFrame:
    """Add the column `operation`: the instance number or, for an unmatched call, a unique negative number."""
    return calls.with_columns(pl.coalesce("instance", -1 - pl.int_range(pl.len())).alias("operation"))


def _instances(calls: pl.DataFrame) -> pl.DataFrame:
    """Return one row per collective, with the values of its ranks combined; each unmatched call has its own row."""
    return calls.group_by("operation", maintain_order=True).agg(
        pl.col("process_group", "group_size", "collective", "dtype", "step").first(),
        pl.col("message_bytes", "bus_bytes", "transfer_ns").max(),
        pl.col("start_ns").min().alias("first_start_ns"),
        pl.col("start_ns").max().alias("last_start_ns"),
        pl.col("end_ns").max().alias("last_end_ns"),
        pl.col("host").unique().sort().alias("hosts"),
        pl.col("rank").filter("is_last").first().alias("late_rank"),
    )


def _per_collective(calls: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    sizes = instances.select("operation", "message_bytes")
    rows = calls.drop("message_bytes").join(sizes, on="operation")
    is_matched = pl.col("wait_ns").is_not_null()
    sums = rows.group_by(_EQUAL).agg(
        pl.col("duration_ns").sum().alias("collective_ns"),
        sum_or_null("wait_ns"),
        is_matched.mean().alias("matched_fraction"),
        (pl.col("wait_ns").sum() / pl.col("duration_ns").filter(is_matched).sum()).alias("wait_fraction"),
    )
    joined = sums.join(_equal_instances(instances), on=_EQUAL, nulls_equal=True).with_columns(
        pl.col("wait_fraction").fill_nan(None)
    )
    complete = joined.with_columns(
        per_second("message_bytes", "median_transfer_ns").alias("algorithm_bytes_per_s"),
        per_second("bus_bytes", "median_transfer_ns").alias("bus_bytes_per_s"),
        verdict(),
    )
    keys = ["collective_ns", *_EQUAL]
    return typed(complete, _PER_COLLECTIVE).sort(keys, descending=[True, *[False] * len(_EQUAL)])


def _equal_instances(instances: pl.DataFrame) -> pl.DataFrame:
    late = pl.col("late_rank").drop_nulls()
    return instances.group_by(_EQUAL).agg(
        pl.len().alias("instance_count"),
        pl.col("transfer_ns").median().alias("median_transfer_ns"),
        pl.col("bus_bytes").median(),
        late.mode().sort().first().alias("late_rank"),
        (late.unique_counts().max() / pl.len()).alias("late_fraction"),
        pl.col("is_mergeable").fill_null(value=False).sum().alias("mergeable_count"),
        pl.col("saved_ns").sum().alias("mergeable_ns"),
    )


def _per_rank(calls: pl.DataFrame) -> pl.DataFrame:
    caused = pl.col("wait_ns").sum().over("operation") * pl.col("is_last").cast(pl.Int64)
    sums = (
        calls.with_columns(caused.alias("caused_wait_ns"))
        .group_by("rank", "host")
        .agg(
            pl.len().alias("collective_count"),
            sum_or_null("wait_ns"),
            pl.col("caused_wait_ns").sum(),
            pl.col("is_last").sum().alias("last_count"),
            pl.when(pl.col("bus_bytes").null_count() == 0).then(pl.col("bus_bytes").sum()).alias("bus_bytes"),
        )
    )
    merged = covered_by_group(calls, ["rank"], name="collective_ns")
    moving = calls.with_columns((pl.col("start_ns") + pl.col("wait_ns").fill_null(0)).alias("moves_ns"))
    transfer = covered_by_group(moving, ["rank"], start="moves_ns", name="moving_ns")
    joined = sums.join(merged, on="rank").join(transfer, on="rank")
    bandwidth = per_second("bus_bytes", "moving_ns").alias("bus_bytes_per_s")
    return typed(joined.with_columns(bandwidth), _PER_RANK).sort("rank")


def _slow_findings(slow: pl.DataFrame) -> tuple[str, ...]:
    worst = slow.unique(["kind", "part"], keep="first", maintain_order=True)
    return tuple(
        f"{row['kind']} {row['part']} is slow: {row['collective']}{_of_size(row['message_bytes'])} takes "
        f"{duration_text(row['median_transfer_ns'])}, but only {duration_text(row['peer_transfer_ns'])} elsewhere"
        for row in worst.iter_rows(named=True)
    )


def _of_size(byte_count: int | None) -> str:
    return "" if byte_count is None else f" of {size_text(byte_count)}"
