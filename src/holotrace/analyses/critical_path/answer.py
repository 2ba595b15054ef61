"""Critical path in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.critical_path.across_ranks import JobCriticalPath
from holotrace.analyses.critical_path.compute import CriticalPath
from holotrace.drawing.names import short_name
from holotrace.units import duration_text, percent_text

_PARTS = {
    "cpu_operator": "operators on the host",
    "host_gap": "gaps between operators on the host",
}


def answer(result: CriticalPath | JobCriticalPath) -> str:
    """Name the longest window and what takes most of its critical path."""
    if isinstance(result, JobCriticalPath):
        return _of_job(result)
    longest = result.per_rank.sort("duration_ns", descending=True).row(0, named=True)
    parts = result.per_class.filter(rank=longest["rank"]).sort("total_ns", descending=True)
    most = parts.row(0, named=True)
    part = _PARTS.get(most["path_class"], most["path_class"].replace("_", " "))
    return (
        f"{longest['window']} of rank {longest['rank']} takes {duration_text(longest['duration_ns'])}; "
        f"{percent_text(most['fraction'])} of its critical path is {part}."
    )


def _of_job(result: JobCriticalPath) -> str:
    step = result.steps.row(0, named=True)
    rank = result.per_rank.sort("total_ns", descending=True).row(0, named=True)
    share = percent_text(rank["fraction"])
    length = duration_text(step["duration_ns"])
    start = f"{step['window']} of the job takes {length}; {share} of its critical path is on rank {rank['rank']}"
    names = result.per_name.filter(rank=rank["rank"]).group_by("name").agg(pl.col("total_ns").sum())
    if names.is_empty():
        return f"{start}."
    most = names.sort("total_ns", "name", descending=[True, False]).row(0, named=True)
    return f"{start}, most of it in {short_name(most['name'])} ({duration_text(most['total_ns'])})."
