"""Frequent kernel sequences: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.kernel_sequences.compute import SEPARATOR as PATTERN_SEPARATOR
from holotrace.analyses.kernel_sequences.compute import KernelSequences, sequences_over_ranks
from holotrace.enrich.kernels.kernel_sequences import SEQUENCE_SEPARATOR
from holotrace.questions.tables import SEQUENCE_COLUMN, View


def frequent_sequences(result: KernelSequences) -> pl.DataFrame:
    """Return the operator, the kernels and the counts of each sequence over all ranks, the most frequent sequence first."""
    table = sequences_over_ranks(result)
    kernels = table.get_column("pattern").map_elements(_kernels_of_a_pattern, pl.String).alias(SEQUENCE_COLUMN)
    return table.select("operator", kernels, "call_count", "kernel_count_per_call", "kernel_ns", "operator_ns")


def _kernels_of_a_pattern(pattern: str) -> str:
    _, _, kernels = pattern.partition(PATTERN_SEPARATOR)
    return kernels.replace(PATTERN_SEPARATOR, SEQUENCE_SEPARATOR)


VIEWS = (View("Sequences of kernels, over all ranks", frequent_sequences, "call_count"),)
