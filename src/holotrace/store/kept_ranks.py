"""The ranks that a worker process keeps in memory for later calls."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

MOST_EVENTS_KEPT = 10_000_000
"""Maximum number of events (about 100 bytes each) that all workers of a pool together keep in memory."""


class Rank(Protocol):
    """The recording of a rank; its file is opened when first needed."""

    @property
    def events_held(self) -> int:
        """Approximate number of events in memory."""

    def forget(self) -> None:
        """Free the memory; the next use opens the file again."""


R = TypeVar("R", bound=Rank)


class KeptRanks(Generic[R]):
    """Keeps the most recently used ranks in memory, up to a given total number of events."""

    def __init__(self) -> None:
        """Start with no ranks."""
        self._ranks: dict[str, R] = {}  # least recently used first
        self._events_held: dict[str, int] = {}

    def kept(self, identity: str, rank: R, most_events: int) -> R:
        """Return the kept rank with this identity; if there is none, keep and return `rank`.

        Then forget the least recently used ranks until the kept ranks together have at most `most_events` events in
        memory, or only one rank is left.
        """
        latest = next(reversed(self._ranks), identity)  # only this rank can have read events since the last call
        used = self._ranks[identity] = self._ranks.pop(identity, rank)
        for changed in {latest, identity}:
            self._events_held[changed] = self._ranks[changed].events_held
        while len(self._ranks) > 1 and sum(self._events_held.values()) > most_events:
            oldest = next(iter(self._ranks))
            self._ranks.pop(oldest).forget()
            del self._events_held[oldest]
        return used
