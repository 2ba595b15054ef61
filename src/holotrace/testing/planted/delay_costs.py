"""Compute the delay costs of a simulated job, call by call, from the known delays.

For every wait, compare the waiting rank with the late rank, which is the last to arrive. The comparison covers how each
of the two ranks spent its time since all ranks of the operation were last synchronised. Compute two differences:
how much longer the late rank was active than the waiting rank, and how much longer the late rank waited than the
waiting rank. Divide the wait into two parts in the ratio of these differences. Charge the part for longer activity to
the activities on which the late rank spent more time than the waiting rank; each activity gets a share in proportion
to its extra time. Charge the part for longer waiting to the causes of the late rank's own waits.

Source: D. Böhme, M. Geimer, L. Arnold, F. Voigtlaender, F. Wolf: Identifying the root causes of wait states in large-scale
parallel applications. ACM Transactions on Parallel Computing 3(2), 2016. https://doi.org/10.1145/2934661
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from holotrace.testing.planted.course import Activity, Course
from holotrace.testing.planted.rank_course import PlannedCall

Cause = tuple[int, Activity]
"""A rank, and an activity on which it spent time."""

_Key = tuple[object, ...]
_Named = TypeVar("_Named", bound=Hashable)
_TRANSFER: Activity = ("transfer", "", "")
_BEGINNING: Cause = (-1, ("nothing", "", ""))


class _History(NamedTuple):
    """How long a rank spent on each activity, and how long it waited in each operation."""

    activities: Counter[Activity]
    waits: Counter[_Key]


class DelayCosts:
    """Find the causes of all waiting in a job, and the cost of each cause."""

    def __init__(self, course: Course, calls: Iterable[PlannedCall], times: npt.NDArray[np.int64]) -> None:
        self._course, self._times = course, times
        self._by_rank: dict[_Key, dict[int, PlannedCall]] = defaultdict(dict)
        self._call_that_ends: dict[int, PlannedCall] = {}
        for call in calls:
            self._by_rank[call.key][call.rank] = call
            self._call_that_ends[call.end] = call
        self._arrivals = self._arrivals_by_members()
        self._known: dict[tuple[_Key, int], dict[Cause, float]] = {}

    def per_wait(self) -> Iterator[tuple[PlannedCall, int, dict[Cause, float]]]:
        """Yield each call that waits, how long it waits, and the fraction of the wait due to each cause."""
        for key in sorted(self._by_rank, key=self._first_start):
            for call in self._by_rank[key].values():
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
        """Return the fraction of a call's wait due to each cause; the fractions add up to 1."""
        known = self._known.get((call.key, call.rank))
        if known is None:
            known = self._known[call.key, call.rank] = self._computed(call)
        return known

    def _computed(self, call: PlannedCall) -> dict[Cause, float]:
        late = max(self._by_rank[call.key].values(), key=lambda part: self._at(part.start))
        since_ns = self._synchronised(call)
        theirs, own = self._history(late, since_ns), self._history(call, since_ns)
        worked_ns = max(0, theirs.activities.total() - own.activities.total())
        waited_ns = max(0, theirs.waits.total() - own.waits.total())
        shares: defaultdict[Cause, float] = defaultdict(float)
        for activity, part in _parts(theirs.activities - own.activities).items():
            shares[late.rank, activity] += worked_ns * part
        for key, part in _parts(theirs.waits).items() if waited_ns else ():
            for cause, share in self._shares(self._by_rank[key][late.rank]).items():
                shares[cause] += waited_ns * part * share
        return _parts(shares) or {_BEGINNING: 1.0}

    def _history(self, call: PlannedCall, since_ns: int) -> _History:
        """Return how the rank of the call spent its time between `since_ns` and the call."""
        spent = _History(Counter(), Counter())
        point = call.start
        while self._at(point) > since_ns and (before := self._course.binding(point, self._times)) is not None:
            other = self._call_that_ends.get(point)
            if other is not None and before[0] == other.arrived:
                spent.activities[_TRANSFER] += self._at(point) - max(since_ns, self._at(other.arrived))
                spent.waits[other.key] += max(0, self._at(other.arrived) - max(since_ns, self._at(other.start)))
                point = other.start
            else:
                activity = self._course.activities[point]
                spent.activities[activity] += self._at(point) - max(since_ns, self._at(before[0]))
                point = before[0]
        return spent

    def _synchronised(self, call: PlannedCall) -> int:
        """Return when a call's members were last synchronised before any of them started the call; 0 if never."""
        first_ns = self._first_start(call.key)
        arrivals = self._arrivals[frozenset(call.members)]
        place = int(np.searchsorted(arrivals, first_ns, side="right"))
        return int(arrivals[place - 1]) if place else 0

    def _arrivals_by_members(self) -> dict[frozenset[int], npt.NDArray[np.int64]]:
        """Return, for each set of ranks, the sorted times at which these ranks were synchronised.

        Ranks are synchronised when the last rank arrives at an operation that includes all of them.
        """
        arrivals: defaultdict[frozenset[int], list[int]] = defaultdict(list)
        for parts in self._by_rank.values():
            (members, *_) = [part.members for part in parts.values()]
            arrivals[frozenset(members)].append(max(self._at(part.arrived) for part in parts.values()))
        return {
            members: np.sort([time for others, known in arrivals.items() if members <= others for time in known])
            for members in arrivals
        }

    def _first_start(self, key: _Key) -> int:
        return min(self._at(part.start) for part in self._by_rank[key].values())

    def _waited(self, call: PlannedCall) -> int:
        return self._at(call.arrived) - self._at(call.start)

    def _at(self, point: int) -> int:
        return int(self._times[point])


def _parts(amounts: Mapping[_Named, float]) -> dict[_Named, float]:
    """Divide the positive amounts by their sum."""
    total = sum(amounts.values())
    return {key: amount / total for key, amount in amounts.items() if amount > 0}
