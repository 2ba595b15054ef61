"""Retry calls whose worker was lost."""

from __future__ import annotations

import functools
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

from holotrace.errors import WorkerLostError

P = ParamSpec("P")
T = TypeVar("T")

_MOST_LOSSES = 3
"""A call fails after this many workers were lost while they ran it. On the last try, the call runs alone,
so if this worker is lost too, no other call can be the cause."""


class Pool(Protocol):
    """An executor, such as a process pool, that becomes unusable when it loses a worker."""

    def submit_near(self, key: Hashable, fn: Callable[..., Any], /) -> Future[Any]:
        """Call `fn` in the worker that ran the last call with this key, if possible; in any worker if the key is None."""

    def start(self) -> None:
        """Start the workers now, to be ready for the first call."""

    def shutdown(self) -> None:
        """Wait for all submitted calls, then end the workers."""

    def terminate(self) -> None:
        """End the workers now."""


@dataclass(eq=False)
class _Call:
    """A call, its key, its future, and the number of workers lost while it ran."""

    run: Callable[[], Any]
    key: Hashable
    future: Future[Any]
    losses: int = 0

    @property
    def runs_alone(self) -> bool:
        """Whether the next try is the last; the call then runs alone, to show whether this call kills its worker."""
        return self.losses == _MOST_LOSSES - 1


class RetryingExecutor(Executor):
    """Passes calls on to a pool, and creates a new pool when the pool loses a worker.

    The new pool retries all interrupted calls. A call that was interrupted twice runs once more, alone in the pool, and
    raises WorkerLostError if its worker is lost again. An exception in the `with` block, such as Ctrl-C, interrupts
    running calls.
    """

    def __init__(self, make_pool: Callable[[], Pool], at_once: int) -> None:
        """Keep at most `at_once` calls in the pool, because all of them are retried if a worker is lost."""
        self._make_pool = make_pool
        self._at_once = at_once
        self._pool: Pool | None = None
        self._waiting: deque[_Call] = deque()
        self._sent: set[_Call] = set()
        self._is_closing = False
        self._is_terminated = False
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # only this thread uses `_pool`, `_waiting` and `_sent`
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in a worker; it and its arguments must be picklable."""
        return self.submit_near(None, fn, *args, **kwargs)

    def submit_near(self, key: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in the worker that ran the last call with this key, if possible; in any worker if the key is None."""
        if self._is_closing:
            message = "cannot submit to an executor that was shut down"
            raise RuntimeError(message)
        call = _Call(functools.partial(fn, *args, **kwargs), key, Future())
        self._inbox.put(functools.partial(self._waiting.append, call))
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 -- the signature of Executor
        """Accept no more calls, and end the workers after the last call; `cancel_futures` drops waiting calls."""
        self._is_closing = True
        self._inbox.put(functools.partial(self._close, cancel_waiting=cancel_futures))
        if wait:
            self._thread.join()

    def terminate(self) -> None:
        """End the workers now; running calls are interrupted and clean up after themselves."""
        self._is_terminated = True
        self.shutdown(cancel_futures=True)

    def __enter__(self) -> RetryingExecutor:  # noqa: PYI034 -- typing has no Self in Python 3.10
        """Start the pool; its workers start up while this process prepares the first call."""
        self._inbox.put(self._start_pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for running calls; after an exception, interrupt them, because their results are no longer needed."""
        if kind is None:
            self.shutdown()
        else:
            self.terminate()

    def _serve(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # processes started here inherit the mask and never receive Ctrl-C
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while not self._is_closing or self._waiting or self._sent:
            self._inbox.get()()
            self._send()
        if self._pool is not None:
            self._pool.shutdown()

    def _start_pool(self) -> None:
        with suppress(Exception):  # `_start` will try again and report the error
            self._pool = self._pool or self._make_pool()
            self._pool.start()

    def _close(self, *, cancel_waiting: bool) -> None:
        while cancel_waiting and self._waiting:
            future = self._waiting.popleft().future
            if not future.cancel():  # an earlier try has marked it as running
                future.set_exception(CancelledError())
        if self._is_terminated and self._pool is not None:
            self._pool.terminate()

    def _send(self) -> None:
        while self._waiting and self._may_send(self._waiting[0]):
            call = self._waiting.popleft()
            if call.losses or call.future.set_running_or_notify_cancel():
                self._sent.add(call)
                self._start(call)

    def _may_send(self, call: _Call) -> bool:
        if call.runs_alone or any(sent.runs_alone for sent in self._sent):
            return not self._sent
        return len(self._sent) < self._at_once

    def _start(self, call: _Call) -> None:
        try:
            pool = self._pool = self._pool or self._make_pool()
            inner = pool.submit_near(call.key, call.run)
        except BrokenExecutor:  # the pool lost a worker a moment ago
            self._pool = None
            self._start(call)
        except Exception as error:  # noqa: BLE001 -- the waiting thread must receive the error
            self._sent.discard(call)
            call.future.set_exception(error)
        else:
            inner.add_done_callback(lambda inner: self._inbox.put(lambda: self._finish(call, pool, inner)))

    def _finish(self, call: _Call, pool: Pool, inner: Future[Any]) -> None:
        self._sent.discard(call)
        error = CancelledError() if inner.cancelled() else inner.exception()
        if error is None:
            call.future.set_result(inner.result())
        elif isinstance(error, BrokenExecutor) and not self._is_terminated:
            self._pool = None if self._pool is pool else self._pool
            self._try_again(call)
        else:
            call.future.set_exception(error)

    def _try_again(self, call: _Call) -> None:
        call.losses += 1
        if call.losses == _MOST_LOSSES:
            call.future.set_exception(WorkerLostError.after(_MOST_LOSSES))
        elif call.runs_alone:
            self._waiting.append(call)
        else:
            self._waiting.appendleft(call)
