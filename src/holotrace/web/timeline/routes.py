"""The addresses that the timeline requests from the server, all below `timeline/`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from flask import Flask, Response, abort, request, send_file, send_from_directory

from holotrace.analyses.diagnosis.compute import diagnosis
from holotrace.errors import HolotraceError, InvalidOptionError
from holotrace.store.trace import RankTrace, Trace
from holotrace.store.trace_file import TraceFile
from holotrace.web.session.bound_files import opened_trace
from holotrace.web.session.selection import numbers_of
from holotrace.web.session.session import Scope, Session
from holotrace.web.timeline.area.area import Area, area_flames, area_totals, areas_of
from holotrace.web.timeline.area.flames import flames_answer
from holotrace.web.timeline.area.totals import SORTED_BY, totals_answer
from holotrace.web.timeline.clocks import clocks_answer, timeline_clocks
from holotrace.web.timeline.counters import Counters, counter_answer, rank_counters
from holotrace.web.timeline.details import event_details, event_links
from holotrace.web.timeline.findings import (
    MOST_OF_A_KIND,
    SHORTEST_NS,
    Finding,
    diagnosis_findings,
    idle_findings,
    waiting_findings,
)
from holotrace.web.timeline.index import TimelineIndex, timeline_index
from holotrace.web.timeline.merged_files import MergedFiles
from holotrace.web.timeline.navigation.busy import busy_answer
from holotrace.web.timeline.navigation.neighbours import neighbour
from holotrace.web.timeline.path import PathOverlay, path_answer, path_overlay
from holotrace.web.timeline.perfetto import perfetto_folder
from holotrace.web.timeline.query import Window, search, slices_answer
from holotrace.web.timeline.rank_order import awaited_order, known_order
from holotrace.web.timeline.span import span_answer
from holotrace.web.timeline.sql.answer import views_answer
from holotrace.web.timeline.sql.requests import requested_sql
from holotrace.web.timeline.waits import longest_waits

T = TypeVar("T")

MOST_RANKS = 16
"""Number of ranks shown by default; limited, because the server reads one file per rank."""

PATIENCE_S = 0.5
MOST_PIXELS = 8_192
MOST_ROWS = 512
LONGEST_SEARCH = 200

INDEX_KEY = "timeline"

_SHORT_ANSWER = 1_000
_LARGEST_TIME = 2**62


def add_routes(flask: Flask, session: Session) -> None:
    """Answer the requests of the timeline."""
    answers: dict[str, Callable[[Session], Any]] = {
        "ranks": _ranks,
        "order": _order,
        "clocks": _clocks,
        "rows": _rows,
        "slices": _slices,
        "search": _search,
        "event": _event,
        "links": _links,
        "neighbour": _neighbour,
        "busy": _busy,
        "counters": _counters,
        "counter": _counter,
        "span": _span,
        "totals": _totals,
        "flames": _flames,
        "path": _path,
        "findings": _findings,
        "views": lambda _: views_answer(),
        "merged": partial(_merged, files := MergedFiles()),
    }
    for name, answer in answers.items():
        flask.add_url_rule(f"/timeline/{name}", f"timeline_{name}", partial(_answered, answer, session))
    sql = partial(_answered, partial(requested_sql, patience_s=PATIENCE_S), session)
    flask.add_url_rule("/timeline/sql", "timeline_sql", sql, methods=["POST"])
    flask.add_url_rule("/timeline/file", "timeline_file", partial(_file, files, session))
    flask.add_url_rule("/timeline/perfetto/<path:path>", "timeline_perfetto", _perfetto)


def _answered(answer: Callable[[Session], Any], session: Session) -> Response:
    """Return an answer as JSON; the status is 202 while the answer is not ready, and 400 if there is an error."""
    try:
        return _json(answer(session))
    except NotYet:
        return _json({"waiting": session.reading.text() or "computing"}, 202)
    except HolotraceError as error:
        return _json({"error": str(error)}, 400)


def _ranks(session: Session) -> dict[str, Any]:
    scope = _several()
    known = list(session.whole(scope.run).ranks)
    chosen = known if scope.ranks is None else [rank for rank in scope.ranks if rank in known]
    order = known_order(session, scope)
    return {"ranks": order.first(chosen)[:MOST_RANKS], "count": len(chosen)}


def _order(session: Session) -> list[dict[str, Any]]:
    """Answer with the ranks to show first, each with the reason; empty if no rank is late."""
    return awaited_order(session, _several(), PATIENCE_S).answer()


def _clocks(session: Session) -> list[dict[str, Any]]:
    """Answer with the clocks of `ranks`; the answer is empty if all ranks are on one host."""
    return clocks_answer(_ready(session, _several(), "timeline clocks", timeline_clocks))


def _rows(session: Session) -> dict[str, Any]:
    index = _index(session)
    return {
        "origin": str(index.origin_ns),
        "length": index.length_ns,
        "steps": index.step_ranges[:10_000],
        "rows": [
            {
                "label": row.label,
                "process": row.process,
                "device": row.device,
                "lanes": row.lane_count,
                "events": row.event_count,
                "hidden": row.hidden_count,
            }
            for row in index.rows
        ],
    }


def _slices(session: Session) -> dict[str, Any]:
    index = _index(session)
    answer = slices_answer(index, _requested_rows(index), _window(), request.args.get("text", "")[:LONGEST_SEARCH])
    whole = Window(0, index.length_ns, 1_024)
    session.answer(
        ("timeline levels", _scope(), id(index)), partial(index.prepare, whole.level)
    )  # the next requests will need these levels
    return answer


def _search(session: Session) -> dict[str, Any]:
    index = _index(session)
    text = request.args.get("text", "")[:LONGEST_SEARCH]
    if not text:
        message = "the search text is empty"
        raise InvalidOptionError(message)
    return search(index, _requested_rows(index), text)


def _event(session: Session) -> dict[str, Any]:
    return event_details(_rank_trace(session), _index(session), _number("event"))


def _links(session: Session) -> list[dict[str, Any]]:
    event, scope = _number("event"), _scope()
    index, rank_trace = _index(session), _rank_trace(session)
    key = ("timeline links", scope, event, session.run(scope.run).stamp)
    return session.answer(key, partial(event_links, rank_trace, index, event)).result(PATIENCE_S)


def _neighbour(session: Session) -> dict[str, Any]:
    """Answer with an event before or after `event`, on the same row or with the same name; see `neighbour`."""
    of, index = request.args.get("of", ""), _index(session)
    if of not in ("row", "name"):
        message = f"`of` must be row or name, not {of[:40]!r}"
        raise InvalidOptionError(message)
    return neighbour(index, _number("event"), _number("by"), of=of, rows=_requested_rows(index))


def _busy(session: Session) -> dict[str, Any]:
    index = _index(session)
    return _ready(session, _scope(), "timeline busy", lambda _: busy_answer(index))


def _counters(session: Session) -> list[dict[str, Any]]:
    counters = _made_counters(session).counters
    return [
        {"label": counter.label, "unit": counter.unit, "device": counter.device, "highest": counter.highest}
        for counter in counters
    ]


def _counter(session: Session) -> list[dict[str, Any]]:
    counters, window = _made_counters(session).counters, _window()
    numbers = numbers_of(request.args.get("numbers", "")) or ()
    return [
        {"number": number, **counter_answer(counters[number], window)} for number in numbers if number < len(counters)
    ]


def _span(session: Session) -> dict[str, Any]:
    index = _index(session)
    start, end = _range("start", "end")
    scope, rows = _scope(), _requested_rows(index)
    key = ("timeline span", scope, session.run(scope.run).stamp, start, end, tuple(rows))
    return session.answer(key, partial(span_answer, index, rows, start, end)).result(PATIENCE_S)


def _totals(session: Session) -> dict[str, Any]:
    by = request.args.get("by", SORTED_BY[0])
    if by not in SORTED_BY:
        message = f"`by` must be one of {', '.join(SORTED_BY)}, not {by[:40]!r}"
        raise InvalidOptionError(message)
    return totals_answer(_of_areas(session, "timeline totals", area_totals), by)


def _flames(session: Session) -> dict[str, Any]:
    return flames_answer(_of_areas(session, "timeline flames", area_flames))


def _of_areas(
    session: Session, name: str, compute: Callable[[Callable[[int], TimelineIndex], tuple[Area, ...]], T]
) -> T:
    """Return a result for the requested areas; ranks are read one after the other, because their indexes are large."""
    run, areas = request.args.get("run", ""), areas_of(request.args.get("areas", ""))
    scope = Scope(run, tuple(sorted({area.rank for area in areas})))

    def index_of(rank: int) -> TimelineIndex:
        return session.remembered(Scope(run, (rank,)), INDEX_KEY, lambda trace: timeline_index(trace.ranks[rank]))

    return _ready(session, scope, (name, areas), lambda _: compute(index_of, areas))


def _path(session: Session) -> dict[str, Any]:
    """Answer with the critical path of the span `from` to `to`, of `steps`, or of the default window."""
    scope, index, window = _scope(), _index(session), _window()
    steps = numbers_of(request.args.get("steps", ""))
    of_steps = (steps[0], steps[-1]) if steps else None
    span = _range("from", "to") if "from" in request.args else None

    def overlay(trace: Trace) -> PathOverlay:
        return path_overlay(trace.ranks[_only(scope)], index, of_steps, span)

    return path_answer(index, _ready(session, scope, ("timeline path", of_steps, span), overlay), window)


def _findings(session: Session) -> list[dict[str, Any]]:
    """Answer with the findings of one kind on a rank; to find waits and advice, compare the ranks in `among`."""
    makers = {"idle": _idle, "waiting": _waiting, "advice": _advice}
    kind = request.args.get("kind", "")
    if kind not in makers:
        message = f"`kind` must be one of {', '.join(makers)}, not {kind[:40]!r}"
        raise InvalidOptionError(message)
    origin = _index(session).origin_ns
    findings = makers[kind](session, _scope(), numbers_of(request.args.get("among", "")))
    return [
        {
            "text": finding.text,
            "start": finding.start_ns - origin,
            "end": finding.end_ns - origin,
            "event": finding.event_index,
        }
        for finding in findings
    ]


def _idle(session: Session, scope: Scope, _: tuple[int, ...] | None) -> Iterable[Finding]:
    def idle(trace: Trace) -> list[Finding]:
        return list(idle_findings(trace.ranks[_only(scope)]))

    return _ready(session, scope, "timeline idle", idle)


def _waiting(session: Session, scope: Scope, among: tuple[int, ...] | None) -> Iterable[Finding]:
    compute = partial(longest_waits, shortest_ns=SHORTEST_NS, most=MOST_OF_A_KIND)
    waits = _ready(session, Scope(scope.run, among), "timeline waits", compute)
    return waiting_findings(_only(scope), waits)


def _advice(session: Session, scope: Scope, among: tuple[int, ...] | None) -> Iterable[Finding]:
    return diagnosis_findings(_only(scope), _ready(session, Scope(scope.run, among), "diagnosis", diagnosis))


def _merged(files: MergedFiles, session: Session) -> dict[str, Any]:
    """Write the events of `ranks` to one file, on one clock; wait until it is written, and return its size."""
    key, make = _merging(files, session)
    session.answer(("timeline merged", key), lambda: _done(make)).result(PATIENCE_S)
    return {"bytes": make().stat().st_size}


def _merging(files: MergedFiles, session: Session) -> tuple[Hashable, Callable[[], Path]]:
    scope = _several()
    if len(scope.ranks or ()) not in range(1, MOST_RANKS + 1):
        message = f"choose 1 to {MOST_RANKS} ranks for Perfetto"
        raise InvalidOptionError(message)
    key = (scope, session.run(scope.run).stamp)
    return key, lambda: files.file(key, session.trace(scope))


def _file(files: MergedFiles, session: Session) -> Response:
    """Return the trace file of `rank`, or the merged file of several `ranks` on one clock."""
    try:
        content, byte_count = _opened_file(files, session)
    except HolotraceError as error:
        return _json({"error": str(error)}, 404)
    response = send_file(content, mimetype="application/octet-stream", etag=False)
    response.headers.update({} if byte_count is None else {"Content-Length": byte_count})
    return response


def _opened_file(files: MergedFiles, session: Session) -> tuple[BinaryIO, int | None]:
    """Open the requested file; raise an error for a store, because the path stored in it may point anywhere."""
    if "ranks" in request.args:
        path = _merging(files, session)[1]()
        return path.open("rb"), path.stat().st_size
    file = _rank_trace(session).file
    if not isinstance(file, TraceFile):
        message = "a store does not contain the trace file"
        raise InvalidOptionError(message)
    return opened_trace(file)


def _perfetto(path: str) -> Response:
    folder = perfetto_folder()
    if folder is None:
        abort(404)
    return send_from_directory(folder, path)


def _index(session: Session) -> TimelineIndex:
    scope = _scope()
    return _ready(session, scope, INDEX_KEY, lambda trace: timeline_index(trace.ranks[_only(scope)]))


def _made_counters(session: Session) -> Counters:
    scope, origin = _scope(), _index(session).origin_ns
    return _ready(session, scope, "timeline counters", lambda trace: rank_counters(trace.ranks[_only(scope)], origin))


def _ready(session: Session, scope: Scope, key: Hashable, compute: Callable[[Trace], T]) -> T:
    """Let a worker thread compute a result, and return the result if it is ready after a short wait.

    Raises:
        TimeoutError: the result is not ready yet.
    """
    make = partial(session.remembered, scope, key, compute)
    session.answer((key, scope, session.run(scope.run).stamp), lambda: _done(make)).result(PATIENCE_S)
    return make()


def _done(make: Callable[[], object]) -> None:
    """Compute a result for the session's cache; return nothing, so that the `Future` keeps no large object."""
    make()


