"""Converts times of ranks to the clock of the reference host.

`holotrace.enrich.across_ranks.clocks.clocks` estimates one line per host, or several if the host's clock jumped. With
these lines, this module converts any times of a rank, not only the times of matched calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.units import duration_text

Int64Array = npt.NDArray[np.int64]

_PARTS = 1e9


class ClockLine(NamedTuple):
    """The correction of a clock that runs at a constant rate: `offset_ns` at `at_ns`, plus `drift_ppb` ns per second.

    first_ns, last_ns  first and last time on this clock for which the correction was fitted; None: no limit
    """

    at_ns: int
    offset_ns: int
    drift_ppb: float
    half_width_ns: int
    drift_half_width_ppb: float | None = None
    first_ns: int | None = None
    last_ns: int | None = None


@dataclass(frozen=True)
class RankClock:
    """The clock of a rank: how to convert its times to times on the reference clock.

    lines  in time order; empty if the clock is unknown (`corrected` then returns times unchanged)
    """

    host: str
    lines: tuple[ClockLine, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether times can be corrected."""
        return bool(self.lines)

    @property
    def half_width_ns(self) -> int | None:
        """The largest `half_width_ns` in `lines`; None if the clock is unknown."""
        return max((line.half_width_ns for line in self.lines), default=None)

    def corrected(self, time_ns: int) -> int:
        """Return a time on the reference clock, in whole nanoseconds.

        If the clock does not jump, the correction keeps the order of times, and it changes the distance between two
        times only by the drift.
        """
        if not self.lines:
            return time_ns
        line = self.lines[0] if len(self.lines) == 1 else self._line_at(time_ns)
        return time_ns + line.offset_ns + round((time_ns - line.at_ns) * line.drift_ppb / _PARTS)

    def all_corrected(self, times_ns: Int64Array) -> Int64Array:
        """Convert an array of times to the reference clock, with the same results as `corrected`."""
        corrected = times_ns.copy()
        numbers = np.searchsorted(np.array(self._last_times()[:-1], np.int64), times_ns)
        for number, line in enumerate(self.lines):
            of_line = times_ns[numbers == number]
            drift = np.rint((of_line - line.at_ns) * line.drift_ppb / _PARTS).astype(np.int64)
            corrected[numbers == number] = of_line + line.offset_ns + drift
        return corrected

    def native_lines(self) -> list[tuple[int, int, float, int]]:
        """Return the lines in the native module's format: at_ns, offset_ns, drift_ppb, last_ns."""
        last_times = zip(self.lines, self._last_times(), strict=True)
        return [(line.at_ns, line.offset_ns, line.drift_ppb, last_ns) for line, last_ns in last_times]

    def _line_at(self, time_ns: int) -> ClockLine:
        """Return the first line whose time range ends at or after this time; if there is none, return the last line."""
        rest = zip(self.lines, self._last_times(), strict=True)
        return next((line for line, last_ns in rest if time_ns <= last_ns), self.lines[-1])

    def _last_times(self) -> list[int]:
        return [np.iinfo(np.int64).max if line.last_ns is None else line.last_ns for line in self.lines]


def rank_clocks(per_host: pl.DataFrame, hosts: Mapping[int, str]) -> dict[int, RankClock]:
    """Return the clock of each rank.

    Args:
        per_host: `holotrace.enrich.across_ranks.clocks.clocks.Clocks.per_host`.
        hosts: {rank: host}
    """
    known = per_host.drop_nulls(["offset_ns", "half_width_ns"]).sort("valid_from_ns", nulls_last=False)
    lines: dict[tuple[str, int | None], list[ClockLine]] = {}
    for row in known.iter_rows(named=True):
        lines.setdefault((row["host"], row["rank"]), []).append(_line(row))
    return {
        rank: RankClock(host, tuple(lines.get((host, rank), lines.get((host, None), ()))))
        for rank, host in hosts.items()
    }


def correction_text(clock: RankClock) -> str:
    """Describe the correction of a rank's times briefly.

    >>> correction_text(RankClock("node-1", (ClockLine(0, -97_310, -2_000.0, 12_000),)))
    'offset -97.3 µs ± 12 µs, drift -2.0 ppm'
    """
    if not clock.lines:
        return "clock unknown, times as recorded"
    return "; ".join(map(_line_text, clock.lines))


def _line_text(line: ClockLine) -> str:
    if not line.half_width_ns and not line.offset_ns:
        return "reference"
    sign = "-" if line.offset_ns < 0 else "+"
    offset = f"{sign}{duration_text(abs(line.offset_ns))} ± {duration_text(line.half_width_ns)}"
    return f"offset {offset}, drift {line.drift_ppb / 1_000:+.1f} ppm"


def _line(row: Mapping[str, object]) -> ClockLine:
    columns = {
        "at_ns": "offset_at_ns",
        "offset_ns": "offset_ns",
        "drift_ppb": "drift_ppb",
        "half_width_ns": "half_width_ns",
        "drift_half_width_ppb": "drift_half_width_ppb",
        "first_ns": "valid_from_ns",
        "last_ns": "valid_to_ns",
    }
    values = {name: row[column] for name, column in columns.items()}
    needless = {"at_ns": values["at_ns"] or 0, "drift_ppb": values["drift_ppb"] or 0.0}  # null without compared calls
    return ClockLine(**{**values, **needless})  # type: ignore[arg-type]
