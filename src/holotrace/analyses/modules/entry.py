"""Modules: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.modules.compute import Modules, modules, summed_modules
from holotrace.question import Analysis
from holotrace.tables import View, known_columns


def times_of_modules(result: Modules) -> pl.DataFrame:
    """Return the time of each module, summed over the ranks, each behind the module around it."""
    device = ("device_total_ns", "device_self_ns", "backward_device_total_ns")
    host = ("host_total_ns", "host_self_ns", "backward_host_total_ns")
    placed = pl.lit("· ").repeat_by("depth").list.join("") + pl.col("module")
    return known_columns(
        summed_modules(result.per_module).select(
            placed.alias("module"), "call_count", "operator_call_count", *device, *host
        )
    )


ENTRY = Analysis(
    name="modules",
    title="Modules",
    question="Which modules take the time?",
    compute=modules,
    section="Work",
    views=(View("Modules by their place in the model, over all ranks", times_of_modules, "host_total_ns"),),
    definitions=(
        ("module", "a dot for each module around it; what is called several times in one place is one row"),
        ("operators", "called in the module itself: not within another operator or module"),
        ("device, itself", "launched in the module, not in a module inside it; with inner: in those as well"),
        ("host, itself", "outside operators, annotations and modules inside it, and outside runtime calls: Python"),
        ("backward", "what autograd ran for the operators of the module's forward calls, by the profiler's links"),
    ),
)