def _rank_trace(session: Session) -> RankTrace:
    scope = _scope()
    return session.trace(scope).ranks[_only(scope)]


def _scope() -> Scope:
    return Scope(request.args.get("run", ""), (_number("rank"),))


def _several() -> Scope:
    return Scope(request.args.get("run", ""), numbers_of(request.args.get("ranks", "")))


def _only(scope: Scope) -> int:
    return (scope.ranks or (0,))[0]


def _window() -> Window:
    pixels = _number("pixels")
    if not 1 <= pixels <= MOST_PIXELS:
        message = f"a window must be 1 to {MOST_PIXELS:,} pixels wide"
        raise InvalidOptionError(message)
    return Window(*_range("start", "end"), pixels)


def _range(first: str, last: str) -> tuple[int, int]:
    start, end = _number(first), _number(last)
    if end <= start:
        message = "a window must end after its start"
        raise InvalidOptionError(message)
    return start, end


def _requested_rows(index: TimelineIndex) -> list[int]:
    """Return the requested rows; by default all rows."""
    requested = numbers_of(request.args.get("rows", ""))
    rows = range(len(index.rows)) if requested is None else requested
    return [row for row in rows if row < len(index.rows)][:MOST_ROWS]


def _number(name: str) -> int:
    text = request.args.get(name, "")
    try:
        number = int(text)
    except ValueError:
        number = _LARGEST_TIME + 1
    if abs(number) > _LARGEST_TIME:
        message = f"`{name}` must be an integer, not {text[:40]!r}"
        raise InvalidOptionError(message)
    return number


def _json(value: object, status: int = 200) -> Response:
    """Return a response with JSON, compressed if it is long."""
    body = json.dumps(value, separators=(",", ":")).encode()
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if len(body) > _SHORT_ANSWER and "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
    return Response(body, status, headers, mimetype="application/json")
