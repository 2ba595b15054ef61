"""A span of time: how busy each row is, and which names take most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.intervals import covered_length
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import NAME_LENGTH, lanes_of

MOST_NAMES = 100

_Numbers = npt.NDArray[np.int64]
_WORK = [int(kind) for kind in DEVICE_WORK_KINDS]


def span_answer(index: TimelineIndex, rows: Sequence[int], start: int, end: int) -> dict[str, Any]:
    """Sum the events of these rows in [start, end) ns from the origin, counting only the parts inside.

    Returns:
        rows     [row, busy ns, events] of each row that is not empty; a thread is busy during any event, a stream only
                 during work, not during annotations and waits
        device   [name, events, ns, event_index of the longest] of the names that take most time on streams, the longest
                 first, at most `MOST_NAMES`
        host     the same for names on threads; the time of a caller includes that of its callees
        device_count, host_count  number of all names on streams and on threads
    """
    in_rows = [(row, index.events.within(lanes_of(index, row), start, end)[0]) for row in rows]
    filled = [(row, places) for row, places in in_rows if len(places)]
    on_device = [places for row, places in filled if index.rows[row].device is not None]
    on_host = [places for row, places in filled if index.rows[row].device is None]
    device, host = (_by_name(index, places, start, end) for places in (on_device, on_host))
    return {
        "rows": [[row, _busy(index, row, places, start, end), len(places)] for row, places in filled],
        "device": device[:MOST_NAMES],
        "host": host[:MOST_NAMES],
        "device_count": len(device),
        "host_count": len(host),
    }


def _busy(index: TimelineIndex, row: int, places: _Numbers, start: int, end: int) -> int:
    counted = places if index.rows[row].device is None else places[np.isin(index.kind[places], _WORK)]
    return covered_length(index.events.start[counted].clip(start, end), index.events.end[counted].clip(start, end))


def _by_name(index: TimelineIndex, of_rows: Sequence[_Numbers], start: int, end: int) -> list[list[Any]]:
    places = np.concatenate([np.arange(0), *of_rows])
    inside = index.events.end[places].clip(start, end) - index.events.start[places].clip(start, end)
    order = np.lexsort((inside, index.name[places]))
    names, first = np.unique(index.name[places][order], return_index=True)
    if not len(names):
        return []
    last = np.append(first[1:], len(order)) - 1
    total = np.add.reduceat(inside[order], first)
    longest = index.event_index[places[order[last]]]
    by_time = np.argsort(-total, kind="stable")
    columns = ((last - first + 1)[by_time], total[by_time], longest[by_time])
    rows = zip(names[by_time].tolist(), *(column.tolist() for column in columns), strict=True)
    return [[index.text(name)[:NAME_LENGTH], *numbers] for name, *numbers in rows]
