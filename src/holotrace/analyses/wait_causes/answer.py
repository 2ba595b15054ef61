"""Causes of waiting: the answer in one sentence."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.wait_causes.compute import WaitCauses
from holotrace.drawing.names import short_name
from holotrace.enrich.job_graph.causes.roles import cause_text, largest_causes
from holotrace.units import duration_text, percent_text


def answer(result: WaitCauses) -> str:
    """Name the rank that causes the most waiting, and its largest cause."""
    total_ns = int(result.per_cause["cost_ns"].sum())
    known = result.per_rank.filter(result.per_rank["cost_ns"] > 0).sort("cost_ns", "rank", descending=[True, False])
    if known.is_empty():
        return f"Ranks wait {duration_text(total_ns)} for each other, and the causes are unknown."
    worst = known.row(0, named=True)
    share = percent_text(worst["cost_fraction"])
    main = largest_causes(result.per_cause).row(by_predicate=pl.col("cause_rank") == worst["rank"], named=True)
    part = percent_text(main["cost_ns"] / worst["cost_ns"])
    over = f"Rank {worst['rank']} causes {share} of all waiting ({duration_text(total_ns)} over all ranks)"
    return f"{over}; {part} of this waiting is due to {_cause(main)}."


def _cause(row: dict[str, Any]) -> str:
    """Name a cause; kernels appear by their short names."""
    return cause_text({**row, "name": row["name"] and short_name(row["name"])})
