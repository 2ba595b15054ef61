"""How do the ranks share the work, and how much of their communication is waiting?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_group
from holotrace.algorithms.intervals import Intervals, concatenated, covered_before, union
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.across_ranks.ranges import JobRanges
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.devices import described_devices
from holotrace.enrich.job.rank_tables import of_all_ranks
from holotrace.errors import MissingDataError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted

_SPLIT = ("step_ns", "computation_only_ns", "overlap_ns", "exposed_ns", "neither_ns")
_WAITING = ("collective_ns", "transfer_ns", "synchronising_ns", "unmatched_ns")
_PER_DEVICE = ("host", "process_id", "rank", "device", "device_name", "memory_bytes", "compute_capability")


@dataclass(frozen=True, eq=False, repr=False)
class Distributed(Result):
    """How each rank's steps divide into computation and communication, and its collectives into transfer and waiting.

    per_device     one row per rank and device that the rank uses, sorted by host, process_id, rank, device:

        host                str     name of the machine; null if neither the file nor its name contains it
        process_id          int64   process id on this machine
        rank                int32
        device              int32   null if the rank used no device
        device_name         str
        memory_bytes        int64
        compute_capability  str

    per_step       one row per rank and step, sorted by rank and time:

        rank                 int32
        step                 int64  null for collectives outside the steps
        step_ns              int64  length of the step, including the device work that the step launched
        computation_only_ns  int64  time in which the rank computes and does not communicate
        overlap_ns           int64  time in which the rank computes and communicates
        exposed_ns           int64  time in which the rank communicates and does not compute
        neither_ns           int64  all other time of the step; the four times add up to step_ns
        collective_count     int64  collectives called in the step
        collective_ns        int64  time in which at least one collective runs
        transfer_ns          int64  part of collective_ns in which data moves, because all ranks have arrived
        synchronising_ns     int64  part of collective_ns in which the rank only waits for other ranks
        unmatched_ns         int64  part of collective_ns in calls that no other rank recorded; the three parts add up to
                                    collective_ns

    per_rank       the mean step of each rank, sorted by rank: rank int32, step_count int64, then the mean of each
                   column of per_step from step_ns on, float64: mean_step_ns …

    per_operation  one row per rank, collective and element type, sorted by rank and collective_ns, longest first:

        rank                int32
        collective          str      all_reduce, all_gather, all_to_all, send …, or unknown
        dtype               str      float32, bfloat16 …; null if not recorded
        call_count          int64
        bytes               int64    summed size of the rank's inputs; null if a size was not recorded
        mean_bytes          float64
        collective_ns       int64    time in which at least one call runs
        mean_collective_ns  float64  collective_ns / call_count
        matched_count       int64    calls that were matched with a call on another rank
        transfer_ns         int64    time in which data moves for at least one matched call; null if no call is matched
        mean_transfer_ns    float64  transfer_ns / matched_count

    findings       collectives that were ignored or could not be compared

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.distributed(small_job()).answer
    '50.0 % of the time in collectives (800 µs over all ranks) is waiting for other ranks.'
    """

    per_device: pl.DataFrame
    per_step: pl.DataFrame
    per_rank: pl.DataFrame
    per_operation: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    """The partial result of one rank: its devices, the parts of its steps, and its communication."""

    devices: pl.DataFrame
    steps: pl.DataFrame
    communication: OfRank
    host_call_count: int
    has_shapes: bool


def distributed(trace: Trace, *, compat: Compat | None = None, executor: Executor = IN_PROCESS) -> Distributed:
    """Divide each rank's steps into computation and communication, and its communication into transfer and waiting.

    Let K be the time in which a rank computes, and C the time in which it communicates, on any of its devices:

        step = (K without C) + (K and C) + (C without K) + neither

    On a rank without kernels, operators count as computation. In a collective, a rank waits until the last rank
    arrives; after that, data moves.

    Collectives, sends and receives are matched across ranks, and their waiting is measured on one clock, as in `collectives`.

    Args:
        trace: the job.
        compat: "torch_tb_profiler" gives the numbers of PyTorch's TensorBoard plugin. The plugin finds five kinds of
            collectives by the names of host events, finds their kernels by external id, matches the n-th collectives
            of all ranks with each other, and takes the shortest duration as the transfer time.
        executor: processes each rank.

    Raises:
        MissingDataError: no rank has any host or device event, so none has a step.

    Source: docs/reference/analyses/distributed.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.distributed(small_job()).per_step.select("rank", "step", "transfer_ns", "synchronising_ns").rows()
    [(0, 1, 100000, 200000), (0, 2, 100000, 200000), (1, 1, 100000, 0), (1, 2, 100000, 0)]
    """
    return plan(compat=compat).run(trace, executor)


def plan(*, compat: Compat | None = None) -> Plan[_Partial, Distributed]:
    """Return the two functions of `distributed`: one runs on each rank, the other combines the results of the ranks."""
    attribution = attribution_of(compat)
    one_rank = partial(_one_rank, attribution=attribution)
    return Plan(one_rank, partial(_combine, attribution=attribution))


def _combine(partials: dict[int, _Partial], *, attribution: Attribution) -> Distributed:
    if all(of_rank.steps.is_empty() for of_rank in partials.values()):
        message = (
            "distributed: no rank has any operator, kernel or step to measure; check that the profiler was started"
        )
        raise MissingDataError(message)
    steps = of_all_ranks({rank: of_rank.steps for rank, of_rank in partials.items()})
    matched = attribution.job_ranges({rank: of_rank.communication for rank, of_rank in partials.items()}, steps)
    ranges = _with_transfer(matched.table)
    per_step = _per_step(steps, ranges, attribution)
    return Distributed(
        per_device=_per_device(partials, attribution),
        per_step=per_step,
        per_rank=_per_rank(per_step, attribution),
        per_operation=_per_operation(ranges),
        findings=_findings(partials, matched, attribution),
    )


def _one_rank(rank_trace: RankTrace, *, attribution: Attribution) -> _Partial:
    steps = attribution.step_windows(rank_trace)
    communication = attribution.communication(rank_trace, steps)
    calls = 0 if len(communication.calls) else attribution.host_call_count(rank_trace)
    divided = _divided(steps, attribution.roles(rank_trace))
    return _Partial(_devices(rank_trace, attribution), divided, communication, calls, _has_shapes(rank_trace))


def _has_shapes(rank_trace: RankTrace) -> bool:
    """Return whether input shapes were recorded; files from before 2023 may contain shapes without naming `record_shapes`."""
    is_on = rank_trace.header.options["record_shapes"]
    return is_on or not rank_trace.table("operator_inputs", ["event_index"]).is_empty()


def _divided(steps: pl.DataFrame, roles: Mapping[str, Intervals]) -> pl.DataFrame:
    """Divide each step into computation K and communication C: |K and C| = |K| + |C| - |K or C|."""
    computation = roles["kernel"] if len(roles["kernel"][0]) else roles["cpu"]
    both = union(*concatenated([computation, roles["communication"]]))
    starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    compute, communicate, either = (
        covered_before(disjoint, ends) - covered_before(disjoint, starts)
        for disjoint in (computation, roles["communication"], both)
    )
    total = ends - starts
    parts = (total, either - communicate, compute + communicate - either, either - compute, total - either)
    return pl.DataFrame({"step": steps["window"], **dict(zip(_SPLIT, parts, strict=True))})


def _with_transfer(ranges: pl.DataFrame) -> pl.DataFrame:
    """Add `transfer_start_ns`, which is null if no other rank recorded the collective."""
    return ranges.with_columns((pl.col("start_ns") + pl.col("wait_ns")).alias("transfer_start_ns"))


def _per_step(steps: pl.DataFrame, ranges: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    ordered_steps = steps.with_row_index("order")
    joined = ordered_steps.join(_waiting(ranges), on=["rank", "step"], how="full", nulls_equal=True, coalesce=True)
    counts = pl.col("collective_count", *_WAITING)
    ordered = joined.with_columns(attribution.waiting_of_steps(counts)).sort("rank", "order", nulls_last=True)
    return ordered.select("rank", "step", *_SPLIT, pl.col("collective_count").cast(pl.Int64), *_WAITING)


def _waiting(ranges: pl.DataFrame) -> pl.DataFrame:
    """Divide the time that each rank spends in collectives, per step, into transfer, waiting and unmatched time."""
    by = ["rank", "step"]
    matched = ranges.drop_nulls("transfer_start_ns")
    lengths = ranges.group_by(by).agg(pl.col("is_call").sum().alias("collective_count"))
    for table, start, name in (
        (ranges, "start_ns", "collective_ns"),
        (matched, "start_ns", "matched_ns"),
        (matched, "transfer_start_ns", "transfer_ns"),
    ):
        covered = covered_by_group(table, by, start=start, name=name)
        lengths = lengths.join(covered, on=by, how="left", nulls_equal=True)
    known = lengths.with_columns(pl.col("matched_ns", "transfer_ns").fill_null(0))
    return known.with_columns(
        (pl.col("matched_ns") - pl.col("transfer_ns")).alias("synchronising_ns"),
        (pl.col("collective_ns") - pl.col("matched_ns")).alias("unmatched_ns"),
    )


def _per_rank(per_step: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Return the mean step of each rank."""
    steps = attribution.steps_in_means(per_step).group_by("rank")
    times = steps.agg(pl.col("step_ns").count().cast(pl.Int64).alias("step_count"), pl.col(*_SPLIT).mean())
    waiting = attribution.steps_in_mean_waiting(per_step).group_by("rank")
    means = times.join(waiting.agg(pl.col("collective_count", *_WAITING).mean()), on="rank").sort("rank")
    return means.rename({name: f"mean_{name}" for name in means.columns if name not in ("rank", "step_count")})


