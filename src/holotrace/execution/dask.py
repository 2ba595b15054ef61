"""Process the ranks on a Dask cluster.

In Python, the result of Dask's `client.get_executor()` can be passed as the executor directly. This module is for the
command line: it connects to the scheduler at a given address and reports errors in one line. If a worker is lost, Dask
itself retries the worker's calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from holotrace.errors import InvalidOptionError, WorkerLostError
from holotrace.execution.extras import imported
from holotrace.execution.wrapped_future import wrapped_future

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = "10s"


class DaskExecutor(Executor):
    """Runs calls on the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 -- distributed has no types
        """Use a connected `distributed.Client`."""
        self._executor = client.get_executor()
        self._killed_worker = imported("distributed", extra="dask").KilledWorker

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` on a worker, which must have holotrace installed."""
        return wrapped_future(self._executor.submit(fn, *args, **kwargs), self._explained)

    def _explained(self, error: BaseException) -> BaseException:
        return WorkerLostError.on_cluster("Dask", error) if isinstance(error, self._killed_worker) else error


@contextmanager
def dask(address: str) -> Iterator[DaskExecutor]:
    """Connect to the scheduler at `address`, such as tcp://10.0.0.1:8786, for the duration of a `with` block.

    Raises:
        InvalidOptionError: no scheduler answers at `address`, or Dask is not installed.
    """
    distributed = imported("distributed", extra="dask")
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"--dask {address}: no scheduler answers there ({error})"
        raise InvalidOptionError(message) from error
    with client:
        yield DaskExecutor(client)
