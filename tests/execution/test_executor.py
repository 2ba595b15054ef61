"""`IN_PROCESS` runs each call in the caller's thread."""

from __future__ import annotations

import threading

import pytest

from holotrace.execution.executor import IN_PROCESS


def test_a_call_runs_at_once_in_the_callers_thread() -> None:
    """`submit` runs the call in the caller's thread and returns a finished future."""
    future = IN_PROCESS.submit(threading.get_ident)
    assert future.done()
    assert future.result() == threading.get_ident()


def test_an_error_is_kept_in_the_future() -> None:
    """As with every executor, the future keeps the error of its call."""
    future = IN_PROCESS.submit(int, "no number")
    assert isinstance(future.exception(), ValueError)


def test_an_interrupt_propagates() -> None:
    """A KeyboardInterrupt in a call reaches the caller, not the future, so Ctrl-C stops the program."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        IN_PROCESS.submit(interrupt)


def test_map_keeps_the_order() -> None:
    """`map` returns results in the order of the arguments."""
    assert list(IN_PROCESS.map(abs, [-2, 1, -3])) == [2, 1, 3]
