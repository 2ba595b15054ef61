"""The request of the SQL box; it is a POST, because the server rejects every POST from another site's page."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import request

from holotrace.errors import InvalidOptionError
from holotrace.web.session.reading import CountingRanks
from holotrace.web.session.selection import numbers_of
from holotrace.web.session.session import Scope, Session
from holotrace.web.timeline.sql.answer import checked, sql_answer


def requested_sql(session: Session, patience_s: float) -> dict[str, Any]:
    """Answer the query in the request, for the ranks selected on the page.

    The query runs on the background thread, to avoid delaying the drawing. The parameter `attempt`
    changes when the user runs a query again, but not when the browser polls for its answer.

    Raises:
        InvalidOptionError: the query has no answer; the message says why.
        TimeoutError: the answer is not ready yet.
    """
    body = request.get_json(silent=True)
    query = checked(body.get("query") if isinstance(body, dict) else None)
    scope = Scope(request.args.get("run", ""), numbers_of(request.args.get("ranks", "")))
    key = ("timeline sql", scope, session.run(scope.run).stamp, query, request.args.get("attempt", "")[:10])
    work = partial(_answer, session, scope, query)
    answer: dict[str, Any] = session.answer(key, work, is_in_background=True).result(patience_s)
    if "error" in answer:
        raise InvalidOptionError(answer["error"])
    return answer


def _answer(session: Session, scope: Scope, query: str) -> dict[str, Any]:
    trace = session.trace(scope)
    return sql_answer(trace, query, CountingRanks(session.reading, len(trace.ranks)))
