"""The timeline begins with the rank for which the others wait, followed by a typical rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from holotrace.analyses.stragglers.compute import Stragglers, stragglers
from holotrace.ingest.open_trace import open_trace
from holotrace.testing import write_job
from holotrace.web.session.session import Scope, Session
from holotrace.web.timeline import rank_order as orders
from holotrace.web.timeline.rank_order import RankOrder, awaited_order, known_order, rank_order


def result(**columns: Sequence[object]) -> Stragglers:
    """Return a result with only the columns that determine the order."""
    types = {
        "rank": pl.Int32,
        "wait_ns": pl.Int64,
        "is_cause": pl.Boolean,
        "cost_ns": pl.Int64,
        "caused_wait_ns": pl.Int64,
    }
    return Stragglers(pl.DataFrame(columns, schema=types), pl.DataFrame())


def test_the_late_rank_and_the_median_come_first() -> None:
    """Rank 2, which causes most waiting, comes first, followed by the typical rank 3.

    Ranks 0, 1 and 3 cause no waiting; of these three, rank 3 has the median wait.
    """
    order = rank_order(
        result(
            rank=[0, 1, 2, 3, 4],
            wait_ns=[9_000, 2_000, 0, 5_000, 100],
            is_cause=[False, False, True, False, True],
            cost_ns=[None, None, None, None, 700],
            caused_wait_ns=[0, 0, 16_000, 0, 900],
        )
    )

    assert order == RankOrder(
        ((2, "late: others wait 16 µs for it"), (3, "typical: waits 5 µs, the median of the other ranks"))
    )
    assert order.first([0, 1, 2, 3, 4]) == [2, 3, 0, 1, 4]
    assert order.first([0, 1]) == [0, 1]


@pytest.mark.parametrize(
    ("causes", "expected"),
    [([False, False, False], ()), ([True, True, True], ((0, "late: others wait 9 ns for it"),))],
)
def test_a_rank_must_be_the_cause_to_be_late(causes: list[bool], expected: tuple[tuple[int, str], ...]) -> None:
    """If no rank causes waiting, no rank is moved to the front.

    If all ranks cause waiting, only the costliest rank is moved, because no other rank can be typical.
    """
    order = rank_order(
        result(rank=[0, 1, 2], wait_ns=[1, 2, 3], is_cause=causes, cost_ns=[9, 1, 1], caused_wait_ns=[1, 1, 1])
    )

    assert order.reasons == expected


def test_two_ranks_keep_their_order() -> None:
    """A job of two ranks is not reordered, because both ranks are visible anyway."""
    found = result(rank=[0, 1], wait_ns=[5, 0], is_cause=[False, True], cost_ns=[None, 5], caused_wait_ns=[0, 5])

    assert rank_order(found) == RankOrder()


def test_the_late_rank_of_a_job_is_found(tmp_path: Path) -> None:
    """In a job whose rank 5 is 1.5 ms late in each step, rank 5 comes first, followed by a rank that is not late."""
    write_job(tmp_path, ranks=6, steps=3, straggler_rank=5)
    order = rank_order(stragglers(open_trace(tmp_path, cache=False)))

    assert [rank == 5 for rank, _ in order.reasons] == [True, False]


def test_a_large_run_is_not_read_to_order_its_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the files exceed MOST_COMPARED_BYTES, the rank order is empty until another page computes the stragglers."""
    write_job(tmp_path, ranks=3, steps=3, straggler_rank=1)
    monkeypatch.setattr(orders, "MOST_COMPARED_BYTES", 10)
    session = Session([tmp_path], cache=False)
    scope = Scope(session.runs[0].id)

    assert awaited_order(session, scope, 60) == RankOrder() == known_order(session, scope)
    session.result(scope, "stragglers")
    assert awaited_order(session, scope, 60).first([0, 1, 2])[0] == 1
