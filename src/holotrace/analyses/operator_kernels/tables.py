"""Operators and their kernels: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.operator_kernels.compute import OperatorKernels, operators_over_ranks
from holotrace.questions.tables import SEQUENCE_COLUMN, View


def kernels_of_operators(result: OperatorKernels) -> pl.DataFrame:
    """Return the device time that each operator causes, over all ranks, the longest first."""
    columns = ("operator", "module", "kernel_ns", "forward_kernel_ns", "backward_kernel_ns")
    table = operators_over_ranks(result).select(columns)
    return table if table.get_column("module").count() else table.drop("module")


def sequences_of_operators(result: OperatorKernels) -> pl.DataFrame:
    """Return the kernel sequences of each operator on each rank, the most frequent first."""
    table = result.per_sequence
    delays = ("mean_operator_to_launch_ns", "mean_launch_to_kernel_ns")
    return table.select(
        "rank", "operator", pl.col("kernels").alias(SEQUENCE_COLUMN), "call_count", "kernel_ns", *delays
    )


VIEWS = (
    View("Operators with their backward operators, over all ranks", kernels_of_operators, "kernel_ns"),
    View("Kernel sequences of each operator", sequences_of_operators, "call_count", is_detail=True),
)
