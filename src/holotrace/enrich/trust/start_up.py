"""Find a slow start (the first steps, calls and collectives), and work that was launched before the recording."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals, covered_length
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.earlier_work import earlier_work
from holotrace.enrich.device.first_calls import first_calls
from holotrace.enrich.steps.steps import steps
from holotrace.enrich.trust.doubts import Doubt, times_of
from holotrace.schema import KernelKind
from holotrace.store.trace import RankTrace
from holotrace.units import counted, duration_text, percent_text

TIMES_MEDIAN = 10
FEWEST_SAMPLES = 8
MOST_LEADING = 4
"""If there are at least 8 steps (or calls of a collective), and the first 1 to 4 of them take over 10 times the median,
these form a start-up transient. The numbers come from https://github.com/AMD-AGI/TraceLens/issues/1049.
"""

LEAST_SHARE = 0.05
"""Slow first calls and earlier work are reported only if they take more than this fraction of the recording.

Smaller fractions are within the normal variation between steps.
"""

TIMES_LATER = 2
"""The first calls must also take over twice as long as any later call; otherwise, they may be long only because they
transfer more data than the median call."""

_LEADING = {
    "event_index": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "device": pl.Int32,
    "stream": pl.Int64,
    "call": pl.String,
}
_IDENTITY = ("collective", "group_ranks", "group_size", "sequence")
_SYNCHRONISES = r"(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier"


def slow_first_steps(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the first steps if they take more than 10 times as long as the median step.

    Such steps probably compile, allocate or wait.

    Source: https://github.com/AMD-AGI/TraceLens/issues/1049.
    """
    whole = steps(rank_trace).group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("start_ns")
    lengths = (whole["end_ns"] - whole["start_ns"]).to_numpy()
    leading = _leading_count(lengths)
    if not leading:
        return
    first = whole.head(leading)
    median = float(np.median(lengths))
    yield Doubt(
        "slow_first_steps",
        f"{_first_text(leading, 'step')} {duration_text(int(lengths[:leading].max()))}, more than {TIMES_MEDIAN} times the "
        f"median step ({duration_text(median)}): a start-up transient; exclude it from averages over steps",
        count=leading,
        times=times_of(first),
    )


def slow_first_calls(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt if calls that set up a device or load kernels on first use take over 5 % of the recording.

    Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading.
    """
    calls = first_calls(rank_trace)
    times = times_of(calls)
    share = _share_of_recording(rank_trace, times)
    if share <= LEAST_SHARE:
        return
    longest = calls.row(int((calls["end_ns"] - calls["start_ns"]).arg_max() or 0), named=True)
    name = rank_trace.texts(pl.Series([longest["name"]], dtype=pl.UInt32))[0]
    ends = "s" if len(calls) == 1 else ""
    yield Doubt(
        "slow_first_calls",
        f"{counted(len(calls), 'call')} that set{ends} up the device or load{ends} kernels on first use (longest: {name}) "
        f"take{ends} {duration_text(covered_length(*times))} ({percent_text(share)} of the recording); "
        "later steps do not include this time",
        count=len(calls),
        event_index=longest["event_index"],
        times=times,
    )


def work_before_recording(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about idle time in which a stream probably still runs work launched before the recording.

    A stream runs its work in order.
    Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#streams.
    """
    times = earlier_work(rank_trace)
    share = _share_of_recording(rank_trace, times)
    if share <= LEAST_SHARE:
        return
    yield Doubt(
        "work_before_recording",
        f"The first recorded work of a stream starts {duration_text(int((times[1] - times[0]).max()))} after its launch: the GPU "
        "probably still ran work from before the recording, so it was not idle, although it seems idle for "
        f"{percent_text(share)} of the recording",
        count=len(times[0]),
        times=times,
    )


def _share_of_recording(rank_trace: RankTrace, times: Intervals) -> float:
    events = rank_trace.table("events", ["start_ns", "duration_ns"])
    ends = events["start_ns"] + events["duration_ns"]
    recorded_ns = 0 if events.is_empty() else int(ends.max()) - int(events["start_ns"].min())  # type: ignore[arg-type]
    return covered_length(*times) / recorded_ns if recorded_ns else 0.0


def slow_first_collectives(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about the first calls of a collective kernel if they take more than 10 times the median duration.

    A rank whose profiler starts early waits in its first collective for ranks whose profilers are still starting.

    Source: https://github.com/AMD-AGI/Hyperloom/pull/1292, where the first all-reduce took 15,747 ms of a window of
    16,805 ms.
    """
    work = device_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION)
    repeated = work.filter(pl.len().over("name") >= FEWEST_SAMPLES)
    for (name, device), calls in repeated.group_by("name", "device", maintain_order=True):
        lengths = (calls["end_ns"] - calls["start_ns"]).to_numpy()
        leading = _leading_count(lengths)
        if not leading or calls.item(0, "start_ns") > _latest_start(work):
            continue
        text = rank_trace.strings[int(name)]
        first = calls.head(leading)
        yield Doubt(
            "slow_first_collectives",
            f"{_first_text(leading, 'collective')} {duration_text(int(lengths[:leading].max()))} ({text[:80]}), more than "
            f"{TIMES_MEDIAN} times the median ({duration_text(float(np.median(lengths)))}): most of this time "
            "is probably spent waiting for ranks whose profilers start later",
            count=leading,
            event_index=first.item(0, "event_index"),
            times=times_of(first),
            device=int(device),
            stream=first.item(0, "stream"),
        )


def first_collectives(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the first collective kernels of a rank, sorted by start.

    Returns:
        event_index, start_ns, end_ns, device, stream, and call. `call` is a text made of the collective, its ranks and
        its number; it is the same on all ranks. `call` is null if the collective, its ranks or its number is unknown,
        or if ranks can leave the collective before all ranks have entered it.
    """
    work = device_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION).head(MOST_LEADING)
    described = rank_trace.table("collectives", ["event_index", *_IDENTITY])
    known = work.join(described, on="event_index", how="left", maintain_order="left")
    names = rank_trace.texts(known["collective"]), rank_trace.texts(known["group_ranks"])
    is_complete = known["sequence"].is_not_null() & known["group_ranks"].is_not_null()
    joined = pl.DataFrame([*names, known["group_size"], known["sequence"]]).select(
        pl.concat_str(pl.all(), separator=" ")
    )
    call = joined.to_series().zip_with(
        is_complete & names[0].str.contains(_SYNCHRONISES), pl.Series([None], dtype=pl.String)
    )
    return known.with_columns(call.alias("call")).select(pl.col(name).cast(kind) for name, kind in _LEADING.items())


def _latest_start(work: pl.DataFrame) -> int:
    """Return the start of the first collective that cannot be part of a start-up transient."""
    return int(work["start_ns"].to_numpy()[: MOST_LEADING + 1].max())


def _leading_count(lengths: Int64Array) -> int:
    """Return how many values at the start form a transient; 0 if there is no transient."""
    if len(lengths) < FEWEST_SAMPLES:
        return 0
    is_long = lengths > TIMES_MEDIAN * np.median(lengths)
    # Count the long values at the start. Some value is not long, because the median is not.
    count = int(np.argmin(is_long))
    is_transient = 0 < count <= MOST_LEADING and lengths[:count].min() > TIMES_LATER * lengths[count:].max()
    return count if is_transient else 0


def _first_text(count: int, noun: str) -> str:
    return f"The first {noun} takes" if count == 1 else f"The first {counted(count, noun)} take up to"
