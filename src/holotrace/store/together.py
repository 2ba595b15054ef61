"""Run several analyses with a single visit to each rank.

Every analysis maps a function over the ranks, so several of them would open each rank, and link its launches, several
times. `asked_together` shares one visit: it runs each analysis up to its first `map` to learn the function, sends all
functions to each rank in one piece of work, and gives each analysis its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar

from holotrace.errors import HolotraceError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.store.trace import ABOUT_THE_QUESTION, RankTrace, Trace

T = TypeVar("T")


def asked_together(trace: Trace, asks: Mapping[str, Callable[[Trace], object]], executor: Executor) -> dict[str, Trace]:
    """Return {name: trace} for `asks`; on its trace, each analysis finds the results of its first `map` precomputed.

    Args:
        trace: the job.
        asks: analyses that use `Trace.map`; their results must fit in memory together. Each is run up to its first
            `map` here, so it must not have side effects before that.
        executor: runs the work on the ranks.
    """
    questions = {name: question for name, ask in asks.items() if (question := _first_question(trace, ask))}
    answers = trace.map(partial(_answers, questions), executor)
    known = {name: {rank: by_name[name] for rank, by_name in answers.items()} for name in questions}
    return {name: _Answered(trace, known[name]) if name in known else trace for name in asks}


def _first_question(trace: Trace, ask: Callable[[Trace], object]) -> Callable[[RankTrace], Any] | None:
    """Return the function that `ask` maps over the ranks first; None if it ends before that."""
    try:
        ask(_Asking(trace.ranks, trace.skipped, trace.on_error))
    except _AskedError as asked:
        return asked.question
    except HolotraceError:
        return None  # the real run will raise it again
    return None


def _answers(questions: Mapping[str, Callable[[RankTrace], Any]], rank_trace: RankTrace) -> dict[str, Any]:
    return {name: _answer(question, rank_trace) for name, question in questions.items()}


def _answer(question: Callable[[RankTrace], Any], rank_trace: RankTrace) -> Any:  # noqa: ANN401 -- whatever it returns
    """Return the answer, or an error that concerns this question alone."""
    try:
        return question(rank_trace)
    except ABOUT_THE_QUESTION as error:
        return error


class _AskedError(HolotraceError):
    """Stops an analysis at its first `map`."""

    def __init__(self, question: Callable[[RankTrace], Any]) -> None:
        super().__init__()
        self.question = question


class _Asking(Trace):
    """A trace that captures the function of the first `map` instead of running it."""

    def map(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> NoReturn:  # noqa: ARG002
        raise _AskedError(function)


class _Answered(Trace):
    """A trace with the results of its first `map` precomputed."""

    def __init__(self, trace: Trace, answers: Mapping[int, Any]) -> None:
        super().__init__(trace.ranks, trace.skipped, trace.on_error)
        self._answers: Mapping[int, Any] | None = answers

    def map(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> dict[int, T]:
        answers, self._answers = self._answers, None
        if answers is None:
            return super().map(function, executor)
        for answer in answers.values():
            if isinstance(answer, ABOUT_THE_QUESTION):
                raise answer
        return dict(answers)
