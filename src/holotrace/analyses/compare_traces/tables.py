"""Compare traces: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compare_traces.compute import TraceComparison
from holotrace.questions.tables import View


def compared_by_name(result: TraceComparison) -> pl.DataFrame:
    """Return how the time and the count of each event name changed, the largest time difference first."""
    columns = (
        "kind",
        "change",
        "difference_ns",
        "control_total_ns",
        "test_total_ns",
        "control_event_count",
        "test_event_count",
    )
    return result.per_name.select(pl.col("name").alias("event"), *columns, "control_mean_ns", "test_mean_ns")


def compared_by_size(result: TraceComparison) -> pl.DataFrame:
    """Return the size of each trace."""
    return result.sides


VIEWS = (
    View("The two traces", compared_by_size, "event_count"),
    View("Events by name, summed over all ranks; means are per call", compared_by_name, "difference_ns"),
)
