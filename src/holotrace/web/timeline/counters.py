"""The counters that the timeline draws above the rows of a rank: queue lengths, bandwidths, busy devices, memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import union_of
from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.content_equality import EqualByContent
from holotrace.drawing.names import printable
from holotrace.enrich.device.device_work import by_device, device_work
from holotrace.errors import MissingDataError
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace, Trace
from holotrace.web.timeline.query import Window

MOST_COUNTERS = 64

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counter(EqualByContent):
    """A value over time; it is constant between changes.

    unit   "" for a count, "fraction" for a number from 0 to 1, "bytes" or "bytes/s"
    time   ns since the origin of the rank, sorted; if there are several values at one time, the last applies
    """

    label: str
    unit: str
    device: int | None
    time: _Numbers
    value: npt.NDArray[np.float64]

    @property
    def highest(self) -> float:
        """The highest value."""
        return float(self.value.max(initial=0))


@dataclass(frozen=True)
class Counters:
    """The counters of a rank."""

    counters: tuple[Counter, ...]


def rank_counters(rank_trace: RankTrace, origin_ns: int) -> Counters:
    """Return the rank's counters: busy devices, queue lengths, bandwidths, memory, and the counters in the file."""
    counters: list[Counter] = []
    for source in (_use_of_devices, _queues, _bandwidths, _memory, _of_the_file):
        with suppress(MissingDataError):
            counters += [_from(counter, origin_ns) for counter in source(rank_trace)]
    return Counters(tuple(counters[:MOST_COUNTERS]))


def counter_answer(counter: Counter, window: Window) -> dict[str, list[Any]]:
    """Return the changes in a window or, if there are more changes than pixels, each pixel's mean and highest value.

    Returns:
        columns `time`, `mean`, `highest`; a value applies from its time to the next time
    """
    first = max(0, int(np.searchsorted(counter.time, window.start, side="right")) - 1)
    last = int(np.searchsorted(counter.time, window.end, side="left"))
    if last - first <= window.pixels:
        time, value = counter.time[first:last].tolist(), counter.value[first:last].tolist()
        return {"time": time, "mean": value, "highest": value}
    edges = np.linspace(window.start, window.end, window.pixels + 1).astype(np.int64)
    mean = np.diff(_integral(counter, edges)) / np.maximum(np.diff(edges), 1)
    return {"time": edges[:-1].tolist(), "mean": mean.tolist(), "highest": _highest(counter, edges).tolist()}


def _integral(counter: Counter, times: _Numbers) -> npt.NDArray[np.float64]:
    """Integrate the counter (value times ns) up to each time; the counter is 0 before its first change."""
    areas = np.concatenate([[0.0], np.cumsum(counter.value[:-1] * np.diff(counter.time))])
    after = np.maximum(times - counter.time[-1], 0) * counter.value[-1]
    return np.asarray(np.interp(times, counter.time, areas) + after)


def _highest(counter: Counter, edges: _Numbers) -> npt.NDArray[np.float64]:
    """Return the highest value in each interval between two successive edges."""
    values = np.concatenate([[0.0], counter.value, [0.0]])
    held = np.searchsorted(counter.time, edges[:-1], side="right")
    beyond = np.searchsorted(counter.time, edges[1:], side="left") + 1
    return np.asarray(np.maximum.reduceat(values, np.stack([held, beyond], axis=1).ravel())[::2])


def _from(counter: Counter, origin_ns: int) -> Counter:
    """Return the counter with times since the origin. If several values have the same time, only the last is kept."""
    is_last = np.append(np.diff(counter.time) != 0, True)[: len(counter.time)]
    time, value = counter.time[is_last] - origin_ns, counter.value[is_last]
    return Counter(printable(counter.label), counter.unit, counter.device, time, value)


def _use_of_devices(rank_trace: RankTrace) -> Iterator[Counter]:
    for device, work in by_device(device_work(rank_trace)) if len(device_work(rank_trace)) else ():
        start, end = union_of(work)
        time = np.stack([start, end], axis=1).ravel()
        yield Counter(f"GPU {device} busy", "fraction", device, time, np.tile([1.0, 0.0], len(start)))


def _queues(rank_trace: RankTrace) -> Iterator[Counter]:
    series = queue_length(Trace({rank_trace.rank: rank_trace})).series
    for (device, stream), rows in series.group_by("device", "stream", maintain_order=True):
        yield _counter((f"queue of stream {stream}", "", device), rows["time_ns"], rows["queue_length"])


def _bandwidths(rank_trace: RankTrace) -> Iterator[Counter]:
    series = memory_bandwidth(Trace({rank_trace.rank: rank_trace})).series
    for (device, name), rows in series.group_by("device", "name", maintain_order=True):
        yield _counter((f"{name} bandwidth", "bytes/s", device), rows["time_ns"], rows["bytes_per_s"])


def _memory(rank_trace: RankTrace) -> Iterator[Counter]:
    """Yield the allocated memory of each device after each allocation and release, if the profiler recorded them."""
    times = rank_trace.events_of([EventKind.MEMORY], ["event_index", "start_ns"])
    amounts = rank_trace.table("memory", ["event_index", "device_type", "device_id", "total_allocated"])
    joined = times.join(amounts.drop_nulls("total_allocated"), on="event_index").sort("start_ns", maintain_order=True)
    for (kind, device), rows in joined.group_by("device_type", "device_id", maintain_order=True):
        is_host = kind == 0
        label = "memory allocated, host" if is_host else f"memory allocated, GPU {device}"
        yield _counter((label, "bytes", None if is_host else device), rows["start_ns"], rows["total_allocated"])


def _of_the_file(rank_trace: RankTrace) -> Iterator[Counter]:
    table = rank_trace.table("counters", ["start_ns", "name", "key", "value"])
    rows = table.drop_nulls("value").filter(pl.col("value").is_finite()).sort("start_ns", maintain_order=True)
    for (name, key), group in rows.group_by("name", "key", maintain_order=True):
        texts = [rank_trace.unselected.strings[text] for text in (name, key) if text is not None]
        yield _counter((" ".join(dict.fromkeys(filter(None, texts))), "", None), group["start_ns"], group["value"])


def _counter(what: tuple[str, str, object], time: pl.Series, value: pl.Series) -> Counter:
    label, unit, device = what
    number = device if isinstance(device, int) else None
    return Counter(label, unit, number, time.to_numpy(), value.cast(pl.Float64).to_numpy())
