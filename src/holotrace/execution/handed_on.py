"""Futures of other libraries as those of `concurrent.futures`, with errors that holotrace tells."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")


def handed_on(inner: Future[T], told: Callable[[BaseException], BaseException]) -> Future[T]:
    """Return a future that ends as `inner` does, with `told(error)` for an error; cancelled, it cancels `inner`."""
    outer: Future[T] = Future()
    outer.add_done_callback(lambda outer: inner.cancel() if outer.cancelled() else None)
    inner.add_done_callback(lambda inner: _hand_on(inner, outer, told))
    return outer


def _hand_on(inner: Future[Any], outer: Future[Any], told: Callable[[BaseException], BaseException]) -> None:
    if not outer.set_running_or_notify_cancel():
        return
    error = CancelledError("the work was cancelled") if inner.cancelled() else inner.exception()
    if error is None:
        outer.set_result(inner.result())
        return
    try:
        outer.set_exception(told(error))
    except Exception:  # noqa: BLE001 -- whoever waits must hear of it, even of an error that cannot be told
        outer.set_exception(error)
