"""The details of one event, and the events related to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from holotrace.drawing.names import printable
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.recorded_json import one_spacing
from holotrace.enrich.graph_attribution.explained_kernel import explained_kernel
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.host.source_lines import has_source_lines, lines_of_events
from holotrace.errors import InvalidOptionError
from holotrace.schema import DEVICE_WORK_KINDS, LAUNCH_KINDS, TABLES, EventKind
from holotrace.store.trace import RankTrace
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import located

MOST_LINKS = 60
LONGEST_TEXT = 20_000

_NOT_ARGUMENTS = {"events", "tracks", "strings", "metadata", "flows", "counters"}
_OF_THE_EVENT = ("category", "device", "stream", "correlation", "external_id")


def event_details(rank_trace: RankTrace, index: TimelineIndex, event_index: int) -> dict[str, Any]:
    """Return the name, time, position and arguments of an event, and the events that contain it, the innermost first.

    Numbers in the arguments are strings, because JavaScript would round some of them.

    Raises:
        InvalidOptionError: the event is not on the timeline.
    """
    place = _place(index, event_index)
    row, depth, start, length, _ = located(index, place)
    kind = EventKind(int(index.kind[place]))
    return {
        "name": index.text(int(index.name[place])),
        "kind": kind.name.lower().replace("_", " "),
        "at": [row, depth, start, length, event_index],
        "start_ns": str(index.origin_ns + start),
        "arguments": [
            *_missing_line(rank_trace, kind),
            *_arguments(rank_trace, event_index),
            *_explained(rank_trace, event_index),
        ],
        "inside": [_named(index, outer) for outer in index.around(place)],
    }


def event_links(rank_trace: RankTrace, index: TimelineIndex, event_index: int) -> list[dict[str, Any]]:
    """Return at most `MOST_LINKS` events related to an event, as [relation, name, at].

    line of code  the innermost function of the user's Python code that contains this call or the launch of this
                  work; in the backward pass, the innermost function that contains the forward operator
    launch    the call that launched this work          work      the work launched by this call or operator
    operator  the innermost operator around the launch
    forward   the operator whose gradient this operator computes
    backward  the operators that compute this operator's gradient

    Raises:
        InvalidOptionError: the event is not on the timeline.
    """
    kind = EventKind(int(index.kind[_place(index, event_index)]))
    links: list[dict[str, Any]] = [*_line(rank_trace, index, event_index)]
    for relation, other in _related(rank_trace, kind, event_index):
        place = index.place_of(other)
        if place is not None and len(links) < MOST_LINKS:
            links.append({"relation": relation, **_named(index, place)})
    return links


def _related(rank_trace: RankTrace, kind: EventKind, event: int) -> Iterator[tuple[str, int]]:
    if kind in DEVICE_WORK_KINDS:
        owner = launching_operator(rank_trace).filter(pl.col("event_index") == event)
        yield from _links("launch", owner["launch_index"])
        yield from _links("operator", owner["operator_index"])
    if kind in LAUNCH_KINDS:
        launched = launches(rank_trace).filter(pl.col("launch_index") == event)
        yield from _links("work", launched["event_index"])
    if kind == EventKind.CPU_OP:
        pairs = forward_of(rank_trace)
        yield from _links("forward", pairs.filter(pl.col("event_index") == event)["forward_index"])
        yield from _links("backward", pairs.filter(pl.col("forward_index") == event)["event_index"])
        owned = (pl.col("operator_index") == event) | (pl.col("top_operator_index") == event)
        yield from _links("work", launching_operator(rank_trace).filter(owned)["event_index"])


def _line(rank_trace: RankTrace, index: TimelineIndex, event: int) -> Iterator[dict[str, Any]]:
    """Yield an event's line of code, if it is known.

    `at` is the position of the Python frame or, if frames were not recorded, of the operator whose stack was recorded.
    """
    line = lines_of_events(rank_trace, pl.Series([event], dtype=pl.UInt32)).row(0, named=True)
    if line["source_line"] is None or line["frame_index"] == event:
        return
    place = index.place_of(line["frame_index"])
    if place is not None:
        relation = "line of code (forward)" if line["is_backward"] else "line of code"
        yield {"relation": relation, "name": printable(line["source_line"]), "at": located(index, place)}


def _missing_line(rank_trace: RankTrace, kind: EventKind) -> Iterator[tuple[str, str]]:
    if kind in DEVICE_WORK_KINDS and not has_source_lines(rank_trace):
        yield "source_line", "not recorded; record with with_stack=True"


def _links(relation: str, events: pl.Series) -> Iterator[tuple[str, int]]:
    return ((relation, event) for event in events.drop_nulls().head(MOST_LINKS).to_list())


def _place(index: TimelineIndex, event_index: int) -> int:
    place = index.place_of(event_index)
    if place is None:
        message = f"event {event_index:,} is not on the timeline of this rank"
        raise InvalidOptionError(message)
    return place


def _named(index: TimelineIndex, place: int) -> dict[str, Any]:
    return {"name": index.text(int(index.name[place])), "at": located(index, place)}


def _arguments(rank_trace: RankTrace, event_index: int) -> Iterator[tuple[str, str]]:
    """Yield the values of an event in the columns of the tables, as (column name, text)."""
    yield from _row_of(rank_trace, "events", _OF_THE_EVENT, event_index)
    for table, columns in TABLES.items():
        if table not in _NOT_ARGUMENTS:
            names = tuple(column.name for column in columns if column.name != "event_index")
            yield from _row_of(rank_trace, table, names, event_index)


def _explained(rank_trace: RankTrace, event_index: int) -> Iterator[tuple[str, str]]:
    """Yield the operators, modules, inputs and Python frames of a kernel in a CUDA graph, as (name, text)."""
    for name, text in explained_kernel(rank_trace.unselected, event_index):
        yield name, printable(" ".join(text.splitlines()))[:LONGEST_TEXT]


def _row_of(rank_trace: RankTrace, table: str, names: tuple[str, ...], event_index: int) -> Iterator[tuple[str, str]]:
    indexes = rank_trace.unselected.table(table, ["event_index"])["event_index"]
    rows = (indexes == event_index).arg_true()
    if not len(rows):
        return
    types = {column.name: column.type for column in TABLES[table]}
    for name in names:
        value = rank_trace.unselected.table(table, [name])[name][rows[0]]
        if value is not None:
            text = rank_trace.unselected.strings[value] if types[name] in ("string", "json") else str(value)
            shown = one_spacing(text or "") if types[name] == "json" else text or ""
            yield name, printable(" ".join(shown.splitlines()))[:LONGEST_TEXT]
