"""Compute how long the steps of a job would take if some operations took their ideal time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_operations.dependencies import Dependencies
from holotrace.enrich.job_operations.ideal import ideal_ns
from holotrace.enrich.job_operations.replay import Int64Array, Replay, work_ns
from holotrace.enrich.job_operations.table import STEP_START

WORST_WORKERS = 0.03
"""For M_W, this fraction of the workers (the count is rounded up), those with the highest S_w, take ideal times."""


class Scenarios:
    """The step lengths of a job if all, some or no operations take their ideal times instead of their recorded times.

    Communication with ranks that were not recorded takes its ideal time, because its recorded time may include waiting for these
    ranks.

    replayed_ns   length of each step with recorded times, but without launch delays, sorted by step number
    unchanged_ns  the same, but each rank starts each step as late as recorded, and all communication keeps its
                  recorded time
    ideal_ns      length of each step if all operations take their ideal time
    """

    def __init__(self, operations: pl.DataFrame, dependencies: Dependencies) -> None:
        """Replay the job three times: without launch delays, with all recorded times, and with ideal times."""
        recorded = work_ns(operations, dependencies)
        self._replay = Replay(operations, dependencies)
        self._ideal = ideal_ns(operations.with_columns(recorded, dependencies.is_alone)).to_numpy()
        self._work = np.where(dependencies.is_alone, self._ideal, recorded)
        self.replayed_ns = self._replay.step_ns(self._work)
        self.unchanged_ns = self._replay.step_ns(recorded.to_numpy() + _late_starts(operations))
        self.ideal_ns = self._replay.step_ns(self._ideal)

    def only(self, rows: npt.NDArray[np.bool_]) -> Int64Array:
        """Return the length of each step if these operations kept their recorded times, and all others took ideal times."""
        return self._replay.step_ns(np.where(rows, self._work, self._ideal))

    def without(self, rows: npt.NDArray[np.bool_]) -> Int64Array:
        """Return the length of each step if these operations took their ideal time."""
        return self._replay.step_ns(np.where(rows, self._ideal, self._work))

    def slowdown(self, steps: Int64Array) -> float | None:
        """Return the mean length of these steps as a multiple of the mean ideal length; None if the mean ideal length is 0."""
        ideal = self.ideal_ns.mean()
        return float(steps.mean() / ideal) if ideal > 0 else None

    def share(self, rows: npt.NDArray[np.bool_]) -> float | None:
        """Return the share of the lost time that vanishes if these operations take their ideal time; None if no time is lost."""
        replayed, ideal = self.replayed_ns.mean(), self.ideal_ns.mean()
        lost = replayed - ideal
        return float((replayed - self.without(rows).mean()) / lost) if lost > 0 else None

    def by_part(self, parts: pl.Series) -> dict[object, Int64Array]:
        """Return, for each value in `parts`, the step lengths if only rows with this value keep recorded times."""
        values: Iterable[object] = parts.drop_nulls().unique().sort().to_list()
        return {value: self.only(parts.eq_missing(value).to_numpy()) for value in values}


def _late_starts(operations: pl.DataFrame) -> Int64Array:
    late = pl.when(pl.col("kind") == STEP_START).then("duration_ns").otherwise(0)
    return operations.select(late.alias("late_ns"))["late_ns"].to_numpy()
