"""Run a DuckDB query until it is done, reaches a limit, or is interrupted by a signal.

DuckDB runs in a separate thread. The calling thread only waits, so it handles signals at once and can interrupt DuckDB
(https://duckdb.org/docs/stable/clients/python/conversion).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from holotrace.errors import LimitReachedError
from holotrace.sql_queries.columns import as_frame, representable
from holotrace.units import size_text

GRACE_S = 3.0
"""Maximum seconds to wait for an interrupted query to end; a few DuckDB functions do not check for interrupts."""

_ROWS_AT_ONCE = 100_000
_NEVER_S = 1_000_000_000.0
_POLL_S = 0.5
"""Seconds between checks for signals; on Windows, a thread that waits without a timeout does not handle signals."""


_BETWEEN_INTERRUPTS_S = 0.05


@dataclass
class Abandoned:
    """The number of queries that ignored an interrupt; when the process exits, it should not wait for them."""

    count: int = 0


ABANDONED = Abandoned()


@dataclass(frozen=True)
class Limits:
    """Limits of a query: its time in seconds (None for no limit), and the size of its result in bytes."""

    timeout_s: float | None
    result_bytes: int


@dataclass
class RunningQuery:
    """A query on a connection; `is_stuck`: the query ignored an interrupt, so the connection must stay open."""

    connection: Any
    limits: Limits
    is_stuck: bool = field(default=False, init=False)

    def answer(self, query: str) -> pl.DataFrame:
        """Return the rows.

        Raises:
            LimitReachedError: the query took too long, or its result is too large.
            duckdb.Error: DuckDB rejects the query, or cannot run it.
        """
        return self._awaited(lambda: self._rows(query))

    def _rows(self, query: str) -> pl.DataFrame:
        relation = representable(self.connection.sql(query))
        make_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader  # DuckDB < 1.4
        batches, byte_count = [], 0
        reader = make_reader(_ROWS_AT_ONCE)
        for batch in reader:
            batches.append(batch)
            byte_count += batch.nbytes
            if byte_count > self.limits.result_bytes:
                message = (
                    f"the result is larger than {size_text(self.limits.result_bytes)}; aggregate it or add a LIMIT, or "
                    "raise the limit with --memory-limit (memory_limit_bytes=)"
                )
                raise LimitReachedError(message)
        return as_frame(reader.schema, batches)

    def _awaited(self, work: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        outcome: Future[pl.DataFrame] = Future()
        threading.Thread(target=_fulfil, args=(outcome, work), name="holotrace-sql", daemon=True).start()
        try:
            return _wait(outcome, self.limits.timeout_s)
        except WaitedTooLong:
            self._stop(outcome)
            message = (
                f"the query took longer than {self.limits.timeout_s:g} s and was stopped; query less data, or raise "
                "the limit with --timeout (timeout_s=), 0 for none"
            )
            raise LimitReachedError(message) from None
        except (KeyboardInterrupt, SystemExit):
            self._stop(outcome)
            raise

    def _stop(self, outcome: Future[pl.DataFrame]) -> None:
        deadline_s = time.monotonic() + GRACE_S
        while time.monotonic() < deadline_s:
            self.connection.interrupt()  # DuckDB ignores an interrupt that arrives before the query begins
            with suppress(WaitedTooLong):
                outcome.exception(_BETWEEN_INTERRUPTS_S)
                return
        self.is_stuck = True
        ABANDONED.count += 1


def _fulfil(outcome: Future[pl.DataFrame], work: Callable[[], pl.DataFrame]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 -- the waiting thread raises it
        outcome.set_exception(error)


def _wait(outcome: Future[pl.DataFrame], timeout_s: float | None) -> pl.DataFrame:
    deadline_s = time.monotonic() + (_NEVER_S if timeout_s is None else timeout_s)
    while (remaining_s := deadline_s - time.monotonic()) > _POLL_S and not outcome.done():
        with suppress(WaitedTooLong):
            outcome.exception(_POLL_S)
    return outcome.result(max(0.0, remaining_s))
