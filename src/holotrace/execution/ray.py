"""Process the ranks on a Ray cluster; if a worker is lost, Ray itself retries the worker's calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from holotrace.errors import InvalidOptionError, WorkerLostError
from holotrace.execution.extras import imported
from holotrace.execution.wrapped_future import wrapped_future

P = ParamSpec("P")
T = TypeVar("T")

_RETRIES = 3


class RayExecutor(Executor):
    """Runs calls as Ray tasks.

    If `ray.init` was called before, the executor uses that connection. Otherwise, it opens one and closes it in
    `shutdown`, which is called at the end of the `with` block.
    """

    def __init__(self, address: str | None = "auto", **options: Any) -> None:  # noqa: ANN401 -- options of ray.init
        """Connect to the cluster at `address`: "auto" finds a cluster on this machine, "local" starts one.

        Raises:
            InvalidOptionError: no cluster answers at the address, or Ray is not installed.
        """
        self._ray = imported("ray", extra="ray")
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._connect(address, options)
        self._run = self._ray.remote(max_retries=_RETRIES)(_run)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in a worker, which must have holotrace installed."""
        return wrapped_future(self._run.remote(functools.partial(fn, *args, **kwargs)).future(), self._explained)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 -- the signature of Executor
        """Disconnect from Ray if this executor opened the connection."""
        if self._is_own:
            self._ray.shutdown()

    def _connect(self, address: str | None, options: dict[str, Any]) -> None:
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            self._ray.init(address, **quiet | options)
        except (OSError, ValueError, RuntimeError) as error:
            message = f"no Ray cluster answers at {address!r} ({error})"
            raise InvalidOptionError(message) from error

    def _explained(self, error: BaseException) -> BaseException:
        """Return the error of the call without Ray's wrapper, or a WorkerLostError if Ray itself failed."""
        cause = error.cause if isinstance(error, self._ray.exceptions.RayTaskError) else error
        is_ours = not isinstance(cause, self._ray.exceptions.RayError)
        return cause if is_ours else WorkerLostError.on_cluster("Ray", cause)


def _run(call: Callable[[], T]) -> T:
    return call()
