"""The events of one rank in a merged trace: on the reference clock, with pids and flows of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain
from typing import Any

from holotrace.enrich.across_ranks.clocks.rank_clocks import RankClock
from holotrace.export.chrome_trace import Event
from holotrace.export.counters import counter_events
from holotrace.export.event_json import file_time
from holotrace.export.event_reader import EventReader, read_event
from holotrace.export.merged.processes import Pid, Process
from holotrace.export.trace_text import pieces
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text

_REPLACED = ("process_name", "process_sort_index")
_JOINING_PHASES = frozenset("stfbenSTpF")
"""Phases of events that are joined by their `id` across processes: flows and asynchronous events."""

_ID_BITS = 36
"""Ids of ranks are this far apart, so those of 2^17 ranks are exact as doubles; CUPTI's correlation ids have 32 bits."""

_EXACT_NS = 1_000 << 43
"""Below 2^43 µs, neighbouring doubles are less than 1 ns apart, so a double has the right three decimal places."""


@dataclass(frozen=True)
class RankEvents:
    """Converts the events of a rank.

    base_ns        `baseTimeNanoseconds` of its file
    merged_base_ns the same of the merged trace
    pids           {pid in its file: pid in the merged trace}
    """

    rank: int
    clock: RankClock
    base_ns: int
    merged_base_ns: int
    pids: dict[Pid, int]

    def converted(self, event: dict[str, Any]) -> Event | None:
        """Return the event as it is in the merged trace; None if it names a process, or a thread without events."""
        phase = event.get("ph")
        if phase == "M" and (event.get("name") in _REPLACED or event.get("pid") not in self.pids):
            return None
        if "pid" in event:
            event["pid"] = self._pid(event["pid"])
        if "id" in event and phase in _JOINING_PHASES:
            event["id"] = self._id(event["id"])
        if "bind_id" in event:
            event["bind_id"] = self._id(event["bind_id"])
        self._set_times(event)
        return event

    def _pid(self, pid: Any) -> int:  # noqa: ANN401 -- whatever the file contains
        key = pid if isinstance(pid, (int, str)) else str(pid)
        return self.pids.setdefault(key, max(self.pids.values(), default=0) + 1)

    def _id(self, number: Any) -> int | str:  # noqa: ANN401 -- whatever the file contains
        if isinstance(number, int) and 0 <= number < 1 << _ID_BITS:
            return (self.rank << _ID_BITS) + number
        return f"rank {self.rank}: {number}"

    def _set_times(self, event: dict[str, Any]) -> None:
        start = nanoseconds(event.get("ts"))
        if start is None:
            return
        start_ns = self.clock.corrected(self.base_ns + start)
        event["ts"] = exact_microseconds(start_ns - self.merged_base_ns)
        duration = nanoseconds(event.get("dur"))
        if duration is not None:
            event["dur"] = exact_microseconds(self.clock.corrected(self.base_ns + start + duration) - start_ns)


def rank_events(rank_trace: RankTrace, known: tuple[Process, ...], events: RankEvents) -> Iterator[Event]:
    """Yield the events of a rank: the names of its processes, the events of its file, and its counters."""
    for process in known:
        yield from _names(process, events)
    reader = EventReader(rank_trace.source, pieces(rank_trace.source))
    reader.head()
    counters = map(read_event, counter_events(rank_trace.unselected))
    for event in map(events.converted, chain(reader.events(), counters)):
        if event is not None:
            yield event


def half_width_text(clock: RankClock) -> str:
    """Return how well the clock of a rank is known, such as `± 12 µs`; empty for the reference clock."""
    if clock.half_width_ns is None:
        return "clock unknown"
    return f"± {duration_text(clock.half_width_ns)}" if clock.half_width_ns else ""


def nanoseconds(microseconds: object) -> int | None:
    """Return a time of the file in whole nanoseconds; None if it is not a number.

    >>> nanoseconds(7), nanoseconds(0.125), nanoseconds(Decimal("1725000000000000.123")), nanoseconds(None)
    (7000, 125, 1725000000000000123, None)
    """
    if isinstance(microseconds, int) and not isinstance(microseconds, bool):
        return 1_000 * microseconds
    if isinstance(microseconds, float) and math.isfinite(microseconds):
        return round(1_000 * microseconds)
    if isinstance(microseconds, Decimal) and microseconds.is_finite():
        return int((1_000 * microseconds).to_integral_value(ROUND_HALF_UP))
    return None


def exact_microseconds(time_ns: int) -> int | float | Decimal:
    """Return nanoseconds as a number of microseconds that JSON writes with all its digits.

    >>> exact_microseconds(7_000), exact_microseconds(7_000_000_000_000_001), exact_microseconds(10**18 + 1)
    (7, 7000000000000.001, Decimal('1000000000000000.001'))
    """
    is_float = time_ns % 1_000 and abs(time_ns) < _EXACT_NS
    return time_ns / 1_000 if is_float else file_time(time_ns, 0)


def _names(process: Process, events: RankEvents) -> Iterator[Event]:
    pid, error = events.pids[process.pid], half_width_text(events.clock)
    name = f"rank {events.rank} {process.name}".strip() + (f" ({error})" if error else "")
    yield _metadata("process_name", pid, {"name": name})
    yield _metadata("process_sort_index", pid, {"sort_index": pid})


def _metadata(name: str, pid: int, args: Mapping[str, Any]) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": 0, "args": args}
