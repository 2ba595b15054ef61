"""The evidence about one rank that the rules use: the activity of its devices and its host in the steady steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import (
    Intervals,
    concatenated,
    covered_length,
    difference,
    holding,
    intersection,
    intervals_of,
    overlaps,
    union,
    union_of,
)
from holotrace.analyses.diagnosis.evidence.kernel_evidence import costed_work
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.devices import described_devices, devices_of_rank
from holotrace.enrich.device.earlier_work import earlier_work
from holotrace.enrich.device.first_calls import first_calls
from holotrace.enrich.device.graph_replays import unknown_work
from holotrace.enrich.device.launches import launched_work, launches
from holotrace.enrich.device.left_out_launches import calls_between_launches
from holotrace.enrich.device.peaks import Device, device_named
from holotrace.enrich.device.synchronisations import host_synchronisations
from holotrace.enrich.host.source_lines import records_python
from holotrace.enrich.job.outliers import stands_out
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.enrich.job_graph.causes.host_lines import main_track, segments
from holotrace.enrich.memory.memory_events import memory_events
from holotrace.enrich.steps.step_roles import roles
from holotrace.enrich.steps.steps import device_extended_windows, steps
from holotrace.ingest.trace_writer import other_writer
from holotrace.schema import LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.trace import RankTrace

_ACTIVITY = {
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "event_index": pl.UInt32,
    "cause": pl.String,
    "name": pl.String,
    "module": pl.String,
    "frame": pl.String,
}
_FAIR_SHARE = 0.05
"""A thread that launches less than this share of the kernels does not count as a launching thread."""

_ON_DEVICES = ("kernel", "memcpy", "memset", "communication")


class RankEvidence:
    """The evidence about one rank. Each property is computed when it is first read.

    Most properties cover only the steady steps; see `step_windows`. Intervals are disjoint and sorted.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        """Create the evidence about the rank of this trace."""
        self.rank_trace = rank_trace
        self.rank = rank_trace.rank

    @cached_property
    def has_steps(self) -> bool:
        """Whether the recording has steps; without them, the whole recording counts as one step."""
        return not steps(self.rank_trace).is_empty()

    @cached_property
    def has_device_work(self) -> bool:
        """Whether any work ran on a device; if none did, the rules examine the training thread."""
        return not device_rows(self.rank_trace).is_empty()

    @cached_property
    def is_unread(self) -> bool:
        """Whether the file may contain device work that holotrace cannot read.

        Such a file contains PyTorch's operators, but was written by a program other than PyTorch's profiler.
        """
        return bool(other_writer(self.rank_trace)) and EventKind.CPU_OP in self.rank_trace.event_counts()

    @property
    def computes_on_host(self) -> bool:
        """Whether the job computes on the host, without devices."""
        return not self.has_device_work and not self.is_unread

    @cached_property
    def has_gpu(self) -> bool:
        """Whether the file shows that the rank had a GPU: by device properties, device work, or runtime calls."""
        calls = sum(self.rank_trace.event_counts().get(kind, 0) for kind in LAUNCH_KINDS)
        return bool(self.rank_trace.header.device_properties) or self.has_device_work or calls > 0

    @cached_property
    def steady(self) -> pl.DataFrame:
        """The steady steps (window, start_ns, end_ns), without steps that take far longer than other steps."""
        windows = device_extended_windows(self.rank_trace)
        lengths = windows.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length"), peers=0)
        return windows.filter(~stands_out(lengths, "length", ["peers"])).select("window", "start_ns", "end_ns")

    @cached_property
    def step_windows(self) -> Intervals:
        """The intervals of the steady steps; adjacent steps are merged into one interval."""
        return union_of(self.steady)

    @cached_property
    def step_lengths_ns(self) -> Sequence[int]:
        """The length of each steady step."""
        lengths: list[int] = (self.steady["end_ns"] - self.steady["start_ns"]).to_list()
        return lengths

    @property
    def step_count(self) -> int:
        """The number of steady steps, at least 1."""
        return max(1, len(self.step_lengths_ns))

    @cached_property
    def time_ns(self) -> int:
        """The total length of all steady steps."""
        return covered_length(*self.step_windows)

    @cached_property
    def roles(self) -> dict[str, Intervals]:
        """The intervals of each role: kernels, copies, communication, runtime calls, data loading and operators."""
        return {role: intersection(known, self.step_windows) for role, known in roles(self.rank_trace).items()}

    @cached_property
    def busy(self) -> Intervals:
        """The intervals in which any device was busy; communication and copies are included."""
        return union(*concatenated([self.roles[role] for role in _ON_DEVICES]))

    @cached_property
    def exposed_communication(self) -> Intervals:
        """The intervals with communication but no computation, on devices (on the host if there is no device work)."""
        computing = self.roles["kernel" if self.has_device_work else "cpu"]
        return difference(self.roles["communication"], computing)

    @cached_property
    def idle(self) -> Intervals:
        """The intervals inside the steps in which no device was busy.

        If the rank has no device work, these are the intervals inside the steps in which no communication was exposed.
        The intervals of `unknown` are excluded, because a device may have been busy then.
        """
        busy = self.busy if self.has_device_work else self.exposed_communication
        return difference(difference(self.step_windows, busy), self.unknown)

    @cached_property
    def unknown(self) -> Intervals:
        """The intervals without recorded work in which a device may have replayed a graph with unrecorded kernels."""
        return intersection(difference(self.step_windows, self.busy), unknown_work(self.rank_trace))

    @cached_property
    def maybe_busy(self) -> Intervals:
        """The intervals of `unknown`, and idle time in which a device may have run work that is missing from the file.

        Work is missing if it was launched before the recording, or if the file is incomplete.
        """
        if calls_between_launches(self.rank_trace) is not None:
            return union(*concatenated([self.unknown, self.idle]))
        before = intersection(self.idle, earlier_work(self.rank_trace.unselected))
        return union(*concatenated([self.unknown, before]))

    @cached_property
    def activity(self) -> pl.DataFrame:
        """The activity of the training thread or, while it waits for autograd, of the backward thread.

        start_ns, end_ns, event_index (null outside all ranges), cause, name, module, frame: see
        `holotrace.enrich.job_graph.causes.cause_names.host_ranges`; the cause `host_idle` stands for time outside
        all ranges.
        """
        known = host_ranges(self.rank_trace)
        if known.ranges.is_empty():
            return pl.DataFrame(schema=_ACTIVITY)
        first, *others = self._launching_tracks()
        table = self._activity_of(first)
        for track in others:
            table = _overlaid(table, self._activity_of(track).filter(pl.col("cause") != "host_idle"))
        return table

    @cached_property
    def in_first_calls(self) -> Intervals:
        """The idle time in calls that are slow because they are the first of their kind; see `first_calls`."""
        return intersection(self.idle, union_of(first_calls(self.rank_trace)))

    @cached_property
    def while_idle(self) -> pl.DataFrame:
        """The rows of `activity`, cut to the intervals of `idle` that lie outside `in_first_calls`."""
        return self.within(self.activity, difference(self.idle, self.in_first_calls))

    @cached_property
    def work(self) -> pl.DataFrame:
        """The rows of `launched_work` that start in a steady step, with `duration_ns`."""
        work = launched_work(self.rank_trace)
        starts = (work["start_ns"].to_numpy(), work["start_ns"].to_numpy() + 1)
        inside = np.zeros(len(work), np.bool_)
        order = np.argsort(starts[0], kind="stable")
        position = np.searchsorted(self.step_windows[0], starts[0][order], side="right") - 1
        if len(self.step_windows[0]):
            inside[order] = (position >= 0) & (starts[0][order] < self.step_windows[1][position.clip(min=0)])
        return work.filter(pl.Series(inside)).with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))

    @cached_property
    def kernels(self) -> pl.DataFrame:
        """The rows of `work` that compute, with their names as text in the column `kernel`."""
        rows = self.work.filter(~pl.col("kernel_kind").is_in([int(KernelKind.MEMORY), int(KernelKind.COMMUNICATION)]))
        return rows.with_columns(self.rank_trace.texts(rows["name"]).alias("kernel"))

    @cached_property
    def devices(self) -> list[dict[str, Any]]:
        """The devices on which the rank ran work: device, device_name, memory_bytes, compute_capability."""
        return devices_of_rank(self.rank_trace).to_dicts() if self.has_device_work else []

    @cached_property
    def peaks(self) -> Device | None:
        """The peak rates of the device; None if it is unknown, or if the rank has several kinds of devices."""
        names = {device["device_name"] for device in self.devices}
        return device_named(names.pop()) if len(names) == 1 else None

    @cached_property
    def costed(self) -> pl.DataFrame:
        """The rows of `work` that compute or copy, with the columns that `costed_work` adds."""
        return costed_work(self.rank_trace, self.work, self.peaks)

    @cached_property
    def memory_peaks(self) -> list[dict[str, Any]]:
        """The devices with memory events: device_type, device, peak_bytes, peak_ns, reserved_bytes, capacity_bytes."""
        allocated = pl.col("allocated_bytes")
        on_devices = memory_events(self.rank_trace.unselected).filter(~pl.col("device_type").is_in(["cpu", "?"]))
        peaks = on_devices.group_by("device_type", "device", maintain_order=True).agg(
            allocated.max().alias("peak_bytes"),
            pl.col("time_ns").get(allocated.arg_max()).alias("peak_ns"),
            pl.col("reserved_bytes").max(),
        )
        known = described_devices(self.rank_trace, peaks["device"].to_list())
        return peaks.with_columns(known["memory_bytes"].alias("capacity_bytes")).to_dicts()

    def activity_at(self, time_ns: int | None) -> dict[str, Any]:
        """Return the row of `activity` for this time; an empty dictionary before the first row."""
        starts = self.activity["start_ns"].to_numpy()
        row = -1 if time_ns is None else int(np.searchsorted(starts, time_ns, side="right")) - 1
        return self.activity.row(row, named=True) if row >= 0 else {}

    @cached_property
    def synchronisations(self) -> pl.DataFrame:
        """The calls in which the host waits for a device that then becomes idle, with the idle time that follows.

        The device is idle when such a call returns. Without the call, the host could have launched more work before the
        device became idle.

        If the device is already idle when the call begins, the host does not wait, and the call is left out.
        Recordings with Python functions are an exception, because recording these functions slows the host down.
        Without the profiler, the host might have made the call while the device was still busy. Such a call is
        included, but the idle time after it counts only up to the length of the idle time before it.

        In a recording without steps, calls after the last launch are left out.

        event_index, end_ns       of the call
        call                      name of the call
        name, module, frame       the operator around the call, its module and its Python function; null if unknown
        gap_start_ns, gap_end_ns  the idle time in which the call ends, as far as it counts
        """
        calls = host_synchronisations(self.rank_trace).select("event_index").unique()
        known = self.activity.join(calls, on="event_index", how="semi")
        made = known.group_by("event_index", maintain_order=True).agg(
            pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("name", "module", "frame").first()
        )
        gap = holding(self.idle, made["end_ns"].to_numpy())
        kept, gap = made.filter(pl.Series(gap >= 0)), gap[gap >= 0]
        names = self.rank_trace.table("events", ["event_index", "name"])
        called = kept.select("event_index").join(names, on="event_index", how="left", maintain_order="left")["name"]
        starts, ends = (times[gap] for times in self.idle)
        waits = kept.with_columns(
            self.rank_trace.texts(called).alias("call"),
            pl.Series("gap_start_ns", starts, pl.Int64),
            pl.Series("gap_end_ns", ends, pl.Int64),
        )
        # A call inside an operator counts even if the device was already idle, because the operator may already
        # have copied data, and the host may have waited for that copy.
        has_waited = (pl.col("gap_start_ns") >= pl.col("start_ns")) | (pl.col("name") != pl.col("call")).fill_null(
            value=True
        )
        delay = pl.col("start_ns") - pl.col("gap_start_ns")
        gap_end = pl.min_horizontal("gap_end_ns", pl.when(~has_waited).then(pl.col("end_ns") + delay))
        last_ns = None if self.has_steps else self.work["launch_start_ns"].max()
        is_followed = pl.lit(last_ns is None) | (pl.col("end_ns") < pl.lit(last_ns, pl.Int64))
        may_wait = has_waited | pl.lit(records_python(self.rank_trace))
        return waits.with_columns(gap_end.alias("gap_end_ns")).filter(may_wait, is_followed).drop("start_ns")

    @cached_property
    def has_graph_launches(self) -> bool:
        """Whether CUDA or HIP graphs were launched."""
        names = self.rank_trace.texts(launches(self.rank_trace)["launch_name"].drop_nulls().unique())
        return bool(names.str.contains("(?i)graph_?launch").any())

    @cached_property
    def event_counts(self) -> dict[int, int]:
        """The number of events in the steady steps, by kind; device work is included."""
        events = self.rank_trace.table("events", ["kind", "start_ns"])
        row = np.searchsorted(self.step_windows[0], events["start_ns"].to_numpy(), side="right") - 1
        inside = (row >= 0) & (events["start_ns"].to_numpy() < np.append(self.step_windows[1], 0)[row])
        return dict(events.filter(pl.Series(inside))["kind"].value_counts().iter_rows())

    @property
    def capability(self) -> int:
        """The major compute capability of the first device; 0 if unknown."""
        known = next((device["compute_capability"] for device in self.devices), None)
        return int(known.partition(".")[0]) if known else 0

    def within(self, table: pl.DataFrame, intervals: Intervals) -> pl.DataFrame:
        """Return the parts of a table's rows that lie in these intervals; the rows must be disjoint and sorted."""
        shared = overlaps(intervals_of(table), intervals)
        return table[shared.first].with_columns(
            pl.Series("start_ns", shared.start_ns), pl.Series("end_ns", shared.end_ns)
        )

    def per_step(self, intervals: Intervals) -> float:
        """Return how many ns of a steady step the intervals cover on average."""
        return covered_length(*intervals) / self.step_count

    def share(self, intervals: Intervals) -> float:
        """Return the share of the time in steady steps that the intervals cover."""
        return covered_length(*intervals) / self.time_ns if self.time_ns else 0.0

    def _launching_tracks(self) -> list[int]:
        """Return the training thread, then all other threads that launch much device work or run many operators."""
        known = host_ranges(self.rank_trace)
        announced = steps(self.rank_trace)
        main = main_track(known, int(announced["track_id"][0]) if len(announced) else None)
        return [main, *(track for track in self._working_tracks() if track != main)]

    def _working_tracks(self) -> list[int]:
        """Return the threads that launch at least 5 % of the kernels or, without device work, run 5 % of the operators.

        A thread that only pins batches for the data loader is left out, because it launches copies but no kernels.
        """
        ranges = host_ranges(self.rank_trace).ranges
        if self.has_device_work:
            launched = self.kernels.select(event_index="launch_index").drop_nulls()
            doing = launched.join(ranges.select("event_index", "track_id"), on="event_index")
        else:
            doing = ranges.filter(pl.col("kind") == EventKind.CPU_OP)
        counts = doing.group_by("track_id").agg(pl.len().alias("count")).sort("track_id")
        return counts.filter(pl.col("count") >= _FAIR_SHARE * len(doing))["track_id"].to_list()

    def _activity_of(self, track: int) -> pl.DataFrame:
        known = host_ranges(self.rank_trace)
        parts = segments(known, track)
        rows = pl.Series(parts.owner)
        owner = known.ranges["event_index"].gather(rows.set(rows < 0, None).cast(pl.UInt32))
        causes = known.causes[known.cause_row[parts.owner]].select("cause", "name", "module", "frame")
        times = pl.DataFrame({"start_ns": parts.start_ns, "end_ns": parts.end_ns, "event_index": owner})
        return times.hstack(causes.with_columns(pl.col("cause").cast(pl.String)))


def _overlaid(below: pl.DataFrame, above: pl.DataFrame) -> pl.DataFrame:
    """Overlay one table on another: at times that both cover, only the rows of `above` remain.

    Autograd's threads do not run the user's Python code. If a row of `above` therefore has no frame, it gets the frame
    of the row of `below` at the same time: the frame that called `backward`. A row with the cause `python` gets no
    frame, because its time belongs to one of PyTorch's own functions.
    """
    covered = union_of(above)
    frames = below.select("start_ns", pl.col("frame").alias("frame_below"))
    is_called = pl.col("frame").is_null() & (pl.col("cause") != "python")
    beside = above.join_asof(frames, on="start_ns", check_sortedness=False)
    known = beside.with_columns(pl.when(is_called).then("frame_below").otherwise("frame").alias("frame")).drop(
        "frame_below"
    )
    times = intervals_of(below)
    free = difference(times, covered)
    shared = overlaps(times, free)
    rest = below[shared.first].with_columns(pl.Series("start_ns", shared.start_ns), pl.Series("end_ns", shared.end_ns))
    return pl.concat([rest, known]).sort("start_ns")
