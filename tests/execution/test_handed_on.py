"""Wrapping futures of other libraries."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import pytest

from holotrace.execution.handed_on import handed_on


def told(error: BaseException) -> BaseException:
    """Translate an error."""
    return RuntimeError(f"told: {error}")


def test_a_result_is_handed_on() -> None:
    """The result is passed on unchanged."""
    inner: Future[int] = Future()
    outer = handed_on(inner, told)
    inner.set_result(3)
    assert outer.result() == 3


def test_an_error_is_told() -> None:
    """The error is translated."""
    inner: Future[int] = Future()
    outer = handed_on(inner, told)
    inner.set_exception(ValueError("theirs"))
    with pytest.raises(RuntimeError, match="told: theirs"):
        outer.result()


def test_an_error_that_cannot_be_told_is_handed_on() -> None:
    """The original error is raised, so that no caller waits forever."""
    inner: Future[int] = Future()
    outer = handed_on(inner, lambda error: error.args[7])
    inner.set_exception(ValueError("theirs"))
    with pytest.raises(ValueError, match="theirs"):
        outer.result(timeout=10)


def test_cancelling_goes_both_ways() -> None:
    """Cancelling the future cancels the work; work cancelled by the engine raises CancelledError for the caller."""
    inner: Future[int] = Future()
    outer = handed_on(inner, told)
    assert outer.cancel()
    assert inner.cancelled()
    inner = Future()
    outer = handed_on(inner, lambda error: error)
    inner.cancel()
    assert isinstance(outer.exception(), CancelledError)
