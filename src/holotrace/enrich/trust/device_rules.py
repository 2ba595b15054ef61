"""Find device work that overlaps on one stream, or begins before its launch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.devices import is_rocm
from holotrace.enrich.device.launches import launches, of_work
from holotrace.enrich.trust.doubts import Doubt, times_of
from holotrace.store.trace import RankTrace
from holotrace.units import counted, duration_text, percent_text, times_text

LONGEST_OVERLAP_NS = 2_000
"""Shorter overlaps are due to the resolution of the device's clock."""

_STREAM = ("device", "stream")
_MAY_OVERLAP = r"(?i)LaunchKernelEx|LaunchAttribute"
"""Calls that can launch a kernel before the previous one ends: programmatic dependent launch,
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#programmatic-dependent-launch-and-synchronization."""


def overlapping_work(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the times of work that overlaps on one stream, because a stream runs its work in order.

    A sum of durations counts overlaps twice; the busy time, which is the length of a union, counts them once. Three
    kinds of overlap are ignored:

    - overlaps between kernels of the same graph replay
    - overlaps of a kernel with the previous kernel, if programmatic dependent launch may have started it early; on
      CUDA, this is assumed of every kernel without a recorded launch
    - overlaps of up to 2 µs, the resolution of the device's clock

    Source: https://github.com/AMD-AGI/TraceLens/issues/669, kernels on ROCm that overlap the next kernel.
    """
    work = device_work(rank_trace)
    before = pl.col("end_ns").cum_max(), pl.col("correlation")
    until_ns, previous = (value.shift(1).over(*_STREAM) for value in before)
    late = work.with_columns(until_ns.alias("until_ns"), previous.alias("previous")).filter(
        pl.col("until_ns") - pl.col("start_ns") > LONGEST_OVERLAP_NS,
        pl.col("stream") >= 0,
        (pl.col("correlation") != pl.col("previous")) | (pl.col("correlation") <= 0),
    )
    overlapping = _that_should_not(rank_trace, late) if len(late) else late
    for (device, stream), rows in _by_stream(overlapping):
        doubled = rows.with_columns(pl.min_horizontal("end_ns", "until_ns").alias("both_ns"))
        twice_ns, busy_ns = _sum(doubled, "start_ns", "both_ns"), _sum(_of_stream(work, device, stream))
        yield Doubt(
            "overlapping_work",
            f"Work on device {device}, stream {stream} overlaps {times_text(len(rows))} by more than "
            f"{duration_text(LONGEST_OVERLAP_NS)}, although a stream should run only one piece of work at a time: sums "
            f"of durations count {duration_text(twice_ns)} twice ({percent_text(twice_ns / busy_ns)} of the stream's "
            "work), but busy and idle times are correct",
            count=len(rows),
            event_index=rows.item(0, "event_index"),
            times=times_of(doubled, "start_ns", "both_ns"),
            device=device,
            stream=stream,
        )


def starts_before_launch(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the times of work that begins before the call that launched it.

    In this case, the clocks of host and device disagree.

    Source: https://github.com/pytorch/kineto/issues/1380 (kernels on H100 begin before their launches).
    """
    work = device_work(rank_trace)
    launched = of_work(launches(rank_trace), work)["launch_start_ns"]
    is_early = (work["start_ns"] < launched).fill_null(value=False)
    if not is_early.any():
        return
    early = work.with_columns(launched).filter(is_early)
    for (device, stream), rows in _by_stream(early):
        leads = (rows["launch_start_ns"] - rows["start_ns"]).to_numpy()
        total = len(_of_stream(work, device, stream))
        yield Doubt(
            "starts_before_launch",
            f"{len(rows):,} of {counted(total, 'piece', 'pieces')} of work on device {device}, stream {stream} begin "
            f"before the calls that launched them, by a median of {duration_text(float(np.median(leads)))} and "
            f"at most {duration_text(int(leads.max()))}: the clocks of host and device disagree, so launch delays "
            "are wrong by similar amounts, and the causes of idle time may be wrong",
            count=len(rows),
            event_index=rows.item(int(leads.argmax()), "event_index"),
            times=times_of(rows, "start_ns", "launch_start_ns"),
            device=device,
            stream=stream,
        )


def _that_should_not(rank_trace: RankTrace, rows: pl.DataFrame) -> pl.DataFrame:
    """Drop kernels that may overlap, because their launch calls can start them before the previous kernel ends."""
    launched = launches(rank_trace).filter(pl.col("event_index").is_in(rows["event_index"].implode()))
    names = rank_trace.texts(launched["launch_name"])
    may = names.str.contains(_MAY_OVERLAP).fill_null(value=not is_rocm(rank_trace))
    kept = launched.filter(~may)["event_index"]
    return rows.filter(pl.col("event_index").is_in(kept.implode()))


def _by_stream(rows: pl.DataFrame) -> Iterator[tuple[tuple[int, int], pl.DataFrame]]:
    """Yield each device and stream with its rows, in the order of first occurrence in `rows`."""
    for (device, stream), part in rows.group_by(*_STREAM, maintain_order=True):
        yield (int(device), int(stream)), part


def _of_stream(work: pl.DataFrame, device: int, stream: int) -> pl.DataFrame:
    return work.filter((pl.col("device") == device) & (pl.col("stream") == stream))


def _sum(rows: pl.DataFrame, start: str = "start_ns", end: str = "end_ns") -> int:
    return int((rows[end] - rows[start]).sum())
