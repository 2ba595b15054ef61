"""A reason to doubt a trace: which rule is broken, where and when, and a sentence about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, union

NO_INTERVALS: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Doubt:
    """A rule that a rank, a device or a stream breaks.

    rule         name of the rule
    sentence     what was found and what it means
    count        number of events or intervals that break the rule
    event_index  the event to look at first; None if the rule is not about events
    times        intervals in which values in the trace may be wrong; empty if no particular times are in doubt
    device, stream  the device and stream that the doubt is about; None for the host, all devices or all streams
    from_ns, to_ns  the interval to look at if `times` is empty; None if there is no such interval
    """

    rule: str
    sentence: str
    count: int = 1
    event_index: int | None = None
    times: Intervals = NO_INTERVALS
    device: int | None = None
    stream: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None

    @property
    def doubtful_ns(self) -> int | None:
        """Total length of `times`; None if `times` is empty."""
        return covered_length(*self.times) if len(self.times[0]) else None

    @property
    def span(self) -> tuple[int | None, int | None]:
        """Start and end of `times`, or `from_ns` and `to_ns` if `times` is empty."""
        if not len(self.times[0]):
            return self.from_ns, self.to_ns
        return int(self.times[0].min()), int(self.times[1].max())


def all_times(doubts: Iterable[Doubt]) -> Intervals:
    """Return the times when at least one doubt applies, as disjoint intervals in order."""
    return union(*concatenated([NO_INTERVALS, *(doubt.times for doubt in doubts)]))


def times_of(events: pl.DataFrame, start: str = "start_ns", end: str = "end_ns") -> Intervals:
    """Return the times at which at least one of these events runs, as disjoint intervals in order."""
    return union(events[start].to_numpy(), events[end].to_numpy())


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return the first few names as text, with the number of remaining names."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