def _per_operation(ranges: pl.DataFrame) -> pl.DataFrame:
    by = ["rank", "collective", "dtype"]
    is_matched = pl.col("is_call") & pl.col("transfer_start_ns").is_not_null()
    calls = pl.col("byte_count").filter("is_call")
    counts = ranges.group_by(by).agg(
        pl.col("is_call").sum().cast(pl.Int64).alias("call_count"),
        pl.when(calls.null_count() == 0).then(calls.sum()).alias("bytes"),
        is_matched.sum().cast(pl.Int64).alias("matched_count"),
    )
    covered = covered_by_group(ranges, by, name="collective_ns")
    matched = ranges.drop_nulls("transfer_start_ns")
    transfer = covered_by_group(matched, by, start="transfer_start_ns", name="transfer_ns")
    joined = counts.join(covered, on=by, nulls_equal=True).join(transfer, on=by, how="left", nulls_equal=True)
    table = joined.select(
        *by,
        "call_count",
        "bytes",
        (pl.col("bytes") / pl.col("call_count")).alias("mean_bytes"),
        "collective_ns",
        (pl.col("collective_ns") / pl.col("call_count")).alias("mean_collective_ns"),
        "matched_count",
        "transfer_ns",
        (pl.col("transfer_ns") / pl.col("matched_count")).alias("mean_transfer_ns"),
    )
    return table.sort("rank", "collective_ns", "collective", "dtype", descending=[False, True, False, False])


