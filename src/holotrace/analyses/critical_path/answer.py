"""Critical path in one sentence."""

from __future__ import annotations

from holotrace.analyses.critical_path.compute import CriticalPath
from holotrace.units import duration_text, percent_text

_PARTS = {
    "cpu_operator": "operators on the host",
    "host_gap": "gaps between operators on the host",
}


def answer(result: CriticalPath) -> str:
    """Name the longest window and what takes most of its critical path."""
    longest = result.per_rank.sort("duration_ns", descending=True).row(0, named=True)
    parts = result.per_class.filter(rank=longest["rank"]).sort("total_ns", descending=True)
    most = parts.row(0, named=True)
    part = _PARTS.get(most["path_class"], most["path_class"].replace("_", " "))
    return (
        f"{longest['window']} of rank {longest['rank']} takes {duration_text(longest['duration_ns'])}; "
        f"{percent_text(most['fraction'])} of its critical path is {part}."
    )
