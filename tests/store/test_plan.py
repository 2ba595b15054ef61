"""`run_together` runs several analyses while it reads each rank only once."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from holotrace.catalogue import ANALYSES
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.executor import IN_PROCESS
from holotrace.execution.processes import processes
from holotrace.questions.question import Analysis
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
    """Return the number of events."""
    visits.append(("count", rank_trace.rank))
    return rank_trace.table("events").height


def rank_of(rank_trace: RankTrace) -> int:
    """Return the rank."""
    visits.append(("rank", rank_trace.rank))
    return rank_trace.rank


def lacking(rank_trace: RankTrace) -> int:
    """Return the rank, or raise MissingDataError on rank 3."""
    if rank_trace.rank == 3:
        message = "rank 3 has none"
        raise MissingDataError(message)
    return 0


def total(counts: dict[int, int], error: Exception | None = None) -> int:
    """Return the sum of the ranks' counts; raise `error` instead if it is given."""
    if error is not None:
        raise error
    return sum(counts.values())


@dataclass(frozen=True)
class _Found:
    ranks: list[int]
    findings: tuple[str, ...]


def _with_findings(of_ranks: dict[int, int]) -> _Found:
    return _Found(list(of_ranks), ("first",))


PLANS = {"total": Plan(count, total), "ranks": Plan(rank_of, list), "lacking": Plan(lacking, total)}


def test_each_rank_is_visited_once(trace: Trace) -> None:
    """All plans run on rank 1 before any of them runs on rank 3."""
    results = run_together(trace, PLANS, IN_PROCESS).results
    assert (results["total"], results["ranks"]) == (4, [1, 3])
    assert visits == [("count", 1), ("rank", 1), ("count", 3), ("rank", 3)]


def test_missing_data_affects_only_its_own_plan(trace: Trace) -> None:
    """A plan that raises MissingDataError has no result; all other plans still have one.

    The error may come from the computation on one rank or from combining the results of the ranks.
    """
    plans = {**PLANS, "uncombined": Plan(count, partial(total, error=MissingDataError("cannot combine")))}
    answers = run_together(trace, plans, IN_PROCESS)
    missing = {name: str(error) for name, error in answers.missing.items()}
    assert missing == {"lacking": "rank 3 has none", "uncombined": "cannot combine"}
    assert answers.results == {"total": 4, "ranks": [1, 3]}


@pytest.mark.slow
def test_a_rank_that_lacks_data_is_left_out_with_a_finding(trace: Trace) -> None:
    """If a rank lacks data, the result covers the other ranks, and a finding gives the reason.

    If all ranks lack data, MissingDataError is raised.
    """
    plan = Plan(lacking, _with_findings)
    expected = _Found([1], ("rank 3 has none", "first"))
    assert run_together(trace, {"plan": plan}, IN_PROCESS).results == {"plan": expected}
    with processes(2) as pool:
        assert plan.run(trace, pool) == expected
    with pytest.raises(MissingDataError, match="rank 3 has none"):
        plan.run(trace.select([3]), IN_PROCESS)


def test_other_errors_are_raised(trace: Trace) -> None:
    """An InvalidOptionError in one plan is raised, because it is a mistake in the call."""
    with pytest.raises(InvalidOptionError, match="cannot combine"):
        run_together(
            trace, {"total": Plan(count, partial(total, error=InvalidOptionError("cannot combine")))}, IN_PROCESS
        )


@pytest.mark.slow
def test_workers_return_the_same(trace: Trace) -> None:
    """Two worker processes return the same total as one process."""
    with processes(2) as pool:
        assert run_together(trace, PLANS, pool).results["total"] == 4
    assert visits == []


def test_a_failing_rank_is_missing_from_all_results(
    trace: Trace, tmp_path: Path, open_file: Callable[..., TraceFile]
) -> None:
    """With `on_error="skip"`, no result includes the unreadable rank, and findings give the reason."""
    (tmp_path / "bad.json").write_text('[{"no": "event"}]', encoding="utf-8")
    lenient = Trace({**trace.ranks, 2: RankTrace(2, open_file(tmp_path / "bad.json"))}, on_error="skip")
    answers = run_together(lenient, PLANS, IN_PROCESS)
    assert (answers.results["total"], answers.results["ranks"]) == (4, [1, 3])
    assert (list(answers.trace.ranks), list(lenient.ranks)) == ([1, 3], [1, 2, 3])
    (finding,) = answers.findings
    assert finding.startswith(f"skipped: {tmp_path / 'bad.json'} is not a profiler trace")
    answer = Plan(count, _with_findings).answer(lenient, IN_PROCESS)
    assert (answer.result, answer.trace.skipped) == (_Found([1, 3], (finding, "first")), answers.trace.skipped)


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
def test_the_plan_of_an_analysis_takes_its_options(entry: Analysis) -> None:
    """Except for executor and output, a plan takes all options of its analysis, with the same defaults."""
    options = inspect.signature(entry.compute).parameters.values()
    of_plan = inspect.signature(entry.plan).parameters.values()
    assert [option for option in options if option.name not in {"trace", "job", "executor", "across_ranks"}] == [
        option for option in of_plan if option.name != ONLY_FOR_HTA
    ]


ONLY_FOR_HTA = "by_durations"
"""An option that selects HTA's definition of waiting; only HTA's interface uses it, and `stragglers` lacks it."""


def test_the_docstring_example_works() -> None:
    """The example in the docstring of `holotrace.store.plan` is correct."""
    assert doctest.testmod(module).failed == 0
