"""How well is each GPU used?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_before, intervals_of, union, union_of
from holotrace.algorithms.running import weight_before
from holotrace.algorithms.summary import ratio
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import no_device_work
from holotrace.enrich.device.devices import described_devices
from holotrace.enrich.device.graph_replays import unknown_findings, unknown_work
from holotrace.enrich.job.findings import joined_findings
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import percent_text

_Int64 = npt.NDArray[np.int64]

_METRICS = (
    "utilization_fraction",
    "unknown_fraction",
    "sm_efficiency_fraction",
    "sm_efficiency_known_fraction",
    "occupancy_fraction",
    "occupancy_known_fraction",
    "tensor_core_fraction",
    "tensor_core_unknown_fraction",
)
_KNOWN = pl.col("sm_efficiency_known_fraction")
_NEARLY_ALL = 0.99
"""If SM efficiency is known for at least this share of the time with kernels, no finding calls it partly unknown."""

_PER_DEVICE = pl.Schema(
    {
        "rank": pl.Int32(),
        "device": pl.Int32(),
        "device_name": pl.String(),
        "memory_bytes": pl.Int64(),
        "compute_capability": pl.String(),
        **dict.fromkeys(_METRICS, pl.Float64()),
        "is_estimated": pl.Boolean(),
        "start_ns": pl.Int64(),
        "end_ns": pl.Int64(),
    }
)
_SERIES = pl.Schema(
    {
        "rank": pl.Int32(),
        "device": pl.Int32(),
        "start_ns": pl.Int64(),
        "end_ns": pl.Int64(),
        **dict.fromkeys(_METRICS, pl.Float64()),
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class GpuSummary(Result):
    """Metrics of how well each device is used: over all steps together, and in each time interval.

    per_device  one row per rank and device that ran kernels, sorted by rank and device:

        rank, device                  int32
        device_name                   str      null if not recorded
        memory_bytes                  int64    memory of the whole device; null if not recorded
        compute_capability            str      for example "9.0"; null if not recorded
        utilization_fraction          float64  0..1, share of the steps' time in which a kernel runs
        unknown_fraction              float64  0..1, share of the time for which it is unknown whether a kernel runs,
                                               because the kernels of a graph replay were not recorded
        sm_efficiency_fraction        float64  0..1 estimated: mean share of SMs with a block; null if unknown
        sm_efficiency_known_fraction  float64  0..1, share of the time with kernels for which SM efficiency is known
        occupancy_fraction            float64  0..1 estimated achieved occupancy, weighted by kernel duration
        occupancy_known_fraction      float64  0..1, share of the summed kernel time in which the occupancy is known
        tensor_core_fraction          float64  0..1, share of the summed kernel time in kernels known to use tensor or matrix
                                               cores, a lower bound; null if no kernel name shows the cores used
        tensor_core_unknown_fraction  float64  0..1, share of the summed kernel time in kernels whose names do not show which
                                               cores they use
        is_estimated                  bool     whether SM efficiency and occupancy are estimated from launch shapes
        start_ns, end_ns              int64    start of the first step, end of the last step

    series      the metrics over time, one row per rank, device and time interval, in this order:

        rank, device                  int32
        start_ns, end_ns              int64    start and end of the interval
        utilization_fraction … tensor_core_unknown_fraction  float64  within the interval; null without kernels to measure

    findings    ranks without device work, and missing data

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.gpu_summary(small_job()).answer
    'The devices are busy 65.0 % of the time on average; the least busy device, on rank 0, is busy 65.0 %.'
    """

    per_device: pl.DataFrame
    series: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_device: pl.DataFrame
    series: pl.DataFrame
    findings: tuple[str, ...]


def gpu_summary(
    trace: Trace, *, parts: int = 100, compat: Compat | None = None, executor: Executor = IN_PROCESS
) -> GpuSummary:
    """Measure how busy each device was, how well kernels filled it, and how much of the kernel time used tensor cores.

    `time` is the time from the start of the first step to the end of the last step. For each kernel, b is the number of
    blocks per SM, o the occupancy, and d the part of the kernel's duration that lies in `time`. K is the time in which
    b is known for all running kernels:

        utilization   = |kernels| / time
        unknown       = |graph replays whose kernels were not recorded, except where a recorded kernel runs| / time
        SM efficiency = utilization · ∫ over K of min(1, Σ b of the kernels that run) dt / |K|
        occupancy     = Σ o·d / Σ d                      over the kernels with a known o
        tensor cores  ≥ Σ duration of kernels on tensor cores / Σ duration of all kernels, including kernels outside the steps

    Args:
        trace: the job.
        parts: number of equal intervals of the time series.
        compat: "torch_tb_profiler" gives the numbers of PyTorch's TensorBoard plugin. `series` then has the plugin's
            time intervals, and `parts` is ignored.
        executor: processes each rank.

    Raises:
        InvalidOptionError: `parts` is less than 1.
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/gpu_summary.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.gpu_summary(small_job()).per_device.select("rank", "device", "utilization_fraction").rows()
    [(0, 0, 0.65), (1, 0, 0.65)]
    """
    return plan(parts=parts, compat=compat).run(trace, executor)


def plan(*, parts: int = 100, compat: Compat | None = None) -> Plan[_Partial, GpuSummary]:
    """Return the two functions of `gpu_summary`: one runs on each rank, the other combines the results of the ranks."""
    if parts < 1:
        message = f"parts={parts} is below 1"
        raise InvalidOptionError(message)
    one_rank = partial(_one_rank, parts=parts, attribution=attribution_of(compat))
    return Plan(one_rank, _combine)


def _one_rank(rank_trace: RankTrace, *, parts: int, attribution: Attribution) -> _Partial:
    kernels = attribution.kernel_calls(rank_trace)
    if kernels.is_empty():
        raise no_device_work(rank_trace, "gpu_summary")
    steps = attribution.step_windows(rank_trace)
    whole = np.array([steps["start_ns"].min() or 0, steps["end_ns"].max() or 0])
    moments = np.concatenate([whole, attribution.series_edges(rank_trace, whole, parts)])
    asked = attribution.kernels_on_tensor_cores(rank_trace, kernels)
    devices = kernels["device"].unique().sort().to_list()
    measured = [
        _one_device(*_of_device(device, kernels, asked), unknown_work(rank_trace, device), moments, attribution)
        for device in devices
    ]
    per_device = described_devices(rank_trace, devices).hstack(pl.concat([total for total, _ in measured]))
    return _Partial(
        _as_declared(rank_trace.rank, per_device, _PER_DEVICE),
        _as_declared(rank_trace.rank, pl.concat([series for _, series in measured]), _SERIES),
        (*unknown_findings(rank_trace), *_findings(rank_trace, per_device)),
    )


def _as_declared(rank: int, table: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    return table.with_columns(rank=rank).select(pl.col(name).cast(kind) for name, kind in schema.items())


def _of_device(device: int, kernels: pl.DataFrame, asked: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    is_here = pl.col("device") == device
    return kernels.filter(is_here), asked.filter(is_here)


def _one_device(
    kernels: pl.DataFrame, asked: pl.DataFrame, replays: Intervals, moments: _Int64, attribution: Attribution
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a device's metrics: a row for the whole time, from `moments[0]` to `moments[1]`, and a row for each interval.

    In the row for the whole time, the tensor-core fractions are computed from the kernels in `asked`, some of
    which may run outside this time.
    """
    sums = _sums(kernels, moments, attribution.kernels_of_unknown_size(kernels), replays)
    device = kernels.item(0, "device")
    total = _metrics(sums[:2]).with_columns(
        *_tensor_cores(asked).get_columns(), is_estimated=pl.lit(kernels["is_estimated"].any())
    )
    return total, _metrics(sums[2:]).with_columns(pl.lit(device).alias("device"))


