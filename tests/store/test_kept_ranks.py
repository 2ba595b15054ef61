"""A worker keeps the most recently used ranks."""

from __future__ import annotations

from holotrace.store.kept_ranks import KeptRanks


class HeldRank:
    """A rank with the given number of events in memory."""

    def __init__(self, events_held: int) -> None:
        self.events_held = events_held

    def forget(self) -> None:
        """Drop all events."""
        self.events_held = 0


def test_a_kept_rank_is_found_by_its_identity() -> None:
    """Given a second copy of a rank, `kept` returns the first copy."""
    ranks = KeptRanks[HeldRank]()
    first = ranks.kept("a", HeldRank(5), 10)
    assert ranks.kept("a", HeldRank(5), 10) is first
    assert ranks.kept("b", HeldRank(5), 10) is not first


def test_the_least_recently_used_rank_is_forgotten() -> None:
    """Of three ranks with 5 events each, only two fit the limit of 10, so the least recently used rank is dropped."""
    ranks = KeptRanks[HeldRank]()
    a, b = (ranks.kept(identity, HeldRank(5), 10) for identity in "ab")
    ranks.kept("a", HeldRank(5), 10)
    ranks.kept("c", HeldRank(5), 10)
    assert (a.events_held, b.events_held) == (5, 0)
    assert ranks.kept("b", HeldRank(5), 10) is not b


def test_a_rank_larger_than_the_limit_is_kept_until_the_next() -> None:
    """The rank in use stays in memory, whatever its size, until the next rank is used."""
    ranks = KeptRanks[HeldRank]()
    large = ranks.kept("a", HeldRank(50), 10)
    assert large.events_held == 50
    ranks.kept("b", HeldRank(0), 10)
    assert large.events_held == 0
