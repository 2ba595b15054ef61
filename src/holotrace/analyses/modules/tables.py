"""Modules: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.modules.compute import Modules, summed_modules
from holotrace.questions.tables import View, known_columns


def times_of_modules(result: Modules) -> pl.DataFrame:
    """Return the time of each module, summed over the ranks; enclosing modules come first."""
    device = ("device_total_ns", "device_self_ns", "backward_device_total_ns")
    host = ("host_total_ns", "host_self_ns", "backward_host_total_ns")
    placed = pl.lit("· ").repeat_by("depth").list.join("") + pl.col("module")
    return known_columns(
        summed_modules(result.per_module).select(
            placed.alias("module"), "call_count", "operator_call_count", *device, *host
        )
    )


VIEWS = (View("Modules by their position in the model, over all ranks", times_of_modules, "host_total_ns"),)
