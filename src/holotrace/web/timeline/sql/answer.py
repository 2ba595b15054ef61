"""The answer to a SQL query, for display in the browser."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.drawing.names import printable
from holotrace.errors import HolotraceError, InvalidOptionError, LimitReachedError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.sql_queries.query import sql
from holotrace.sql_queries.views import VIEWS
from holotrace.store.trace import Trace
from holotrace.units import size_text

LONGEST_QUERY = 10_000
TIMEOUT_S = 30.0
MEMORY_BYTES = 512 << 20
MOST_SQL_ROWS = 1_000
"""Maximum number of rows of a result that are sent to the browser."""

LONGEST_CELL = 300

_FOR_MORE = (
    f"On this page, a query can use at most {TIMEOUT_S:g} s and {size_text(MEMORY_BYTES)} of memory; "
    "`holotrace sql` can use more time and memory."
)


def sql_answer(trace: Trace, query: str, executor: Executor = IN_PROCESS) -> dict[str, Any]:
    """Return the answer to a query, or the reason why there is none.

    Returns:
        columns  names of the columns
        rows     cells as text, null where the value is null; the first `MOST_SQL_ROWS` rows
        places   for each of these rows, where it is on the timeline: an event as [rank, event_index], a time as
                 [rank, start, end] (times on the rank's clock, as text), or null if unknown
        count    number of all rows
        error    the reason why there is no answer; if present, this is the only key
    """
    try:
        rows = sql(trace, query, memory_limit_bytes=MEMORY_BYTES, timeout_s=TIMEOUT_S, executor=executor)
    except LimitReachedError as error:
        return {"error": f"{str(error).partition(', or raise the limit')[0]}. {_FOR_MORE}"}
    except HolotraceError as error:
        return {"error": str(error)}
    shown = rows.head(MOST_SQL_ROWS)
    return {
        "columns": [printable(name) for name in shown.columns],
        "rows": [[_cell(value) for value in row] for row in shown.iter_rows()],
        "places": _places(shown, trace),
        "count": len(rows),
    }


def checked(query: object) -> str:
    """Return the query after checking that it is a string, not empty, and not too long.

    Raises:
        InvalidOptionError: the query is not a string, is empty, or is too long.
    """
    if not isinstance(query, str) or not query.strip():
        message = "the query is empty; write a SELECT, such as SELECT name, duration_ns FROM kernels LIMIT 10"
        raise InvalidOptionError(message)
    if len(query) > LONGEST_QUERY:
        message = f"a query may have at most {LONGEST_QUERY:,} characters, not {len(query):,}"
        raise InvalidOptionError(message)
    return query


def views_answer() -> list[dict[str, Any]]:
    """Return the views that a query can name, with their meanings and columns."""
    return [
        {"name": view.name, "meaning": view.meaning, "columns": ["rank", *(column.name for column in view.columns)]}
        for view in VIEWS.values()
    ]


def _cell(value: object) -> str | None:
    """Return a value as text; a browser would round large integers if they were sent as numbers."""
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return printable(" ".join(text.split()) if "\n" in text else text)[:LONGEST_CELL]


def _places(rows: pl.DataFrame, trace: Trace) -> list[list[Any] | None]:
    """Find each row's position on the timeline from its rank and either its event index or its times in ns."""
    ranks = _ranks(rows, trace)
    if ranks is None:
        return [None] * len(rows)
    events = _integers(rows, "event_index")
    starts, ends = _integers(rows, "start_ns"), _integers(rows, "end_ns")
    durations = _integers(rows, "duration_ns")
    return [_place(*values) for values in zip(ranks, events, starts, ends, durations, strict=True)]


def _ranks(rows: pl.DataFrame, trace: Trace) -> list[int | None] | None:
    """Return the rank of each row.

    Without a column `rank`, each row is on the trace's only rank; return None if the trace has several ranks.
    """
    if "rank" in rows.columns:
        known = set(trace.ranks)
        return [rank if rank in known else None for rank in _integers(rows, "rank")]
    return [next(iter(trace.ranks))] * len(rows) if len(trace.ranks) == 1 else None


def _integers(rows: pl.DataFrame, name: str) -> list[int | None]:
    if name not in rows.columns or not rows.schema[name].is_integer():
        return [None] * len(rows)
    return rows[name].to_list()


def _place(
    rank: int | None, event: int | None, start: int | None, end: int | None, duration: int | None
) -> list[Any] | None:
    if rank is None:
        return None
    if event is not None and event >= 0:
        return [rank, event]
    if start is None:
        return None
    last = end if end is not None else start + (duration or 0)
    return [rank, str(start), str(max(last, start))]
