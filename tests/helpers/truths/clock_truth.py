"""Compares estimated clocks with the true clocks of a simulated job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holotrace.enrich.across_ranks.clocks.clocks import Clocks, clocks
from holotrace.testing.job_calls import CallsOptions, JobCalls, simulated_calls


class Comparison(NamedTuple):
    """How far a job's estimated clocks are from its true clocks.

    outside        a text for each estimated offset or drift whose error exceeds its estimated half-width
    half_width_ns  half-widths of the estimated offsets, without the reference host, whose offset is not estimated
    unknown_count  number of hosts whose offset could not be estimated
    """

    hosts: int
    shortest_ns: int
    outside: list[str]
    half_width_ns: list[int]
    unknown_count: int


def compared(options: CallsOptions) -> Comparison:
    """Simulate a job; compare its estimated clocks with the true clocks."""
    job = simulated_calls(options)
    return with_truth(job, clocks(job.calls, job.hosts))


def with_truth(job: JobCalls, found: Clocks) -> Comparison:
    """Compare each host's drift, and its offsets at the start, middle and end of the recording, with the truth."""
    others = [row for row in found.per_host.iter_rows(named=True) if row["host"] != found.reference]
    known = [row for row in others if row["offset_ns"] is not None]
    outside = [text for row in known for text in (*_wrong_offsets(job, found, row), *_wrong_drift(job, found, row))]
    return Comparison(
        hosts=len(others) + 1,
        shortest_ns=job.shortest_ns,
        outside=outside,
        half_width_ns=[row["half_width_ns"] for row in known],
        unknown_count=len(others) - len(known),
    )


def _wrong_offsets(job, found, row):
    rank = next(rank for rank, host in job.hosts.items() if host == row["host"])
    times = job.calls.filter(rank=rank)
    at_ns = np.array([row["offset_at_ns"], times["start_ns"].min(), times["end_ns"].max()])
    for shown_ns, offset_ns, half_width_ns in found.corrections(rank, at_ns).iter_rows():
        truth = job.true_correction_ns(row["host"], shown_ns, found.reference)
        if abs(truth - offset_ns) > half_width_ns:
            yield f"{row['host']} at {shown_ns}: {offset_ns} ± {half_width_ns} ns, true {truth}"


def _wrong_drift(job, found, row):
    truth = 1e9 * (job.true_rate(row["host"], found.reference) - 1)
    if abs(truth - row["drift_ppb"]) > row["drift_half_width_ppb"]:
        yield f"{row['host']}: {row['drift_ppb']} ± {row['drift_half_width_ppb']} ppb, true {truth}"
