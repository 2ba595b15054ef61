"""Split each analysis into a part that runs on each rank and a part that combines the results of the ranks.

Opening a rank and linking its launches costs more than most analyses. `run_together` therefore makes only
one call per rank, which runs the first parts of all analyses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from holotrace.errors import MissingDataError
from holotrace.execution.executor import Executor
from holotrace.store.trace import ABOUT_THE_QUESTION, RankTrace, Trace

Partial = TypeVar("Partial")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Plan(Generic[Partial, Result]):
    """An analysis in two parts: one runs on each rank, the other combines the results of the ranks.

    one_rank  a function that runs once per rank, and raises MissingDataError if the rank lacks the input. To run in a
              worker process, it must be a module-level function or a `functools.partial` of one
    combine   computes the result from {rank: answer of `one_rank`}, a dict that is sorted by rank and contains only the
              ranks that have the input

    >>> from holotrace.execution.executor import IN_PROCESS
    >>> from holotrace.testing.builder import TraceBuilder
    >>> def event_count(rank_trace: RankTrace) -> int:
    ...     return rank_trace.table("events").height
    >>> trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build()
    >>> Plan(event_count, lambda counts: sum(counts.values())).run(trace, IN_PROCESS)
    1
    """

    one_rank: Callable[[RankTrace], Partial]
    combine: Callable[[dict[int, Partial]], Result]

    def run(self, trace: Trace, executor: Executor) -> Result:
        """Run the analysis on a trace, and return the result."""
        return self.answer(trace, executor).result

    def answer(self, trace: Trace, executor: Executor) -> Answer[Result]:
        """Return the result, and the trace without skipped ranks; the first findings of the result name these ranks."""
        visit = trace.visit(partial(_answer_or_missing, self.one_rank), executor)
        return Answer(with_findings(visit.findings, self.result_of(visit.results)), visit.trace)

    def result_of(self, answers: Mapping[int, Partial | MissingDataError]) -> Result:
        """Return the result of the ranks that have the input; its first findings name the ranks without the input.

        Raises:
            MissingDataError: no rank has the input; or some ranks lack the input, and the result has no field
                `findings` that could list them.
        """
        known = {rank: answer for rank, answer in answers.items() if not isinstance(answer, MissingDataError)}
        missing = [answer for answer in answers.values() if isinstance(answer, MissingDataError)]
        if missing and not known:
            raise missing[0]
        result = self.combine(known)
        if missing and not hasattr(result, "findings"):
            raise missing[0]
        return with_findings(tuple(error.finding for error in missing), result)


@dataclass(frozen=True)
class Answer(Generic[Result]):
    """A result, and the trace without the ranks that were skipped because of errors."""

    result: Result
    trace: Trace


@dataclass(frozen=True)
class Answers:
    """The results of several plans, by name.

    results   the results of the plans that could run
    missing   the errors of the other plans, whose input is missing
    trace     the trace without the skipped ranks
    findings  a sentence per rank that was skipped
    """

    results: dict[str, Any]
    missing: dict[str, MissingDataError]
    trace: Trace
    findings: tuple[str, ...] = ()


def with_findings(findings: tuple[str, ...], result: Result) -> Result:
    """Put these findings before the result's own findings; a result without a field `findings` stays unchanged."""
    if not findings or not hasattr(result, "findings"):
        return result
    more: Any = result
    changed: Result = replace(more, findings=(*findings, *more.findings))
    return changed


def run_together(trace: Trace, plans: Mapping[str, Plan[Any, Any]], executor: Executor) -> Answers:
    """Run several plans together, so that each rank is read only once.

    A plan whose input is missing is listed in `missing`; other errors are raised. The answers of all plans for all
    ranks must fit in memory at the same time.
    """
    one_rank = partial(_all_on_one_rank, {name: plan.one_rank for name, plan in plans.items()})
    visit = trace.visit(one_rank, executor)
    outcomes = {
        name: _combined(plan, {rank: by_name[name] for rank, by_name in visit.results.items()})
        for name, plan in plans.items()
    }
    missing = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, MissingDataError)}
    results = {name: outcome for name, outcome in outcomes.items() if name not in missing}
    return Answers(results, missing, visit.trace, visit.findings)


def _all_on_one_rank(functions: Mapping[str, Callable[[RankTrace], Any]], rank_trace: RankTrace) -> dict[str, Any]:
    return {name: _answer(function, rank_trace) for name, function in functions.items()}


def _answer_or_missing(function: Callable[[RankTrace], Partial], rank_trace: RankTrace) -> Partial | MissingDataError:
    try:
        return function(rank_trace)
    except MissingDataError as error:
        return error


def _answer(function: Callable[[RankTrace], Any], rank_trace: RankTrace) -> Any:  # noqa: ANN401 -- any return value
    """Return the answer; return errors about the request instead of raising them, so that other analyses can run."""
    try:
        return function(rank_trace)
    except ABOUT_THE_QUESTION as error:
        return error


def _combined(plan: Plan[Any, Any], answers: dict[int, Any]) -> Any:  # noqa: ANN401 -- the result of any plan
    try:
        for answer in answers.values():
            if isinstance(answer, ABOUT_THE_QUESTION) and not isinstance(answer, MissingDataError):
                raise answer
        return plan.result_of(answers)
    except MissingDataError as error:
        return error
