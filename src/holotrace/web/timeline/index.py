"""The events of one rank, sorted for drawing: rows for threads and streams, with lanes for nested events."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.lanes import NOT_DRAWN, in_few_bits, lanes
from holotrace.algorithms.nested.nesting import nesting
from holotrace.drawing.names import printable
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import steps
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.trace import RankTrace
from holotrace.web.timeline.slices import Lanes, Slices, at_level

NOT_SLICES = (EventKind.MEMORY, EventKind.TRACE_SPAN, EventKind.INSTANT)
"""Events that are not drawn as slices: instants, spans of the whole recording, and allocations, which become a
counter."""

FEW_EVENTS = 150_000
"""For a window with at most this many events, each request itself merges the events that are too small to be seen. For
larger windows, the slices of the whole rank are merged once for each level of detail, and cached."""

_ANNOTATIONS = (int(EventKind.USER_ANNOTATION), int(EventKind.GPU_USER_ANNOTATION))
_DEVICE_ROW_KINDS = (*DEVICE_WORK_KINDS, EventKind.GPU_USER_ANNOTATION, EventKind.SYNCHRONISATION, EventKind.CUDA_EVENT)
_LABELS = {"track_id": pl.Int64, "label": pl.String, "process": pl.String, "device": pl.Int64}
_LAST = 1 << 62


@dataclass(frozen=True)
class Row:
    """A thread or a stream, with annotations in the upper lanes.

    label          `stream 7`, `thread 59811 (python3)`
    process        `GPU 0`, `python3 59811`
    device         device ordinal; None for threads
    first_lane     the first of the row's `lane_count` lanes
    hidden_count   number of events nested too deeply to be drawn
    """

    label: str
    process: str
    device: int | None
    track_id: int
    first_lane: int
    lane_count: int
    event_count: int
    hidden_count: int


@dataclass(eq=False)
class TimelineIndex:
    """The drawn events of a rank.

    origin_ns    the earliest start; all other times are relative to it
    rows         the rows, in drawing order
    events       start and end of each event, sorted by lane and time
    name         string id of each event's name, in the order of `events`, like `kind` and `event_index`
    step_ranges  (start, end, number) of each training step
    """

    origin_ns: int
    length_ns: int
    rows: tuple[Row, ...]
    events: Lanes
    name: npt.NDArray[np.uint32]
    kind: npt.NDArray[np.uint8]
    event_index: npt.NDArray[np.uint32]
    step_ranges: tuple[tuple[int, int, int], ...]
    strings: pl.Series
    _levels: dict[int, Slices] = field(default_factory=dict)
    _parents: npt.NDArray[np.int64] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def level(self, level: int) -> Slices:
        """Return all slices at a level of detail, computed once from the nearest finer level."""
        with self._lock:
            if level not in self._levels:
                finer = max((known for known in self._levels if known < level), default=None)
                source = self._all() if finer is None else self._levels[finer]
                self._levels[level] = at_level(source, level)
            return self._levels[level]

    def prepare(self, widest: int) -> None:
        """Compute in advance the levels that are needed to draw windows with many events.

        `widest` is the level that is drawn when the window shows the whole recording.
        """
        halvings = (len(self.events.start) // FEW_EVENTS).bit_length()
        for level in range(max(0, widest - halvings), widest) if halvings else ():
            self.level(level)

    def parents(self) -> npt.NDArray[np.int64]:
        """Return, for each event, the position of the innermost event around it in its row, or `NO_PARENT`.

        The positions are computed once.
        """
        with self._lock:
            if self._parents is None:
                row, _ = self.rows_of(np.arange(len(self.events.start)))
                self._parents = nesting(row, self.events.start, self.events.end).parent
            return self._parents

    def _all(self) -> Slices:
        return Slices.single(self.events, np.arange(len(self.events.start)), self.events.bounds)

    def row_of(self, place: int) -> tuple[int, int]:
        """Return the row and the depth of an event."""
        row, depth = self.rows_of(np.array([place]))
        return int(row[0]), int(depth[0])

    def rows_of(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return two arrays: the row of each event, and its depth within this row."""
        firsts = np.array([row.first_lane for row in self.rows], np.int64)
        lane = self.events.lane_of(places)
        row = np.searchsorted(firsts, lane, side="right") - 1
        return row, lane - (firsts[row] if len(firsts) else 0)

    def place_of(self, event_index: int) -> int | None:
        """Return the position of an event in this index; None if the event is not drawn."""
        places = np.flatnonzero(self.event_index == event_index)
        return int(places[0]) if len(places) else None

    def around(self, place: int) -> list[int]:
        """Return the events that enclose the event at `place` on the same row, the innermost first."""
        row, depth = self.rows[self.row_of(place)[0]], self.row_of(place)[1]
        start, end = self.events.start, self.events.end
        own = (end[place] - start[place], -depth)
        outer = []
        # Of two events with equal times, the event in the deeper lane is inside the other event.
        for lane in reversed(range(row.lane_count)):
            at = self._last_until(row.first_lane + lane, start[place])
            if at is not None and end[at] >= end[place] and (end[at] - start[at], -lane) > own:
                outer.append(at)
        return sorted(outer, key=lambda at: end[at] - start[at])

    def _last_until(self, lane: int, time: int) -> int | None:
        """Return the last event of a lane that starts at or before this time."""
        first, last = self.events.bounds[lane : lane + 2]
        at = int(first + np.searchsorted(self.events.start[first:last], time, side="right")) - 1
        return at if at >= first else None

    def text(self, name: int) -> str:
        """Return the name with this string id, without control characters."""
        return printable(self.strings[name] or "")


