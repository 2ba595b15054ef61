"""The delay costs of a simulated job, from the true reason of every point of its course, one call after another.

For every wait, the history of the rank that waits and of the rank that arrives last, since both were last synchronised,
is divided into activities. The wait is charged to the activities on which the late rank spent more time, in proportion to
the excess. An activity that is itself a wait is charged to the causes of that wait.

Source: D. Böhme, M. Geimer, L. Arnold, F. Voigtlaender, F. Wolf: Identifying the root causes of wait states in large-scale
parallel applications. ACM Transactions on Parallel Computing 3(2), 2016. https://doi.org/10.1145/2934661
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from holotrace.testing.planted.course import Activity, Course
from holotrace.testing.planted.rank_course import PlannedCall

Cause = tuple[int, Activity]
"""A rank, and the activity on which it spent the time."""

_Key = tuple[object, ...]
_TRANSFER: Activity = ("transfer", "", "")
_BEGINNING: Cause = (-1, ("nothing", "", ""))


class DelayCosts:
    """The causes of all waiting in a job."""

    def __init__(self, course: Course, calls: Iterable[PlannedCall], times: npt.NDArray[np.int64]) -> None:
        self._course, self._times = course, times
        self._parts: dict[_Key, dict[int, PlannedCall]] = defaultdict(dict)
        self._call_that_ends: dict[int, PlannedCall] = {}
        for call in calls:
            self._parts[call.key][call.rank] = call
            self._call_that_ends[call.end] = call
        self._ends = self._ends_by_members()
        self._known: dict[tuple[_Key, int], dict[Cause, float]] = {}

    def per_wait(self) -> Iterator[tuple[PlannedCall, int, dict[Cause, float]]]:
        """Yield each call that waits, how long it waits, and the part of its wait that each cause has."""
        for key in sorted(self._parts, key=self._first_start):
            for call in self._parts[key].values():
                waited_ns = self._waited(call)
                if waited_ns > 0:
                    yield call, waited_ns, self._shares(call)

    def total(self) -> Counter[Cause]:
        """Return the cost of each cause in nanoseconds."""
        costs: Counter[Cause] = Counter()
        for _, waited_ns, shares in self.per_wait():
            for cause, share in shares.items():
                costs[cause] += waited_ns * share  # type: ignore[assignment]
        return costs

    def _shares(self, call: PlannedCall) -> dict[Cause, float]:
        """Return the part of a call's wait that each cause has; the parts add up to 1."""
        known = self._known.get((call.key, call.rank))
        if known is None:
            known = self._known[call.key, call.rank] = self._computed(call)
        return known

    def _computed(self, call: PlannedCall) -> dict[Cause, float]:
        late = max(self._parts[call.key].values(), key=lambda part: self._at(part.start))
        since_ns = self._synchronised(call)
        excess = self._history(late, since_ns)
        excess.subtract(self._history(call, since_ns))
        positive = {activity: spent_ns for activity, spent_ns in excess.items() if spent_ns > 0}
        total_ns = sum(positive.values())
        shares: defaultdict[Cause, float] = defaultdict(float)
        for activity, spent_ns in positive.items():
            for cause, share in self._followed(late, activity).items():
                shares[cause] += share * spent_ns / total_ns
        return shares or {_BEGINNING: 1.0}

    def _followed(self, late: PlannedCall, activity: Activity | _Key) -> dict[Cause, float]:
        """Return the causes of an activity: itself, or those of the wait that it is."""
        if activity not in self._parts:
            return {(late.rank, activity): 1.0}  # type: ignore[dict-item]
        return self._shares(self._parts[activity][late.rank])

    def _history(self, call: PlannedCall, since_ns: int) -> Counter[Activity | _Key]:
        """Return how long the rank spent on each activity from a time until a call; waits count under the key of their call."""
        spent: Counter[Activity | _Key] = Counter()
        point = call.start
        while self._at(point) > since_ns and (before := self._course.binding(point, self._times)) is not None:
            other = self._call_that_ends.get(point)
            if other is not None and before[0] == other.arrived:
                spent[_TRANSFER] += self._at(point) - max(since_ns, self._at(other.arrived))
                spent[other.key] += max(0, self._at(other.arrived) - max(since_ns, self._at(other.start)))
                point = other.start
            else:
                spent[self._course.activities[point]] += self._at(point) - max(since_ns, self._at(before[0]))
                point = before[0]
        return spent

    def _synchronised(self, call: PlannedCall) -> int:
        """Return when the members of a call were last synchronised before the first of them began it; 0 if never."""
        first_ns = self._first_start(call.key)
        ends = self._ends[frozenset(call.members)]
        place = int(np.searchsorted(ends, first_ns, side="right"))
        return int(ends[place - 1]) if place else 0

    def _ends_by_members(self) -> dict[frozenset[int], npt.NDArray[np.int64]]:
        """Return, for each set of members, the sorted ends of the operations in which all of them take part."""
        ends: defaultdict[frozenset[int], list[int]] = defaultdict(list)
        for parts in self._parts.values():
            (members, *_) = [part.members for part in parts.values()]
            ends[frozenset(members)].append(max(self._at(part.end) for part in parts.values()))
        return {
            members: np.sort([end for others, known in ends.items() if members <= others for end in known])
            for members in ends
        }

    def _first_start(self, key: _Key) -> int:
        return min(self._at(part.start) for part in self._parts[key].values())

    def _waited(self, call: PlannedCall) -> int:
        return self._at(call.arrived) - self._at(call.start)

    def _at(self, point: int) -> int:
        return int(self._times[point])
