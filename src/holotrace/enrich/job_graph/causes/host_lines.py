"""Find what each thread of a rank does over time, and when it waits for communication."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.job_graph.causes.cause_names import HostRanges

_Rows = npt.NDArray[np.int64]
NO_CALL = -1

_MOST_OPEN = 16
"""For each stretch of time, consider at most this many calls: the last ones that started before the stretch ended."""
_LATE_END_NS = 100_000
"""A thread waits for a call during a stretch of time only if the call ends at most this long after the stretch.

The difference must also be at most `_LATE_END` times the length of the stretch. If the innermost range is Python code,
the same two limits apply to how much earlier than the stretch the call ends. Neither limit applies if the name of the
innermost range shows that the thread waits."""
_LATE_END = 0.1
_LEAST_COVERED = 0.5
"""If a thread waits for a call during a stretch of time, the call covers at least this fraction of the stretch.

This limit does not apply if the name of the innermost range shows that the thread waits."""


class Segments(NamedTuple):
    """Stretches of a thread's time, in order and without gaps.

    start_ns, end_ns
    owner   the innermost range, a row of `HostRanges.ranges`; -1 if there is none
    """

    start_ns: _Rows
    end_ns: _Rows
    owner: _Rows


def segments(known: HostRanges, track_id: int) -> Segments:
    """Cut a thread's time wherever its innermost range changes."""
    rows = np.flatnonzero(known.ranges["track_id"].to_numpy() == track_id)
    start, end = (known.ranges[column].to_numpy()[rows] for column in ("start_ns", "end_ns"))
    count = len(rows)
    if not count:
        empty = np.empty(0, np.int64)
        return Segments(empty, empty, empty)
    time = np.concatenate([start, end])
    depth = known.depth[rows].astype(np.int64)
    # At equal times, ends come before starts, inner ends before outer ends, and outer starts before inner starts.
    rank_at_time = np.concatenate([depth, -depth])
    is_end = np.concatenate([np.zeros(count, np.bool_), np.ones(count, np.bool_)])
    order = np.lexsort((rank_at_time, ~is_end, time))
    time, is_end, row = time[order], is_end[order], np.concatenate([rows, rows])[order]
    after, after_ends = row[1:], is_end[1:]
    owner = np.where(is_end[:-1], np.where(after_ends, after, known.parent[after]), row[:-1])
    lasting = time[1:] > time[:-1]
    return Segments(time[:-1][lasting], time[1:][lasting], owner[lasting])