def timeline_index(rank_trace: RankTrace) -> TimelineIndex:
    """Sort the events of a rank for drawing."""
    kinds = [kind for kind in EventKind if kind not in NOT_SLICES]
    columns = ["event_index", "start_ns", "end_ns", "track_id", "name", "kind"]
    events = event_ranges(rank_trace, kinds, columns)
    origin = _minimum(events["start_ns"])
    start, end = (events[name].to_numpy() - origin for name in ("start_ns", "end_ns"))
    tracks, labels = _tracks(rank_trace, events)
    number = np.zeros(rank_trace.table("tracks", ["track_id"]).height, np.int64)
    number[labels["track_id"].to_numpy()] = np.arange(len(labels))
    is_annotation = np.isin(events["kind"].to_numpy(), _ANNOTATIONS)
    order, lane = lanes(2 * number[tracks] + ~is_annotation, start, end)
    row = number[tracks][order]
    rows, chosen, bounds = _rows(labels, row, _below_annotations(row, is_annotation[order], lane))
    order = order[chosen]
    return TimelineIndex(
        origin,
        int(end.max(initial=0)),
        rows,
        Lanes(bounds, start[order], end[order]),
        events["name"].to_numpy()[order],
        events["kind"].to_numpy()[order],
        events["event_index"].to_numpy()[order],
        tuple((first - origin, last - origin, step) for step, first, last, _ in steps(rank_trace).iter_rows()),
        rank_trace.unselected.strings,
    )


def _minimum(values: pl.Series) -> int:
    return int(values.to_numpy().min(initial=_LAST)) if len(values) else 0


def _tracks(rank_trace: RankTrace, events: pl.DataFrame) -> tuple[npt.NDArray[np.int64], pl.DataFrame]:
    """Return the track of each event and, in drawing order, all tracks that have events."""
    is_device = pl.col("kind").is_in([int(kind) for kind in _DEVICE_ROW_KINDS]).any().alias("is_device")
    counted = events.group_by("track_id").agg(is_device, pl.len().alias("event_count"))
    table = rank_trace.table("tracks")
    texts = {name: rank_trace.texts(table[name]) for name in ("process_text", "thread_text")}
    named = counted.join(table.with_columns(**texts), on="track_id", how="left")
    metadata = _metadata(rank_trace)
    described = sorted((_described(track, metadata) for track in named.iter_rows(named=True)), key=itemgetter("place"))
    labels = pl.DataFrame(described, schema=_LABELS) if described else pl.DataFrame(schema=_LABELS)
    return events["track_id"].to_numpy().astype(np.int64), labels


