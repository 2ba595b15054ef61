"""The ranks that a worker process keeps in memory for later visits."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

MOST_EVENTS_KEPT = 10_000_000
"""The workers of a pool together keep this many events (some 100 bytes each)."""


class Rank(Protocol):
    """The recording of a rank, which opens its file when first needed."""

    @property
    def events_held(self) -> int:
        """Approximate number of events in memory."""

    def forget(self) -> None:
        """Free the memory; the next use opens the file again."""


R = TypeVar("R", bound=Rank)


class KeptRanks(Generic[R]):
    """The ranks that were used last, up to a number of events."""

    def __init__(self) -> None:
        """Keep no rank yet."""
        self._ranks: dict[str, R] = {}  # least recently used first

    def kept(self, identity: str, rank: R, most_events: int) -> R:
        """Return the kept rank with this identity, or keep `rank`; forget the ranks that now exceed `most_events`."""
        used = self._ranks[identity] = self._ranks.pop(identity, rank)
        while len(self._ranks) > 1 and sum(each.events_held for each in self._ranks.values()) > most_events:
            self._ranks.pop(next(iter(self._ranks))).forget()
        return used
