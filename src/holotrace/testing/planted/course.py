"""Simulate the course of a job as a graph of points in time.

Each edge of the graph sets a minimum time between an earlier point and a later point. A planted delay is an
edge whose minimum time is the length of the delay. To simulate the job without the delay, set this minimum time to 0.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holotrace.testing.job_plan import BEGIN_NS

After = tuple[int, int]
"""An earlier point, and the minimum time from that point to the new point."""

Activity = tuple[str, str, str]
"""An activity that takes time: its kind, its name, and the module around it."""

NOTHING: Activity = ("nothing", "", "")

_NOT_PLANTED = -1


class _Edge(NamedTuple):
    source: int
    least_ns: int
    cause: int


class Course:
    """Points in time; point 0 is the beginning of the job. New points belong to the current `rank`."""

    def __init__(self) -> None:
        self._before: list[list[_Edge]] = [[]]
        self.activities: list[Activity] = [NOTHING]
        self.ranks: list[int] = [0]
        self.rank = 0
        self._order: list[int] | None = None

    def point(self, *after: After, activity: Activity = NOTHING) -> int:
        """Add a point as soon as the points in `after` allow; just before the new point, the rank does `activity`."""
        return self._added([_Edge(*earlier, _NOT_PLANTED) for earlier in after], activity)

    def delayed(self, point: int, cause: int, delay_ns: int, activity: Activity = NOTHING) -> int:
        """Add a point `delay_ns` after `point`; the planted cause `cause` is the reason for the delay."""
        return self._added([_Edge(point, delay_ns, cause)], activity)

    def _added(self, before: list[_Edge], activity: Activity) -> int:
        self._before.append(before)
        self.activities.append(activity)
        self.ranks.append(self.rank)
        return len(self._before) - 1

    def also_after(self, point: int, earlier: int, least_ns: int = 0) -> None:
        """Make `point` also wait for the point `earlier`, even if `earlier` was added to the graph after `point`."""
        self._before[point].append(_Edge(earlier, least_ns, _NOT_PLANTED))

    def times(self, without: Collection[int] = ()) -> npt.NDArray[np.int64]:
        """Return the true time of each point if the delays of the causes in `without` are left out."""
        times = [BEGIN_NS] * len(self._before)
        for point in self._in_order():
            before = self._before[point]
            if before:
                times[point] = max(
                    times[source] + (0 if cause in without else least_ns) for source, least_ns, cause in before
                )
        return np.array(times, np.int64)

    def binding(self, point: int, times: npt.NDArray[np.int64]) -> After | None:
        """Return the predecessor that determines the time of `point`, and the time between them; None for point 0."""
        before = self._before[point]
        if not before:
            return None
        edge = max(before, key=lambda edge: int(times[edge.source]) + edge.least_ns)
        return edge.source, edge.least_ns

    def _in_order(self) -> list[int]:
        if self._order is None:
            self._order = self._sorted()
        return self._order

    def _sorted(self) -> list[int]:
        """Return the points in topological order."""
        after: list[list[int]] = [[] for _ in self._before]
        open_count = [len(before) for before in self._before]
        for point, before in enumerate(self._before):
            for edge in before:
                after[edge.source].append(point)
        ready = [point for point, count in enumerate(open_count) if not count]
        for point in ready:
            for later in after[point]:
                open_count[later] -= 1
                if not open_count[later]:
                    ready.append(later)
        if len(ready) < len(self._before):
            message = "the simulated job cannot run: the graph of its points in time has a cycle"
            raise AssertionError(message)
        return ready
