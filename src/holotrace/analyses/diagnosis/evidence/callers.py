"""Find the user's function that the training code called and that, directly or through helpers, led to an event."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above, nearest_above
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.frames import is_user_frame
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.schema import EventKind

NAMELESS = r": <(listcomp|genexpr|dictcomp|setcomp|lambda)>$"
"""Functions that Python creates for an expression, such as a lambda; findings name the function that contains it."""


def called_by_training(evidence: RankEvidence, events: pl.Series, training: Iterable[str]) -> pl.Series:
    """Return, for each event, the user's function that a training function called and that led to the event.

    Of the user's functions around the event, this is the outermost one that neither is a training function nor calls
    one. It is null if there is no such function, because a training function contains the event directly.

    Args:
        evidence: what is known about the rank.
        events: indices of events.
        training: the names of the training functions.
    """
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    parent, name = known.parent, known.ranges["name"].to_numpy()
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    is_user = is_python & is_user_frame(texts).to_numpy()[name]
    trains = is_user & texts.is_in(list(training)).fill_null(value=False).to_numpy()[name]
    trains = is_user & np.isin(name, name[_with_callers(parent, is_user, trains)])
    has_name = is_user & ~trains & ~texts.str.contains(NAMELESS).fill_null(value=False).to_numpy()[name]
    below = np.where((parent != NO_PARENT) & trains[parent], NO_PARENT, parent)
    rows = rows_of_events(known.ranges, events)
    above = furthest_above(below, has_name, rows)
    outermost = np.where(above == NO_PARENT, itself_or_above(below, has_name, rows), above)
    return evidence.rank_trace.texts(gathered(known.ranges["name"], outermost))


def _with_callers(
    parent: npt.NDArray[np.int64], is_user: npt.NDArray[np.bool_], trains: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the rows of the training functions, and of all user functions that call them."""
    found, rows = [], np.flatnonzero(trains)
    while len(rows):
        found.append(rows)
        above = np.unique(nearest_above(parent, is_user, rows))
        rows = np.setdiff1d(above, [NO_PARENT])
    return np.concatenate([np.empty(0, np.int64), *found])
