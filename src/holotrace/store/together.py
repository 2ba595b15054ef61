"""Several questions about a job, each rank asked all of them in one go.

Analyses map over the ranks one by one, so many of them open each rank as many times, and link its launches anew each
time. Asked together they share one visit to each rank: what they send to the ranks is found out first, by running
them up to that point, then sent in one piece, and the answers are handed to each.
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
    """Return a trace for each of `asks`, by its name, on which it gets what it asks the ranks first without delay.

    Args:
        trace: the job.
        asks: each goes over the ranks with `Trace.map`, for results that may be held in memory all at once. It is run
            up to its first `map` here, so what it does before that must not matter.
        executor: where the ranks are visited.
    """
    questions = {name: question for name, ask in asks.items() if (question := _first_question(trace, ask))}
    answers = trace.map(partial(_answers, questions), executor)
    known = {name: {rank: each[name] for rank, each in answers.items()} for name in questions}
    return {name: _Answered(trace, known[name]) if name in known else trace for name in asks}


def _first_question(trace: Trace, ask: Callable[[Trace], object]) -> Callable[[RankTrace], Any] | None:
    """Return what `ask` wants to know of each rank; None where it never gets so far."""
    try:
        ask(_Asking(trace.ranks, trace.skipped, trace.on_error))
    except _AskedError as asked:
        return asked.question
    except HolotraceError:
        return None  # and again when it is asked in earnest
    return None


def _answers(questions: Mapping[str, Callable[[RankTrace], Any]], rank_trace: RankTrace) -> dict[str, Any]:
    return {name: _answer(question, rank_trace) for name, question in questions.items()}


def _answer(question: Callable[[RankTrace], Any], rank_trace: RankTrace) -> Any:  # noqa: ANN401 -- whatever it returns
    """Return the answer, or the error where that costs this question alone."""
    try:
        return question(rank_trace)
    except ABOUT_THE_QUESTION as error:
        return error


class _AskedError(HolotraceError):
    """Ends an analysis where it asks the ranks."""

    def __init__(self, question: Callable[[RankTrace], Any]) -> None:
        super().__init__()
        self.question = question


class _Asking(Trace):
    """A trace that wants to know what it is asked, and does not answer."""

    def map(self, function: Callable[[RankTrace], T], executor: Executor = IN_PROCESS) -> NoReturn:  # noqa: ARG002
        raise _AskedError(function)


class _Answered(Trace):
    """A trace that knows the answers of its ranks to the first question."""

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