class Runs(NamedTuple):
    """Stretches of a timeline, in time order; each is spent in one call or, outside calls, on work with one cause.

    start_ns, end_ns
    cause   row of the table of causes
    call    row of the rank's calls; `NO_CALL` outside calls
    """

    start_ns: _Rows
    end_ns: _Rows
    cause: _Rows
    call: _Rows

    def where(self, wanted: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Runs:
        """Return the wanted runs."""
        return Runs(*(column[wanted] for column in self))

    def merged(self) -> Runs:
        """Join runs that follow each other without a gap and have the same cause and call."""
        if not len(self.start_ns):
            return self
        same = (self.cause[1:] == self.cause[:-1]) & (self.call[1:] == self.call[:-1])
        first = np.flatnonzero(np.append(True, ~(same & (self.start_ns[1:] == self.end_ns[:-1]))))
        last = np.append(first[1:] - 1, len(self.start_ns) - 1)
        return Runs(self.start_ns[first], self.end_ns[last], self.cause[first], self.call[first])


def thread_runs(known: HostRanges, track_id: int, calls: pl.DataFrame) -> Runs:
    """Divide a thread's time into runs: in each run, the thread waits for one call or does work with one cause.

    A thread waits for a call during a stretch of time in either of two cases:

    - The name of the innermost range, such as `<built-in method wait …>`, shows that the thread waits.
    - The name of the innermost range does not show what the thread does. In this case, the call must cover at least
      half of the stretch and must not end much later than the stretch. If the innermost range is Python code, the call
      must not end much earlier than the stretch either.

    Args:
        known: the host ranges of the rank.
        track_id: the thread.
        calls: start_ns and end_ns of the calls that the host performs.
    """
    parts = segments(known, track_id)
    cause = known.cause_row[parts.owner]
    whole = Runs(parts.start_ns, parts.end_ns, cause, np.full(len(cause), NO_CALL))
    if calls.is_empty() or not len(cause):
        return whole.merged()
    signs = _Signs(*(column[parts.owner] for column in (known.waits, known.may_wait, known.is_python)))
    return _with_waits(whole, signs, calls).merged()


class _Signs(NamedTuple):
    """The flags `waits`, `may_wait` and `is_python` of the innermost range of each stretch; see `HostRanges`."""

    waits: npt.NDArray[np.bool_]
    may_wait: npt.NDArray[np.bool_]
    is_python: npt.NDArray[np.bool_]

    def where(self, wanted: npt.NDArray[np.bool_]) -> _Signs:
        return _Signs(*(sign[wanted] for sign in self))


_Columns = TypeVar("_Columns", Runs, _Signs)


def _joined(*parts: _Columns) -> _Columns:
    return type(parts[0])(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _with_waits(runs: Runs, signs: _Signs, calls: pl.DataFrame) -> Runs:
    """Cut each run in which the thread waits for a call into the parts before, during and after this call.

    If the part before or after this call contains another awaited call, that part is cut too.
    """
    may_wait = signs.waits | signs.may_wait | signs.is_python
    parts = [runs.where(~may_wait)]
    rest, signs = runs.where(may_wait), signs.where(may_wait)
    while len(rest.start_ns):
        call, inside = _calls_waited_for(rest, signs, calls)
        parts.append(rest.where(~inside))
        waiting, signs = rest.where(inside), signs.where(inside)
        begins, ends = (calls[column].to_numpy()[call[inside]] for column in ("start_ns", "end_ns"))
        begin, end = np.maximum(waiting.start_ns, begins), np.minimum(waiting.end_ns, ends)
        parts.append(waiting._replace(start_ns=begin, end_ns=end, call=call[inside]))
        rest = _joined(waiting._replace(end_ns=begin), waiting._replace(start_ns=end))
        lasts = rest.end_ns > rest.start_ns
        rest, signs = rest.where(lasts), _joined(signs, signs).where(lasts)
    together = _joined(*parts)
    return together.where(np.argsort(together.start_ns, kind="stable"))


def _calls_waited_for(runs: Runs, signs: _Signs, calls: pl.DataFrame) -> tuple[_Rows, npt.NDArray[np.bool_]]:
    """Return, for each run, the call that overlaps the run longest, and whether the thread waits for this call."""
    starts, ends = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    start, end = runs.start_ns[:, None], runs.end_ns[:, None]
    last = np.searchsorted(starts, end[:, 0], side="left")
    rows = last[:, None] - 1 - np.arange(_MOST_OPEN)
    exists, rows = rows >= 0, np.maximum(rows, 0)
    overlap = np.where(exists, np.minimum(ends[rows], end) - np.maximum(starts[rows], start), -1)
    tolerance = np.minimum(_LATE_END_NS, _LATE_END * (end - start))
    ends_inside = ends[rows] <= end + tolerance
    # The thread waits for the call that overlaps the run longest; if several overlaps are equal, for the call that ends
    # last. If a call ends clearly after the run, only half of its overlap counts.
    score = overlap.astype(np.float64) * np.where(ends_inside, 1.0, 0.5) + 1e-9 * ends_inside * (ends[rows] - start)
    best = np.argmax(score, axis=1)
    at = np.arange(len(best))
    covered = overlap[at, best]
    is_covered = (covered >= _LEAST_COVERED * (end - start)[:, 0]) & ends_inside[at, best]
    continues_late = end[:, 0] - ends[rows[at, best]] > tolerance[:, 0]
    return rows[at, best], (covered > 0) & (signs.waits | (is_covered & ~(signs.is_python & continues_late)))


def main_track(known: HostRanges, wanted: int | None) -> int:
    """Return `wanted` or, if it is None, the thread with the most ranges; -1 if there are no ranges."""
    if wanted is not None:
        return wanted
    tracks = known.ranges["track_id"].to_numpy()
    return int(np.argmax(np.bincount(tracks))) if len(tracks) else NO_PARENT
