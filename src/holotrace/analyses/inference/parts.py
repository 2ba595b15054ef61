"""The parts of a step: what the devices do at each time, or what they wait for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, covered_before, gap_begins, union

PARTS = {
    "compute_bound_ns": "compute",
    "memory_bound_ns": "memory",
    "unknown_bound_ns": None,
    "copying_ns": "copy",
    "exposed_ns": "communication",
    "unknown_idle_ns": None,
    "launch_idle_ns": "launch",
    "host_idle_ns": "host",
}
"""The parts of a step in order of priority, and for each part the bottleneck to report if it is the largest.

The last part is all time that no other part covers.
"""

_NOTHING: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


def parts_of_steps(
    layers: Mapping[str, Intervals], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> pl.DataFrame:
    """Return the `PARTS` of each step; time counts only toward the first part that covers it.

    Args:
        layers: the intervals of each part except the last, over all devices and streams.
        starts: when each step starts.
        ends: when each step ends.
    """
    taken, before, times = _NOTHING, np.zeros(len(starts), np.int64), {}
    *covering, rest = PARTS
    for part in covering:
        taken = union(*concatenated([taken, layers.get(part, _NOTHING)]))
        covered = covered_before(taken, ends) - covered_before(taken, starts)
        times[part], before = covered - before, covered
    return pl.DataFrame({**times, rest: ends - starts - before})


def waits_for_launches(work: pl.DataFrame, unknown: Intervals) -> dict[str, Intervals]:
    """Return the intervals from each launch to the start of its work, and those whose cause of idle time is unknown.

    The cause is unknown if the launch of the next work was not recorded, or if unrecorded work may be running.

    Args:
        work: start_ns, end_ns and launch_start_ns (null if unknown) of all work of the rank, sorted by start.
        unknown: intervals in which unrecorded work may be running.
    """
    starts, ends = (work[name].to_numpy() for name in ("start_ns", "end_ns"))
    is_known = work["launch_start_ns"].is_not_null().to_numpy()
    launched = work["launch_start_ns"].fill_null(0).to_numpy()
    begins = gap_begins(starts, ends, [0]) if len(starts) else starts
    return {
        "launch_idle_ns": (launched[is_known], starts[is_known]),
        "unknown_idle_ns": concatenated([unknown, (begins[~is_known], starts[~is_known])]),
    }


def bounds(steps: pl.DataFrame) -> pl.Series:
    """Return what bounds each step: the bound of its largest part, or `unknown` if another part may be larger.

    The time without a known bound may belong to any part. If this time plus the second largest part exceeds the
    largest part, the bound of the step is `unknown`. Steps of length 0 have no bound.
    """
    meaning = {bound: part for part, bound in PARTS.items() if bound is not None}
    times = steps.select(meaning.values()).to_numpy()
    unknown = (
        steps.select(pl.sum_horizontal(part for part, bound in PARTS.items() if bound is None)).to_series().to_numpy()
    )
    if not len(times):
        return pl.Series("bound", [], pl.String)
    ordered = np.sort(times, axis=1)
    is_certain = ordered[:, -1] >= ordered[:, -2] + unknown
    names = np.array(list(meaning))[times.argmax(axis=1)]
    length = ordered.sum(axis=1) + unknown
    chosen = np.where(is_certain, names, "unknown").tolist()
    return pl.Series("bound", [name if time else None for name, time in zip(chosen, length, strict=True)], pl.String)
