"""What a worker process of this machine does besides its work: it keeps to its share of the cores, and ends in order.

A worker outlives nobody: it holds one end of a pipe whose other end is in the process that started it, and ends when
that is closed, by intent or because the process is gone. A call that is running then is interrupted as by Ctrl-C, so
that what it was writing is removed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import ParamSpec, TypeVar

THREADS_VARIABLE = "HOLOTRACE_THREADS"
"""Environment variable: how many threads the reader uses in a process; all cores where it is unset."""

P = ParamSpec("P")
T = TypeVar("T")


def begin(threads: int, lifeline: Connection) -> None:
    """Run first in a worker, before Polars is imported there and starts its threads."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    os.environ[THREADS_VARIABLE] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the process at the top decides
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function in a worker; told to end meanwhile, do so instead of waiting for the next call."""
    try:
        return function(*args, **kwargs)
    except SystemExit:  # what it was writing is removed by now; the pool would keep the exception as a result
        os._exit(1)


def _end(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # cleaning up is not to be interrupted in turn
    raise SystemExit(1)


def _end_with(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()  # nothing is ever sent
    if not hasattr(signal, "pthread_kill"):
        os._exit(1)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
