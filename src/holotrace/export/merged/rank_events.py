"""The events of one rank in a merged trace: on the reference clock, with pids and flow ids unique to the rank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from holotrace import _native
from holotrace.enrich.across_ranks.clocks.rank_clocks import RankClock
from holotrace.errors import UnreadableTraceError
from holotrace.export.chrome_trace import Event, has_changed
from holotrace.export.counters import counter_events
from holotrace.export.event_json import events_text
from holotrace.export.event_reader import EventReader
from holotrace.export.merged.processes import Pid, Process
from holotrace.export.trace_text import pieces
from holotrace.locations import RemoteStream, native_source
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text

Opened: TypeAlias = Callable[[RankTrace], AbstractContextManager[Path | RemoteStream]]
"""A function that opens a rank's file for the native module."""

_EVENTS_AT_ONCE = 1_000


class RankPlace(NamedTuple):
    """How to convert a rank's events for the merged trace.

    base_ns        `baseTimeNanoseconds` of the rank's file
    merged_base_ns `baseTimeNanoseconds` of the merged trace
    pids           {pid in the rank's file: pid in the merged trace}; unlisted pids get the next higher numbers
    """

    rank: int
    clock: RankClock
    base_ns: int
    merged_base_ns: int
    pids: Mapping[Pid, int]

    def placing(self) -> _native.Placing:
        """Return the conversion as an object of the native module."""
        return _native.Placing(
            self.rank, self.base_ns, self.merged_base_ns, self.clock.native_lines(), list(self.pids.items())
        )


def by_name(rank_trace: RankTrace) -> AbstractContextManager[Path | RemoteStream]:
    """Open the file of a rank by its path or URL."""
    return native_source(rank_trace.source)


def rank_events(
    rank_trace: RankTrace, known: tuple[Process, ...], place: RankPlace, opened: Opened = by_name
) -> Iterator[bytes]:
    """Yield the events of a rank as JSON, each preceded by a comma.

    The names of the rank's processes come first, then the events of its file, then its counters.
    """
    placing = place.placing()
    yield b"".join(b",\n" + event for process in known for event in _names(process, place))
    is_whole = rank_trace.health.is_clean and rank_trace.health.events_end is not None
    with opened(rank_trace) as source:
        yield from _copied(rank_trace, source, placing) if is_whole else _repaired(rank_trace, source, placing)
    yield from _placed(counter_events(rank_trace.unselected), placing)


def _copied(rank_trace: RankTrace, source: Path | RemoteStream, placing: _native.Placing) -> Iterator[bytes]:
    try:
        events = _native.PlacedEvents(source, placing)
        yield from iter(events.next, None)
        if (events.event_count, events.events_end) != (rank_trace.health.event_count, rank_trace.health.events_end):
            raise has_changed(rank_trace.source)
    except _native.NotATraceError as error:
        raise has_changed(rank_trace.source) from error
    except OSError as error:
        message = f"{rank_trace.source} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error


def _repaired(rank_trace: RankTrace, source: Path | RemoteStream, placing: _native.Placing) -> Iterator[bytes]:
    """Yield the events of a damaged file; this takes ten times as long as for an intact file of the same size."""
    reader = EventReader(rank_trace.source, pieces(source if isinstance(source, Path) else rank_trace.source))
    reader.head()
    yield from _placed(reader.events(), placing)


def _placed(events: Iterable[Event | str], placing: _native.Placing) -> Iterator[bytes]:
    rest = iter(events)
    while batch := list(islice(rest, _EVENTS_AT_ONCE)):
        yield placing.placed(events_text(batch).encode())


def half_width_text(clock: RankClock) -> str:
    """Return the uncertainty of a rank's clock: `± 12 µs` or `clock unknown`; empty for the reference clock."""
    if clock.half_width_ns is None:
        return "clock unknown"
    return f"± {duration_text(clock.half_width_ns)}" if clock.half_width_ns else ""


def _names(process: Process, place: RankPlace) -> Iterator[bytes]:
    pid, error = place.pids[process.pid], half_width_text(place.clock)
    name = f"rank {place.rank} {process.name}".strip() + (f" ({error})" if error else "")
    yield _metadata("process_name", pid, {"name": name})
    yield _metadata("process_sort_index", pid, {"sort_index": pid})


def _metadata(name: str, pid: int, args: Mapping[str, Any]) -> bytes:
    """Return an event as UTF-8 rather than ASCII, because Perfetto does not decode escapes."""
    event = {"ph": "M", "name": name, "pid": pid, "tid": 0, "args": args}
    return json.dumps(event, ensure_ascii=False).encode(errors="replace")
