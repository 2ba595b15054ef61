"""Executors, which process the ranks; holotrace accepts any `concurrent.futures.Executor`.

Examples are process and thread pools, `dask.distributed.Client.get_executor()` and `mpi4py.futures.MPIPoolExecutor`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from typing import ParamSpec, Protocol, TypeVar, runtime_checkable

__all__ = ["IN_PROCESS", "Executor", "InProcessExecutor", "PlacingExecutor", "submit_near"]

P = ParamSpec("P")
T = TypeVar("T")


class InProcessExecutor(Executor):
    """Runs each call at once in the caller's thread and returns a finished future."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` and store its result or error in the future; interrupts such as Ctrl-C propagate."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 -- an executor raises every error from `Future.result`
            future.set_exception(error)
        return future


IN_PROCESS = InProcessExecutor()
"""The default executor: it runs all work in the caller's thread."""


@runtime_checkable
class PlacingExecutor(Protocol):
    """An executor that can run calls with equal keys in the same worker, where they find the state of earlier calls."""

    def submit_near(self, key: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in the worker that ran the last call with this key, unless this would leave other workers idle."""


def submit_near(
    executor: Executor, key: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> Future[T]:
    """Submit a call to the worker that ran the last call with this key, or to any worker if the executor cannot choose."""
    if isinstance(executor, PlacingExecutor):
        return executor.submit_near(key, fn, *args, **kwargs)
    return executor.submit(fn, *args, **kwargs)
