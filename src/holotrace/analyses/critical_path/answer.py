"""Critical path: the answer in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from holotrace.analyses.critical_path.across_ranks import HOST_GAP_NAME, JobCriticalPath
from holotrace.analyses.critical_path.compute import CriticalPath
from holotrace.drawing.names import short_name
from holotrace.enrich.critical_path.path_window import WHOLE_RECORDING
from holotrace.units import duration_text, percent_text

_PARTS = {
    "cpu_operator": "operators on the host",
    "host_gap": "gaps between operators on the host",
    "kernel_kernel_delay": "delays between kernels",
    "launch_delay": "launch delays",
    "synchronisation_wait": "synchronisation waits",
    "unknown": "time whose cause was not recorded",
}
_DELAYS = {
    "launch_delay": "launch delay of ",
    "kernel_kernel_delay": "delay before ",
    "synchronisation_wait": "synchronisation wait in ",
}


def answer(result: CriticalPath | JobCriticalPath) -> str:
    """Name the longest window, and the class that takes most of its critical path."""
    if isinstance(result, JobCriticalPath):
        return _of_job(result)
    longest = result.per_rank.sort("duration_ns", descending=True).row(0, named=True)
    parts = result.per_class.filter(rank=longest["rank"]).sort("total_ns", descending=True)
    most = parts.row(0, named=True)
    part = _PARTS.get(most["path_class"], most["path_class"].replace("_", " "))
    return (
        f"{percent_text(most['fraction'])} of the critical path of {_in_words(longest['window'])} on rank {longest['rank']} "
        f"({duration_text(longest['duration_ns'])}) is {part}."
    )


def _in_words(window: str) -> str:
    return f"the {window}" if window == WHOLE_RECORDING else window


def _of_job(result: JobCriticalPath) -> str:
    step = result.steps.row(0, named=True)
    rank = result.per_rank.sort("total_ns", "rank", descending=[True, False]).row(0, named=True)
    names = _over_modules(result.per_name.filter(rank=rank["rank"]))
    if names.is_empty():
        return f"No rank recorded an event with a nonzero duration in {_in_words(step['window'])}."
    most = names.row(0, named=True)
    path = f"({step['window']}, {duration_text(step['duration_ns'])})"
    largest = f"{_binding(most)}, {duration_text(most['total_ns'])} in {_segments(most['segment_count'])}"
    if len(result.per_rank) == 1:
        return f"The largest part of the critical path {path} is {largest}."
    return f"{percent_text(rank['fraction'])} of the job's critical path {path} is on rank {rank['rank']}, where the largest part is {largest}."


def _over_modules(per_name: pl.DataFrame) -> pl.DataFrame:
    """Return the time of each class and name, summed over all modules, the longest time first."""
    sums = per_name.group_by("path_class", "name").agg(
        pl.col("total_ns", "segment_count").sum(), pl.col("module").unique().sort().alias("modules")
    )
    return sums.sort("total_ns", "path_class", "name", descending=[True, False, False])


def _binding(row: Mapping[str, Any]) -> str:
    """Name a segment of the path; a delay is named after the delayed work."""
    if row["path_class"] == "unknown":
        return "time whose cause was not recorded"
    if row["name"] == HOST_GAP_NAME:
        return _PARTS["host_gap"]
    name = row["name"] if row["path_class"] == "cpu_operator" else short_name(row["name"])
    return f"{_DELAYS.get(row['path_class'], '')}{name}{_inside(row['modules'])}"


def _inside(modules: list[str | None]) -> str:
    """Return the name of the only module, or the number of modules; an empty text if any module is unknown."""
    if None in modules:
        return ""
    return f" in {modules[0]}" if len(modules) == 1 else f" in {len(modules)} modules"


def _segments(count: int) -> str:
    return f"{count:,} segment{'s'[: count != 1]}"