def _tensor_cores(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the fraction of the summed kernel time on tensor cores, and the fraction whose cores are unknown."""
    duration, uses = pl.col("end_ns") - pl.col("start_ns"), pl.col("uses_tensor_cores")
    total, unknown = pl.when(duration.sum() > 0).then(duration.sum()), duration.filter(uses.is_null()).sum()
    known = pl.when(unknown < total).then(duration.filter(uses).sum() / total)
    return kernels.select(known.alias("tensor_core_fraction"), (unknown / total).alias("tensor_core_unknown_fraction"))


def _sums(kernels: pl.DataFrame, moments: _Int64, of_unknown_size: pl.DataFrame, replays: Intervals) -> pl.DataFrame:
    """Return cumulative sums over a device's kernels at each moment; their differences are the sums between moments."""
    filling, unknown = kernels.filter(pl.col("blocks_per_sm") > 0), union_of(of_unknown_size)
    occupying = kernels.filter(pl.col("occupancy_fraction") >= 0)
    running, uses = np.ones(len(kernels)), kernels["uses_tensor_cores"]
    on_tensor_cores = uses.fill_null(value=False).cast(pl.Float64).to_numpy()
    busy = covered_before(union_of(kernels), moments)
    perhaps = (
        covered_before(union(*concatenated([intervals_of(kernels), replays])), moments) if len(replays[0]) else busy
    )
    blocks = filling["blocks_per_sm"].to_numpy()
    return pl.DataFrame(
        {
            "moment": moments,
            "busy": busy,
            "unknown": perhaps - busy,
            "known": busy - covered_before(unknown, moments),
            "filled": weight_before(intervals_of(filling), blocks, moments, most=1.0, outside=unknown),
            "occupied": weight_before(intervals_of(occupying), np.ones(len(occupying)), moments),
            "occupancy": weight_before(intervals_of(occupying), occupying["occupancy_fraction"].to_numpy(), moments),
            "running": weight_before(intervals_of(kernels), running, moments),
            "on_tensor_cores": weight_before(intervals_of(kernels), on_tensor_cores, moments),
            "on_unknown_cores": weight_before(
                intervals_of(kernels), uses.is_null().cast(pl.Float64).to_numpy(), moments
            ),
        }
    )


def _metrics(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the metrics of each interval between two consecutive moments; null if there are no kernels to measure."""
    between = sums.select(pl.all().diff()).tail(-1)
    sm_efficiency = pl.when(pl.col("busy") > 0).then(ratio("busy", "moment") * ratio("filled", "known")).otherwise(0)
    return (
        sums.select(pl.col("moment").alias("start_ns"), pl.col("moment").shift(-1).alias("end_ns"))
        .head(-1)
        .hstack(
            between.select(
                ratio("busy", "moment").alias("utilization_fraction"),
                ratio("unknown", "moment").alias("unknown_fraction"),
                pl.when((pl.col("filled") > 0).any()).then(sm_efficiency).alias("sm_efficiency_fraction"),
                ratio("known", "busy").alias("sm_efficiency_known_fraction"),
                ratio("occupancy", "occupied").alias("occupancy_fraction"),
                ratio("occupied", "running").alias("occupancy_known_fraction"),
                pl.when(pl.col("on_unknown_cores") < pl.col("running"))
                .then(ratio("on_tensor_cores", "running"))
                .alias("tensor_core_fraction"),
                ratio("on_unknown_cores", "running").alias("tensor_core_unknown_fraction"),
            )
        )
    )


def _findings(rank_trace: RankTrace, per_device: pl.DataFrame) -> tuple[str, ...]:
    unknown = per_device["sm_efficiency_fraction"].null_count()
    partly = per_device.filter(pl.col("sm_efficiency_fraction").is_not_null(), _KNOWN < _NEARLY_ALL)
    sentences = (
        (unknown, "blocks per SM were not recorded, so SM efficiency is unknown"),
        *((True, _partly_known(*row)) for row in partly.select("device", _KNOWN).iter_rows()),
        (
            bool(per_device["is_estimated"].any()),
            "SM efficiency and occupancy are estimated from launch shapes; occupancy is an upper bound",
        ),
        (
            not rank_trace.header.device_properties,
            "the trace has no device properties, so names and memory sizes are unknown",
        ),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so)


def _partly_known(device: int, known: float) -> str:
    return (
        f"on device {device}, launch shapes are known for {percent_text(known)} of the time in which kernels run; for the rest of "
        "this time, the same SM efficiency is assumed"
    )


def _combine(partials: dict[int, _Partial]) -> GpuSummary:
    return GpuSummary(
        pl.concat([of_rank.per_device for of_rank in partials.values()]),
        pl.concat([of_rank.series for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
