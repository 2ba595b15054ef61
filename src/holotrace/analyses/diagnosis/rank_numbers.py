"""The numbers of a rank that the diagnosis headline averages over the ranks or compares between them."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import covered_length
from holotrace.analyses.diagnosis.evidence.compilation import compilation
from holotrace.analyses.diagnosis.evidence.host_library import HostLibrary, host_library
from holotrace.analyses.diagnosis.evidence.main_line import main_line
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.roofline.steps import per_step
from holotrace.enrich.device.floors import peaks_of
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.enrich.job.one_job import CUT_OFF_KINDS
from holotrace.enrich.operator_costs.costed_calls import costed_calls

_MOST_UNKNOWN = 0.05
"""If unrecorded work may run in more than this share of the step, MFU is reported as unknown."""


class MemoryPeak(NamedTuple):
    """The highest memory peak of a device; `capacity_bytes` is None if the file lacks the device's memory size."""

    peak_bytes: int
    capacity_bytes: int | None


class MainWork(NamedTuple):
    """The kernel that takes the most device time or, without device work, the operator that takes the most host time.

    source_line  the user's function in which the operator takes most of its time; None if unknown, or for kernels
    """

    name: str
    time_ns: float
    source_line: str | None = None


class RankNumbers(NamedTuple):
    """The headline numbers of one rank; times are per steady step.

    has_steps         whether the recording has steps; otherwise the whole recording counts as one step
    step_count        number of steady steps
    step_ns           mean length of a steady step
    step_std_ns       standard deviation of this length
    busy_ns           time in which a device is busy; None without device work
    unknown_ns        time in which no recorded work runs, but unrecorded work may run: a graph replay without recorded
                      kernels, or work from before the recording
    exposed_ns        time in which the rank communicates without computing: while no kernel computes or, without device
                      work, while no operator runs
    device_name       of the first device; None if unknown
    is_cut_off        whether the file ends early, so that device work may be missing
    is_unread         whether the file contains device work that cannot be read
    mfu_fraction      model FLOPs utilization over the steady steps; None if unknown
    costed_fraction   share of the compute time that is spent in operators whose FLOPs are known; `mfu_fraction`
                      counts only these operators
    memory            the highest peak of memory on a device; None if not recorded
    main_work         the kernel or operator that takes the most time; None if none ran
    is_before_compile  whether the recording comes from a version of PyTorch without torch.compile
    host_library      the library, such as gloo, that communicates on the host although the job uses devices; None if
                      no such library is known, if the devices communicate, or if there is no device work
    """

    has_steps: bool
    step_count: int
    step_ns: float
    step_std_ns: float
    busy_ns: float | None
    unknown_ns: float
    exposed_ns: float
    device_name: str | None
    is_cut_off: bool
    is_unread: bool
    mfu_fraction: float | None
    costed_fraction: float | None
    memory: MemoryPeak | None
    main_work: MainWork | None
    is_before_compile: bool
    host_library: HostLibrary | None


def rank_numbers(evidence: RankEvidence) -> RankNumbers:
    """Return the headline numbers of a rank."""
    lengths = evidence.step_lengths_ns or [0]
    return RankNumbers(
        evidence.has_steps,
        len(evidence.step_lengths_ns),
        fmean(lengths),
        pstdev(lengths),
        covered_length(*evidence.busy) / evidence.step_count if evidence.has_device_work else None,
        covered_length(*evidence.maybe_busy) / evidence.step_count,
        covered_length(*evidence.exposed_communication) / evidence.step_count,
        next((device["device_name"] for device in evidence.devices), None),
        any(finding.kind in CUT_OFF_KINDS for finding in evidence.rank_trace.health.findings),
        evidence.is_unread,
        *_utilization(evidence),
        _memory_peak(evidence),
        _main_work(evidence),
        compilation(evidence) == "too_old",
        host_library(evidence),
    )


def _utilization(evidence: RankEvidence) -> tuple[float | None, float | None]:
    """Return `mfu_fraction` and `costed_fraction`."""
    if evidence.peaks is None or evidence.share(evidence.maybe_busy) > _MOST_UNKNOWN:
        return None, None
    costed = costed_calls(evidence.rank_trace)
    of_steps = per_step(evidence.rank_trace, costed, peaks_of(evidence.peaks, costed.keys))
    steady = of_steps.filter(pl.col("step").is_in(evidence.steady["window"].to_list()) | pl.lit(not evidence.has_steps))
    if not steady["model_flops"].sum() or steady["mfu_fraction"].null_count():
        return None, None
    share_of_time = pl.col("step_ns") / pl.col("step_ns").sum()
    means = steady.select((pl.col("mfu_fraction", "covered_fraction") * share_of_time).sum())
    return means["mfu_fraction"][0], means["covered_fraction"][0]


def _memory_peak(evidence: RankEvidence) -> MemoryPeak | None:
    peaks = [MemoryPeak(peak["peak_bytes"], peak["capacity_bytes"]) for peak in evidence.memory_peaks]
    return max(peaks, default=None, key=lambda peak: peak.peak_bytes)


def _main_work(evidence: RankEvidence) -> MainWork | None:
    if evidence.has_device_work:
        name, rows = evidence.rank_trace.texts(evidence.work["name"]), evidence.work.select("start_ns", "end_ns")
    else:
        operators = evidence.activity.filter(pl.col("cause") == "operator", pl.col("name").is_not_null())
        rows = evidence.within(operators, evidence.step_windows)
        name = rows["name"].str.strip_prefix(OF_AUTOGRAD)
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = rows.group_by(name.alias("main"), maintain_order=True).agg(time)
    if sums.is_empty():
        return None
    most = sums.row(int(sums["time_ns"].arg_max() or 0), named=True)
    line = None if evidence.has_device_work else main_line(evidence, rows.filter(name == most["main"]), in_loop=True)
    return MainWork(most["main"], most["time_ns"] / evidence.step_count, line)
