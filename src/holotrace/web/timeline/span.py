"""The busy time of each row of the timeline in a span of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.intervals import covered_length
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import lanes_of

_Numbers = npt.NDArray[np.int64]
_WORK = [int(kind) for kind in DEVICE_WORK_KINDS]


def span_answer(index: TimelineIndex, rows: Sequence[int], start: int, end: int) -> dict[str, Any]:
    """Measure the busy time of these rows in [start, end), in ns since the origin.

    Returns:
        rows  [row, busy ns, events] of each row that is not empty; a thread is busy during any event; a stream is
              busy during work, but not during annotations and waits
    """
    in_rows = [(row, index.events.within(lanes_of(index, row), start, end)[0]) for row in rows]
    return {
        "rows": [[row, _busy(index, row, places, start, end), len(places)] for row, places in in_rows if len(places)]
    }


def _busy(index: TimelineIndex, row: int, places: _Numbers, start: int, end: int) -> int:
    counted = places if index.rows[row].device is None else places[np.isin(index.kind[places], _WORK)]
    return covered_length(index.events.start[counted].clip(start, end), index.events.end[counted].clip(start, end))
