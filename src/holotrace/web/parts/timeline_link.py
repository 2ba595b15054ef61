"""Links that open the timeline at an event, a span of time or a name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from holotrace.web.session.selection import Selection

TIMELINE_VIEW = "timeline"


class AtEvent(NamedTuple):
    """An event; `event_index` is the event's position in the rank's file, counted from 0."""

    rank: int
    event_index: int


class AtSpan(NamedTuple):
    """A span of time, or a single point if both ends are equal.

    clock_of  the rank whose clock the times refer to; None if they refer to the timeline's axis
    """

    start_ns: int
    end_ns: int
    clock_of: int | None = None


def timeline_link(
    selection: Selection,
    at: AtEvent | AtSpan | str = "",
    *,
    ranks: Iterable[int] = (),
    overlays: Iterable[str] = (),
) -> str:
    """Return the address of the timeline of this run.

    Args:
        selection: run, steps and devices to show; if `ranks` is empty, also the ranks to show.
        at: the event or span to select; a string selects the longest event whose name contains it.
        ranks: the ranks to show.
        overlays: the overlays to show: "path", "findings".

    >>> here = Selection(run="31fc1308cf59")
    >>> timeline_link(here, AtEvent(3, 71_535), ranks=[0, 3])
    '?view=timeline&run=31fc1308cf59&ranks=0,3&event=3:71535'
    >>> timeline_link(here, AtSpan(1_700_000, 1_900_000, clock_of=3))
    '?view=timeline&run=31fc1308cf59&at=3:1700000-1900000'
    """
    shown = replace(selection.at(TIMELINE_VIEW), ranks=tuple(sorted(set(ranks))) or selection.ranks)
    return shown.with_options(**_option(at), show=",".join(overlays)).query()


def _option(at: AtEvent | AtSpan | str) -> dict[str, str]:
    if isinstance(at, AtEvent):
        return {"event": f"{at.rank}:{at.event_index}"}
    if isinstance(at, AtSpan):
        clock = "" if at.clock_of is None else f"{at.clock_of}:"
        end = f"-{at.end_ns}" if at.start_ns < at.end_ns else ""
        return {"at": f"{clock}{at.start_ns}{end}"}
    return {"find": at}
