"""Where per-rank work runs: anything that keeps the promises of `concurrent.futures.Executor`.

Processes, threads, `dask.distributed.Client.get_executor()` and `mpi4py.futures.MPIPoolExecutor` all fit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

__all__ = ["IN_PROCESS", "Executor", "InProcessExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class InProcessExecutor(Executor):
    """Run each call at once, in the caller's thread; the future comes back finished."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` and keep its result or its error; interrupts such as Ctrl-C pass straight through."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 -- an executor hands every error to whoever asks for the result
            future.set_exception(error)
        return future


IN_PROCESS = InProcessExecutor()
"""The executor used where none is given."""
