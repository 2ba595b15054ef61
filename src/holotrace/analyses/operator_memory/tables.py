"""Memory of operators: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.operator_memory.compute import OperatorMemory, summed_operator_memory
from holotrace.questions.tables import View, known_columns


def memory_of_operators(result: OperatorMemory) -> pl.DataFrame:
    """Return how much each operator allocates and frees on each type of device, summed over the ranks."""
    own = ("self_allocated_bytes", "self_unreleased_bytes", "self_increase_bytes", "self_allocation_count")
    total = ("total_allocated_bytes", "total_increase_bytes")
    return known_columns(
        summed_operator_memory(result.per_operator).select("operator", "device_type", *own, *total, "call_count")
    )


def memory_blocks(result: OperatorMemory) -> pl.DataFrame:
    """Return when each block of memory is allocated and released, relative to the first block."""
    first_ns = pl.min_horizontal(pl.col("allocated_ns").min(), pl.col("released_ns").min())
    moments = [(pl.col(f"{name}_ns") - first_ns).alias(f"{name}_after_ns") for name in ("allocated", "released")]
    devices = ("rank", "device_type", "device")
    return result.blocks.select("operator", "caller", "block_bytes", *moments, "lifetime_ns", *devices)


VIEWS = (
    View("Operators, summed over ranks and over devices of the same type", memory_of_operators, "self_allocated_bytes"),
    View("Blocks of memory", memory_blocks, "block_bytes", is_detail=True),
)
