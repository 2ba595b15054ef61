"""Memory of operators: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.operator_memory.compute import OperatorMemory, operator_memory, summed_operator_memory
from holotrace.question import Analysis
from holotrace.tables import View, known_columns


def memory_of_operators(result: OperatorMemory) -> pl.DataFrame:
    """Return what each operator allocates and frees on each type of device, summed over the ranks."""
    own = ("self_allocated_bytes", "self_unreleased_bytes", "self_increase_bytes", "self_allocation_count")
    total = ("total_allocated_bytes", "total_increase_bytes")
    return known_columns(
        summed_operator_memory(result.per_operator).select("operator", "device_type", *own, *total, "call_count")
    )


def memory_blocks(result: OperatorMemory) -> pl.DataFrame:
    """Return the life of each block of memory, in time since the first one."""
    first_ns = pl.min_horizontal(pl.col("allocated_ns").min(), pl.col("released_ns").min())
    moments = [(pl.col(f"{name}_ns") - first_ns).alias(f"{name}_after_ns") for name in ("allocated", "released")]
    devices = ("rank", "device_type", "device")
    return result.blocks.select("operator", "caller", "block_bytes", *moments, "lifetime_ns", *devices)


ENTRY = Analysis(
    name="operator_memory",
    title="Memory of operators",
    question="Which operators allocate memory, and what stays?",
    compute=operator_memory,
    section="Devices",
    views=(
        View("Operators, over all ranks and devices of a type", memory_of_operators, "self_allocated_bytes"),
        View("Blocks of memory", memory_blocks, "block_bytes", is_detail=True),
    ),
    definitions=(
        ("allocated, itself", "by allocations whose innermost operator it is; with inner: in operators inside it too"),
        ("not released", "the part of what it allocated itself that is not freed until the end of the recording"),
        ("net, itself", "allocated less freed while it ran, whoever had allocated what it freed"),
        ("block", "from an allocation to the next free of its address on its device"),
        ("call_count", "all of them, whether or not they allocate"),
    ),
)
