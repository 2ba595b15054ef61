"""What a rank did before its calls, as timelines ("lines") that several calls can share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clipping import clipped

_Rows = npt.NDArray[np.int64]

NO_LINE = -1
LAUNCH_DELAY, SYNCHRONISATION, UNKNOWN = -1, -2, -3
"""Causes without a name. A rank's table of causes has no row for them, so these numbers replace the row number."""

RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "line": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": pl.Int32,
    "call": pl.Int32,
}
LINE: dict[str, pl.DataType | type[pl.DataType]] = {"parent": pl.Int32, "parent_ns": pl.Int64}
POSITIONS: dict[str, pl.DataType | type[pl.DataType]] = {"line": pl.Int32, "at_ns": pl.Int64}


class Lines(NamedTuple):
    """The activities of a rank as timelines; a line may branch off from another line.

    runs   sorted by line and start_ns, without overlaps:

        line      int32
        start_ns  int64
        end_ns    int64
        cause     int32  row of a table of causes, or `LAUNCH_DELAY`, `SYNCHRONISATION` or `UNKNOWN`
        call      int32  the call in which the time was spent; -1 outside calls

    lines  one row per line:

        parent     int32  the line from which this line branches off; -1 if the earlier activities are unknown
        parent_ns  int64  the time at which this line branches off from its parent

    positions  one row per call of the rank:

        line   int32  the line of the call; -1 if it is unknown what the rank did before the call
        at_ns  int64  when the call starts
    """

    runs: pl.DataFrame
    lines: pl.DataFrame
    positions: pl.DataFrame

    @classmethod
    def empty(cls) -> Lines:
        """Return `Lines` without rows, for a rank that has no calls."""
        return cls(pl.DataFrame(schema=RUNS), pl.DataFrame(schema=LINE), pl.DataFrame(schema=POSITIONS))

    def before(self, calls: _Rows, since_ns: _Rows) -> pl.DataFrame:
        """Return what the rank did between `since_ns` and the start of each call.

        Returns:
            query     int64  row of `calls`
            start_ns, end_ns, cause, call
        """
        line, at = (self.positions[column].to_numpy()[calls].astype(np.int64) for column in ("line", "at_ns"))
        query = np.arange(len(calls))
        parts = [pl.DataFrame(schema={"query": pl.Int64, **RUNS}).drop("line")]
        while len(query := query[keep := (line >= 0) & (at > since_ns[query])]):
            line, at = line[keep], at[keep]
            parts.append(self._within(query, line, since_ns[query], at))
            at = np.minimum(at, self.lines["parent_ns"].to_numpy()[line])
            line = self.lines["parent"].to_numpy()[line].astype(np.int64)
        return pl.concat(parts)

    def _within(self, query: _Rows, line: _Rows, begin: _Rows, finish: _Rows) -> pl.DataFrame:
        start, end = self.runs["start_ns"].to_numpy(), self.runs["end_ns"].to_numpy()
        lowest = int(start.min()) if len(start) else 0
        width = (int(end.max()) if len(end) else 0) - lowest + 2
        # Shift the times of each line into a separate range, so the runs of all lines are in ascending order.
        shift = self.runs["line"].to_numpy().astype(np.int64) * width - lowest
        from_ns, to_ns = (np.clip(times, lowest, lowest + width - 1) for times in (begin, finish))
        moved = line * width - lowest
        parts = clipped(start + shift, end + shift, from_ns + moved, to_ns + moved)
        back = moved[parts.window]
        return pl.DataFrame(
            {
                "query": query[parts.window],
                "start_ns": parts.start - back,
                "end_ns": parts.end - back,
            }
        ).hstack(self.runs.select("cause", "call")[parts.interval])
