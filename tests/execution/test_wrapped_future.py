"""`wrapped_future` forwards the results and errors of other libraries' futures."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import pytest

from holotrace.execution.wrapped_future import wrapped_future


def translated(error: BaseException) -> BaseException:
    """Return a RuntimeError whose message contains the message of `error`."""
    return RuntimeError(f"translated: {error}")


def test_a_result_is_passed_on() -> None:
    """The outer future returns the inner future's result."""
    inner: Future[int] = Future()
    outer = wrapped_future(inner, translated)
    inner.set_result(3)
    assert outer.result() == 3


def test_an_error_is_translated() -> None:
    """The outer future raises the translated error."""
    inner: Future[int] = Future()
    outer = wrapped_future(inner, translated)
    inner.set_exception(ValueError("theirs"))
    with pytest.raises(RuntimeError, match="translated: theirs"):
        outer.result()


def test_an_error_that_cannot_be_translated_is_passed_on() -> None:
    """If translating an error fails, the outer future raises the original error instead of waiting forever."""
    inner: Future[int] = Future()
    outer = wrapped_future(inner, lambda error: error.args[7])
    inner.set_exception(ValueError("theirs"))
    with pytest.raises(ValueError, match="theirs"):
        outer.result(timeout=10)


def test_cancelling_works_in_both_directions() -> None:
    """Cancelling the outer future cancels the inner one; cancelling the inner one gives the outer a CancelledError."""
    inner: Future[int] = Future()
    outer = wrapped_future(inner, translated)
    assert outer.cancel()
    assert inner.cancelled()
    inner = Future()
    outer = wrapped_future(inner, lambda error: error)
    inner.cancel()
    assert isinstance(outer.exception(), CancelledError)
