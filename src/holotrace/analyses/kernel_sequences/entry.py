"""Frequent kernel sequences: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.kernel_sequences.compute import SEPARATOR as PATTERN_SEPARATOR
from holotrace.analyses.kernel_sequences.compute import KernelSequences, kernel_sequences, sequences_over_ranks
from holotrace.enrich.kernels.kernel_sequences import SEQUENCE_SEPARATOR
from holotrace.question import Analysis
from holotrace.tables import SEQUENCE_COLUMN, View


def frequent_sequences(result: KernelSequences) -> pl.DataFrame:
    """Return the sequences over all ranks, the most frequent first; a cell of a page shows their first kernels."""
    table = sequences_over_ranks(result)
    kernels = table.get_column("pattern").map_elements(_kernels_of_a_pattern, pl.String).alias(SEQUENCE_COLUMN)
    return table.select("operator", kernels, "call_count", "kernel_count_per_call", "kernel_ns", "operator_ns")


def _kernels_of_a_pattern(pattern: str) -> str:
    _, _, kernels = pattern.partition(PATTERN_SEPARATOR)
    return kernels.replace(PATTERN_SEPARATOR, SEQUENCE_SEPARATOR)


ENTRY = Analysis(
    name="kernel_sequences",
    title="Frequent kernel sequences",
    question="Which sequences of kernels do operators launch again and again?",
    compute=kernel_sequences,
    section="Work",
    views=(View("Sequences of at least 3 kernels, over all ranks", frequent_sequences, "call_count"),),
    definitions=(
        ("sequence", "the kernels, copies and memsets launched during one call of an outermost operator, as started"),
    ),
)
