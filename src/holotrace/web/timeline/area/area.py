"""An area of the timeline that the browser requests, and the summaries of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from holotrace.errors import InvalidOptionError
from holotrace.web.session.selection import numbers_of
from holotrace.web.timeline.area.events import AreaEvents, area_events
from holotrace.web.timeline.area.flames import flames, rank_flames
from holotrace.web.timeline.area.totals import rank_totals, totals
from holotrace.web.timeline.index import TimelineIndex

MOST_AREAS = 128
LARGEST_TIME = 2**62

_FORM = "`areas` must be RANK:START:END:ROWS, or several of these joined with semicolons"
_FIELDS = 4


@dataclass(frozen=True)
class Area:
    """A span of time on rows of one rank: [start, end) in ns since the rank's origin; `rows` is None for all rows."""

    rank: int
    start: int
    end: int
    rows: tuple[int, ...] | None

    def numbers(self, index: TimelineIndex) -> list[int]:
        """Return the numbers of the area's rows, without numbers that no row of the rank has."""
        rows = range(len(index.rows)) if self.rows is None else self.rows
        return [row for row in rows if row < len(index.rows)]


def areas_of(text: str) -> tuple[Area, ...]:
    """Parse areas such as `0:1000:2000:0-3,7;1:1010:2010:`; the empty field after `2010:` means all rows.

    Raises:
        InvalidOptionError: the text does not have this form, or contains too many areas or an empty area.
    """
    parts = text.split(";")
    if len(parts) > MOST_AREAS:
        message = f"an area may include at most {MOST_AREAS} ranks, not {len(parts):,}"
        raise InvalidOptionError(message)
    return tuple(map(_area, parts))


def _area(text: str) -> Area:
    fields = text.split(":")
    try:
        rank, start, end = map(int, fields[:-1])
    except ValueError as error:
        raise InvalidOptionError(_FORM) from error
    rows = numbers_of(fields[-1]) if fields[-1] else None
    if (rows is None and fields[-1]) or len(fields) != _FIELDS:
        raise InvalidOptionError(_FORM)
    if not -LARGEST_TIME < start < end < LARGEST_TIME:
        message = "an area must end after its start"
        raise InvalidOptionError(message)
    return Area(rank, start, end, rows)


def area_totals(index_of: Callable[[int], TimelineIndex], areas: Iterable[Area]) -> pl.DataFrame:
    """Return the `totals` of all areas; `index_of` returns the index of a rank."""
    return totals(rank_totals(area.rank, *inside) for area, inside in _inside(index_of, areas))


def area_flames(index_of: Callable[[int], TimelineIndex], areas: Iterable[Area]) -> list[dict[str, Any]]:
    """Return the `flames` of the host rows of all areas."""
    return flames(rank_flames(area.rank, *inside) for area, inside in _inside(index_of, areas, is_host=True))


def _inside(
    index_of: Callable[[int], TimelineIndex], areas: Iterable[Area], *, is_host: bool = False
) -> Iterator[tuple[Area, tuple[TimelineIndex, AreaEvents]]]:
    for area in areas:
        index = index_of(area.rank)
        rows = [row for row in area.numbers(index) if not (is_host and index.rows[row].device is not None)]
        yield area, (index, area_events(index, rows, area.start, area.end))