def _devices(rank_trace: RankTrace, attribution: Attribution) -> pl.DataFrame:
    """Return one row per device that the rank used, with host and process; if it used none, one row with a null device."""
    devices = described_devices(rank_trace, attribution.used_devices(rank_trace))
    rows = devices if len(devices) else pl.DataFrame([{"device": None}], schema=devices.schema)
    host, process = attribution.host_and_process(rank_trace)
    return rows.with_columns(pl.lit(host, pl.String).alias("host"), pl.lit(process, pl.Int64).alias("process_id"))


def _per_device(partials: dict[int, _Partial], attribution: Attribution) -> pl.DataFrame:
    devices = of_all_ranks({rank: of_rank.devices for rank, of_rank in partials.items()})
    return attribution.numbered_processes(devices).select(_PER_DEVICE).sort(_PER_DEVICE[:4])


def _findings(partials: dict[int, _Partial], matched: JobRanges, attribution: Attribution) -> tuple[str, ...]:
    if matched.table.is_empty():
        return _nothing_found(partials)
    return attribution.communication_findings(_about_ranges(partials, matched), matched.findings)


def _about_ranges(partials: dict[int, _Partial], matched: JobRanges) -> tuple[str, ...]:
    ranges = matched.table
    of_each_rank = (*_before(ranges), *_unsized(partials, ranges))
    if len(partials) == 1:
        return (
            f"only rank {ranges['rank'][0]} was recorded; open all ranks of the job to compare their waiting",
            *of_each_rank,
        )
    return (*matched.findings, *of_each_rank)


def _before(ranges: pl.DataFrame) -> tuple[str, ...]:
    count = ranges["is_before"].sum()
    early = f"{count:,} of {len(ranges):,} collectives were launched before the recording, so they belong to no step"
    return (f"{early}, and their sizes may be unknown",) if count else ()


def _unsized(partials: dict[int, _Partial], ranges: pl.DataFrame) -> tuple[str, ...]:
    """Say how many calls have no size, separately for ranks with and without record_shapes.

    Calls that were launched before the recording are not counted here; `_before` reports them.
    """
    without = [rank for rank, of_rank in partials.items() if not of_rank.has_shapes]
    is_off, is_unsized = pl.col("rank").is_in(without), pl.col("byte_count").is_null() & ~pl.col("is_before")
    off, on = ranges.select((is_unsized & is_off).sum().alias("off"), (is_unsized & ~is_off).sum().alias("on")).row(0)
    sentences = (
        (off, f"{counted(off, 'call has', 'calls have')} no size: record with record_shapes=True"),
        (on, f"{counted(on, 'call has', 'calls have')} no size: no event around the launch has input shapes"),
    )
    return tuple(sentence for count, sentence in sentences if count)


def _nothing_found(partials: dict[int, _Partial]) -> tuple[str, ...]:
    call_count = sum(of_rank.host_call_count for of_rank in partials.values())
    if call_count:
        sentence = f"{counted(call_count, 'collective was', 'collectives were')} called, but none of their kernels was recorded"
        return (f"{sentence}: record with ProfilerActivity.CUDA",)
    return ("no rank communicates, so there are no collectives to compare",) if len(partials) > 1 else ()
