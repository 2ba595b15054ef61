"""Several analyses share one visit to each rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.execution.processes import processes
from holotrace.store.together import asked_together
from holotrace.store.trace import RankTrace, Trace
from holotrace.store.trace_file import TraceFile

visits: list[tuple[str, int]] = []


@pytest.fixture
def trace(write_trace: Callable[..., Path], open_file: Callable[..., TraceFile]) -> Trace:
    """Return a job of ranks 1 and 3."""
    visits.clear()
    return Trace({rank: RankTrace(rank, open_file(write_trace(f"{rank}.json", ["gemm"] * rank))) for rank in (3, 1)})


def count(rank_trace: RankTrace) -> int:
    """Return how many events there are."""
    visits.append(("count", rank_trace.rank))
    return rank_trace.table("events").height


def rank_of(rank_trace: RankTrace) -> int:
    """Return the rank."""
    visits.append(("rank", rank_trace.rank))
    return rank_trace.rank


def lacking(rank_trace: RankTrace) -> int:
    """Lack the input on rank 3."""
    if rank_trace.rank == 3:
        message = "rank 3 has none"
        raise MissingDataError(message)
    return 0


def total(trace: Trace, executor: Executor = IN_PROCESS) -> int:
    """Add up the events of all ranks."""
    return sum(trace.map(count, executor).values())


def twice(trace: Trace) -> list[int]:
    """Map over the ranks twice."""
    return [*trace.map(rank_of).values(), *trace.map(count).values()]


def without_input(trace: Trace) -> dict[int, int]:
    """Map a function that fails on rank 3."""
    return trace.map(lacking)


def refused(_trace: Trace) -> dict[int, int]:
    """Reject its options before mapping over the ranks."""
    message = "no such thing"
    raise InvalidOptionError(message)


ASKS = {"total": total, "twice": twice, "without_input": without_input, "refused": refused}


def test_each_rank_is_visited_once(trace: Trace) -> None:
    """Rank by rank, all questions; a second question of the same analysis is asked afterwards."""
    traces = asked_together(trace, ASKS, IN_PROCESS)
    assert visits == [("count", 1), ("rank", 1), ("count", 3), ("rank", 3)]
    assert total(traces["total"]) == 4
    assert len(visits) == 4
    assert twice(traces["twice"]) == [1, 3, 1, 3]
    assert len(visits) == 6


def test_an_error_affects_only_its_question(trace: Trace) -> None:
    """Missing input of one analysis does not affect the others."""
    traces = asked_together(trace, ASKS, IN_PROCESS)
    with pytest.raises(MissingDataError, match="rank 3 has none"):
        without_input(traces["without_input"])
    with pytest.raises(InvalidOptionError, match="no such thing"):
        refused(traces["refused"])


def test_workers_answer_the_same(trace: Trace) -> None:
    """One task per rank."""
    with processes(2) as pool:
        traces = asked_together(trace, ASKS, pool)
        assert total(traces["total"], pool) == 4
    assert visits == []


def test_a_failing_rank_is_skipped_for_all_questions(
    trace: Trace, tmp_path: Path, open_file: Callable[..., TraceFile]
) -> None:
    """This needs `on_error="skip"`."""
    (tmp_path / "bad.json").write_text('[{"no": "event"}]', encoding="utf-8")
    lenient = Trace({**trace.ranks, 2: RankTrace(2, open_file(tmp_path / "bad.json"))}, on_error="skip")
    traces = asked_together(lenient, ASKS, IN_PROCESS)
    assert [list(question_trace.ranks) for question_trace in traces.values()] == [[1, 3]] * 4
    assert total(traces["total"]) == 4
    assert list(lenient.ranks) == [1, 3]