def _metadata(rank_trace: RankTrace) -> dict[tuple[str, Any], Any]:
    """Return the metadata; the key is (name, track_id) for a thread, and (name, process) for a process."""
    table = rank_trace.table("metadata", ["name", "track_id", "value", "sort_index"])
    tracks = rank_trace.table("tracks", ["process_id", "process_text"])
    names, values = rank_trace.texts(table["name"]).to_list(), rank_trace.texts(table["value"]).to_list()
    processes = list(tracks.iter_rows())
    metadata: dict[tuple[str, Any], Any] = {}
    for name, track, value, place in zip(names, table["track_id"], values, table["sort_index"], strict=True):
        key = processes[track] if name.startswith("process") else track
        metadata[name, key] = place if name.endswith("sort_index") else value
    return metadata


def _described(track: dict[str, Any], metadata: dict[tuple[str, Any], Any]) -> dict[str, Any]:
    """Return the labels and the sort key of a track.

    Processes with numeric ids come before processes with text ids. Among these, threads come before streams.
    """
    own, process_key = track["track_id"], _process_key(track)
    thread = track["thread_text"] if track["thread_id"] is None else track["thread_id"]
    process = process_key[1] if process_key[0] is None else process_key[0]
    label = (metadata.get(("thread_name", own)) or "").strip() or _thread_label(thread, is_device=track["is_device"])
    name = metadata.get(("process_name", process_key)) or ""
    is_ordinal = track["is_device"] and process_key[0] is not None
    process_label = f"GPU {process}" if is_ordinal else f"{name} {process}".strip()
    order = (metadata.get(("process_sort_index", process_key)), metadata.get(("thread_sort_index", own)))
    place = (process_key[0] is None, track["is_device"], *(_LAST if number is None else number for number in order))
    return {
        "track_id": own,
        "label": printable(str(label)),
        "process": printable(process_label),
        "device": process_key[0] if is_ordinal else None,
        "place": (*place, _LAST if track["thread_id"] is None else track["thread_id"], own),
    }


def _thread_label(thread: int | str | None, *, is_device: bool) -> str:
    if isinstance(thread, int):
        return f"stream {thread}" if is_device else f"thread {thread}"
    return thread or ("stream" if is_device else "thread")


def _process_key(track: dict[str, Any]) -> tuple[int | None, str | None]:
    return track["process_id"], track["process_text"]


def _below_annotations(
    row: npt.NDArray[np.int64], is_annotation: npt.NDArray[np.bool_], lane: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Move the annotations of a row above its other events, because deep Python stacks would otherwise hide them."""
    lane_count = np.zeros(int(row.max(initial=-1)) + 1, np.int32)
    np.maximum.at(lane_count, row[is_annotation], lane[is_annotation] + 1)
    return np.where(is_annotation | (lane == NOT_DRAWN), lane, lane + lane_count[row])


def _rows(
    labels: pl.DataFrame, number: npt.NDArray[np.int64], lane: npt.NDArray[np.int32]
) -> tuple[tuple[Row, ...], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows, the drawn events sorted by lane, and the first event of each lane."""
    count = len(labels)
    event_counts = np.bincount(number, minlength=count)
    drawn = np.flatnonzero(lane != NOT_DRAWN)
    first_events = np.searchsorted(number, np.arange(count))
    depth = np.maximum.reduceat(lane, first_events).astype(np.int64) + 1 if count else np.zeros(0, np.int64)
    first = np.concatenate([[0], np.cumsum(depth)]).astype(np.int64)
    whole_lane = first[number[drawn]] + lane[drawn]
    order = np.argsort(in_few_bits(whole_lane), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(whole_lane, minlength=int(first[-1])))]).astype(np.int64)
    hidden = event_counts - np.bincount(number[drawn], minlength=count)
    rows = tuple(
        Row(label, process, device, track, int(first[at]), int(depth[at]), int(event_counts[at]), int(hidden[at]))
        for at, (track, label, process, device) in enumerate(labels.iter_rows())
    )
    return rows, drawn[order], bounds
