"""Plans: an analysis in two halves, and several of them with one visit to each rank."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from holotrace.catalogue import ANALYSES
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.executor import IN_PROCESS
from holotrace.execution.processes import processes
from holotrace.question import Analysis
from holotrace.store import plan as module
from holotrace.store.plan import Plan, run_together
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


def total(counts: dict[int, int], error: Exception | None = None) -> int:
    """Add up what the ranks return, or fail."""
    if error is not None:
        raise error
    return sum(counts.values())


PLANS = {"total": Plan(count, total), "ranks": Plan(rank_of, list), "lacking": Plan(lacking, total)}


def test_each_rank_is_visited_once(trace: Trace) -> None:
    """Rank by rank, the first halves of all plans."""
    results = run_together(trace, PLANS, IN_PROCESS)
    assert (results["total"], results["ranks"]) == (4, [1, 3])
    assert visits == [("count", 1), ("rank", 1), ("count", 3), ("rank", 3)]


def test_missing_data_is_the_result_of_its_plan_alone(trace: Trace) -> None:
    """Whether a rank lacks it, or no combination is possible."""
    plans = {**PLANS, "uncombined": Plan(count, partial(total, error=MissingDataError("cannot combine")))}
    results = run_together(trace, plans, IN_PROCESS)
    assert [str(results[name]) for name in ("lacking", "uncombined")] == ["rank 3 has none", "cannot combine"]
    assert results["total"] == 4


def test_other_errors_are_raised(trace: Trace) -> None:
    """An invalid option is a mistake in the call."""
    with pytest.raises(InvalidOptionError, match="cannot combine"):
        run_together(
            trace, {"total": Plan(count, partial(total, error=InvalidOptionError("cannot combine")))}, IN_PROCESS
        )


def test_workers_answer_the_same(trace: Trace) -> None:
    """One task per rank."""
    with processes(2) as pool:
        assert run_together(trace, PLANS, pool)["total"] == 4
    assert visits == []


def test_a_failing_rank_is_missing_from_all_results(
    trace: Trace, tmp_path: Path, open_file: Callable[..., TraceFile]
) -> None:
    """With `on_error="skip"`."""
    (tmp_path / "bad.json").write_text('[{"no": "event"}]', encoding="utf-8")
    lenient = Trace({**trace.ranks, 2: RankTrace(2, open_file(tmp_path / "bad.json"))}, on_error="skip")
    results = run_together(lenient, PLANS, IN_PROCESS)
    assert (results["total"], results["ranks"]) == (4, [1, 3])


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
def test_the_plan_of_an_analysis_takes_its_options(entry: Analysis) -> None:
    """All but the trace and the executor, with the same defaults."""
    options = inspect.signature(entry.compute).parameters.values()
    assert [each for each in options if each.name not in {"trace", "executor"}] == [
        *inspect.signature(entry.plan).parameters.values()
    ]


def test_the_example_of_the_docstring_is_true() -> None:
    """One event."""
    assert doctest.testmod(module).failed == 0
