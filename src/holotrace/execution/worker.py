"""Start and end a local worker process, which limits its threads and cleans up when it ends.

A worker never outlives its parent: a pipe connects them, and the worker exits when the parent dies or closes the pipe.
Ending a worker interrupts its running call as Ctrl-C would, so the call can remove unfinished files.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from types import FrameType
from typing import TypeVar

from holotrace.execution.freed_memory import keep_freed_memory

THREADS_VARIABLE = "HOLOTRACE_THREADS"
"""Environment variable: the number of threads that the reader uses in a process; one per core if unset."""

pool_size = 0
"""The number of workers in the pool to which this worker belongs; 0 in processes that are not workers."""

_LAST = -1_000_000
"""Exit priority of the finalizer that runs last."""

T = TypeVar("T")

_is_ending = False
"""Whether the worker has received a request to end."""


def begin(threads: int, workers: int, lifeline: Connection) -> None:
    """Set up a worker; must run before the import of Polars, which starts threads."""
    global pool_size  # noqa: PLW0603 -- a process is one worker
    pool_size = workers
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    os.environ[THREADS_VARIABLE] = str(threads)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all processes; only the parent reacts
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    Finalize(None, _leave, exitpriority=_LAST)


def import_libraries() -> None:
    """Import the libraries that all analyses need."""
    import numpy as np  # noqa: F401, PLC0415 -- after `begin` has limited its threads
    import polars as pl  # noqa: F401, PLC0415 -- for the same reason


def call(function: Callable[[], T]) -> T:
    """Call the function in a worker, and exit at once if the worker receives a request to end during the call."""
    try:
        return function()
    except BaseException:
        if _is_ending:  # the call has cleaned up; the pool would catch the exception and keep this process alive
            os._exit(1)
        raise


def _end(_number: int, _frame: FrameType | None) -> None:
    """Interrupt the current call, which then cleans up.

    If the exception interrupts Polars, Polars panics and prints a message, so this function first silences stderr:
    https://github.com/pola-rs/polars/blob/main/crates/polars-python/src/conversion/mod.rs.
    """
    global _is_ending  # noqa: PLW0603 -- a process is one worker
    _is_ending = True
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # do not interrupt the clean-up
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stderr__.fileno())  # type: ignore[union-attr]
    raise SystemExit(1)


def _leave() -> None:
    """Exit at once, because Python and Polars would take a quarter of a second to free the memory."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()  # the parent never sends anything, so this waits until the pipe closes
    if not hasattr(signal, "pthread_kill"):
        os._exit(1)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
