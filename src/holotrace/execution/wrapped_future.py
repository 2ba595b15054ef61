"""Wrap futures of other libraries as `concurrent.futures` futures, and translate their errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")


def wrapped_future(inner: Future[T], translated: Callable[[BaseException], BaseException]) -> Future[T]:
    """Return a future with the result or the translated error of `inner`; cancelling it cancels `inner`."""
    outer: Future[T] = Future()
    outer.add_done_callback(lambda outer: inner.cancel() if outer.cancelled() else None)
    inner.add_done_callback(lambda inner: _pass_on(inner, outer, translated))
    return outer


def _pass_on(inner: Future[Any], outer: Future[Any], translated: Callable[[BaseException], BaseException]) -> None:
    if not outer.set_running_or_notify_cancel():
        return
    error = CancelledError("the work was cancelled") if inner.cancelled() else inner.exception()
    if error is None:
        outer.set_result(inner.result())
        return
    try:
        outer.set_exception(translated(error))
    except Exception:  # noqa: BLE001 -- if the error cannot be translated, pass on the original
        outer.set_exception(error)
