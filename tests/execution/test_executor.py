"""The executor that runs work in the caller's thread."""

from __future__ import annotations

import threading

import pytest

from holotrace.execution.executor import IN_PROCESS


def test_a_call_runs_at_once_in_the_callers_thread() -> None:
    """A future comes back finished, with the result of a call made in this thread."""
    future = IN_PROCESS.submit(threading.get_ident)
    assert future.done()
    assert future.result() == threading.get_ident()


def test_an_error_is_kept_in_the_future() -> None:
    """As with every executor, `result()` raises the error."""
    future = IN_PROCESS.submit(int, "no number")
    assert isinstance(future.exception(), ValueError)


def test_an_interrupt_propagates() -> None:
    """Ctrl-C stops the program, not only the call."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        IN_PROCESS.submit(interrupt)


def test_map_keeps_the_order() -> None:
    """`Executor.map` works as with every other executor."""
    assert list(IN_PROCESS.map(abs, [-2, 1, -3])) == [2, 1, 3]
