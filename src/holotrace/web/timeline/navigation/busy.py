"""The busy times of a rank over its whole recording, for the map above the timeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from holotrace.algorithms.intervals import covered_before, union
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.web.timeline.index import TimelineIndex

PARTS = 512
"""Number of equal parts into which the recording is divided."""


def busy_answer(index: TimelineIndex) -> dict[str, Any]:
    """Return, for each part of the recording, the percentage of its time in which device work runs.

    If the recording has no device work, host operators are measured instead.

    Returns:
        of       what was measured: "device" or "host"
        percent  the percentages of the `PARTS` parts, as integers
    """
    is_work = np.isin(index.kind, [int(kind) for kind in DEVICE_WORK_KINDS])
    counted = is_work if is_work.any() else index.kind == int(EventKind.CPU_OP)
    edges = np.linspace(0, max(index.length_ns, PARTS), PARTS + 1).astype(np.int64)
    covered = covered_before(union(index.events.start[counted], index.events.end[counted]), edges)
    percent = np.rint(100 * np.diff(covered) / np.diff(edges)).astype(np.int64)
    return {"of": "device" if is_work.any() else "host", "percent": percent.tolist()}
