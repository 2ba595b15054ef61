"""Choose the ranks that the timeline shows first: the rank for which others wait, and a typical rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holotrace.analyses.stragglers.compute import Stragglers
from holotrace.errors import MissingDataError
from holotrace.units import duration_text
from holotrace.web.session.session import Scope, Session

MOST_COMPARED_BYTES = 1 << 30
"""If the files of a run have more bytes than this, the timeline does not read them only to compare the ranks; the rank
order then stays empty until another page has compared the ranks."""

_ANALYSIS = "stragglers"
_LEAST_RANKS = 3
"""With only two ranks, neither is typical, and both are in view anyway."""


@dataclass(frozen=True)
class RankOrder:
    """The ranks to show first, each with the reason; empty if no rank is late."""

    reasons: tuple[tuple[int, str], ...] = ()

    def first(self, ranks: Sequence[int]) -> list[int]:
        """Return these ranks, with the ranks to show first moved to the front."""
        chosen = [rank for rank, _ in self.reasons if rank in ranks]
        return [*chosen, *(rank for rank in ranks if rank not in chosen)]

    def answer(self) -> list[dict[str, Any]]:
        """Return the ranks to show first and the reason for each, as JSON."""
        return [{"rank": rank, "reason": reason} for rank, reason in self.reasons]


def rank_order(found: Stragglers) -> RankOrder:
    """Choose the rank that causes most of the waiting and, among the other ranks, the one with the median waiting time.

    The order is empty if `is_cause` is false for all ranks, or if there are fewer than three ranks.
    """
    causes = found.per_rank.filter("is_cause")
    if not len(causes) or len(found.per_rank) < _LEAST_RANKS:
        return RankOrder()
    cost = pl.coalesce("cost_ns", "caused_wait_ns")
    late, cost_ns = causes.select("rank", cost.alias("cost")).sort("cost", "rank", descending=[True, False]).row(0)
    others = found.per_rank.filter(~pl.col("is_cause")).sort("wait_ns", "rank")
    if not len(others):
        return RankOrder(((late, _late(cost_ns)),))
    typical, wait_ns = others.select("rank", "wait_ns").row((len(others) - 1) // 2)
    return RankOrder(
        ((late, _late(cost_ns)), (typical, f"typical: waits {duration_text(wait_ns)}, the median of the other ranks"))
    )


def _late(cost_ns: int) -> str:
    return f"late: others wait {duration_text(cost_ns)} for it"


def known_order(session: Session, scope: Scope) -> RankOrder:
    """Return the order if the ranks have already been compared, else an empty order, so that drawing need not wait."""
    return _order(session, scope) if session.has(scope, (_ANALYSIS, ())) else RankOrder()


def awaited_order(session: Session, scope: Scope, patience_s: float) -> RankOrder:
    """Return the order; the background thread compares the ranks.

    Raises:
        TimeoutError: the order is not known yet.
    """
    info = session.run(scope.run)
    if info.file_bytes > MOST_COMPARED_BYTES:
        return known_order(session, scope)
    key = ("timeline order", scope, info.stamp)
    return session.answer(key, lambda: _order(session, scope), is_in_background=True).result(patience_s)


def _order(session: Session, scope: Scope) -> RankOrder:
    try:
        found = session.result(scope, _ANALYSIS)
    except MissingDataError:  # the ranks have no collectives in common
        return RankOrder()
    return rank_order(found) if isinstance(found, Stragglers) else RankOrder()
