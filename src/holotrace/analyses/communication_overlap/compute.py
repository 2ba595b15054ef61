"""How much of the communication is hidden behind computation?"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from holotrace.algorithms.intervals import covered_length, intersection_length, intervals_of
from holotrace.enrich.device.device_work import by_device, device_work, no_device_work
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_NO_COMMUNICATION = "no communication kernels ran, so nothing can overlap"

_PER_RANK = pl.Schema(
    {
        "rank": pl.Int32(),
        "communication_ns": pl.Int64(),
        "overlap_ns": pl.Int64(),
        "exposed_ns": pl.Int64(),
        "overlap_fraction": pl.Float64(),
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class CommunicationOverlap(Result):
    """How much of each rank's communication ran while the rank also computed.

    per_rank  one row per rank, sorted by rank; times are summed over its devices:

        rank              int32
        communication_ns  int64    time in which at least one communication kernel runs
        overlap_ns        int64    part of communication_ns in which computation also runs on the same device
        exposed_ns        int64    communication_ns - overlap_ns
        overlap_fraction  float64  0..1, overlap_ns / communication_ns; null if communication_ns is 0

    findings  one sentence per rank without communication or without device work

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.communication_overlap(small_job()).answer
    '0.0 % of the communication is hidden behind computation; rank 0 exposes the most, 600 µs.'
    """

    per_rank: pl.DataFrame
    findings: tuple[str, ...] = ()


def communication_overlap(trace: Trace, *, executor: Executor = IN_PROCESS) -> CommunicationOverlap:
    """Measure how much of each rank's communication ran while the rank also computed.

    The overlap is the time in which at least one communication kernel and one computation kernel run on the same
    device, on any streams. Let |x| be the total length of the union of the intervals in x:

        overlap_fraction = |communication ∩ computation| / |communication|

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/communication_overlap.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.communication_overlap(small_job()).per_rank.row(0, named=True)
    {'rank': 0, 'communication_ns': 600000, 'overlap_ns': 0, 'exposed_ns': 600000, 'overlap_fraction': 0.0}
    """
    return plan().run(trace, executor)


def plan() -> Plan[tuple[int, int], CommunicationOverlap]:
    """Return the two functions of `communication_overlap`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def _one_rank(rank_trace: RankTrace) -> tuple[int, int]:
    """Return communication_ns and overlap_ns."""
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "communication_overlap")
    lengths = [_one_device(part) for _, part in by_device(work)]
    return sum(comm for comm, _ in lengths), sum(overlap for _, overlap in lengths)


def _one_device(work: pl.DataFrame) -> tuple[int, int]:
    communication = intervals_of(work.filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION))
    computation = intervals_of(work.filter(pl.col("kernel_kind") == KernelKind.COMPUTATION))
    return covered_length(*communication), intersection_length(communication, computation)


def _combine(partials: dict[int, tuple[int, int]]) -> CommunicationOverlap:
    rows = [
        (rank, comm, overlap, comm - overlap, overlap / comm if comm else None)
        for rank, (comm, overlap) in partials.items()
    ]
    silent = {rank: () if comm else (_NO_COMMUNICATION,) for rank, (comm, _) in partials.items()}
    return CommunicationOverlap(pl.DataFrame(rows, schema=_PER_RANK, orient="row"), joined_findings(silent))
