"""Join the kernels of each call into a sequence that can be compared and counted."""

from __future__ import annotations

import polars as pl

from holotrace.store.trace import RankTrace

SEQUENCE_SEPARATOR = " -> "
"""Separates the kernel names in displayed sequences."""

_BETWEEN_IDS = ","


def sequences(kernels: pl.DataFrame, by: str) -> pl.DataFrame:
    """Join the kernels of each owner (for example, of each call) into one sequence, in the order of the rows.

    Args:
        kernels: one row for each kernel; columns: name (string id), kernel_ns, and the column that `by` names.
        by: name of the column that identifies the owner of each kernel.

    Returns:
        One row for each owner, in the order of the owners' first kernels; the column that `by` names, and:

        sequence      str    string ids, joined by commas
        kernel_count  int64
        kernel_ns     int64  summed duration
    """
    return kernels.group_by(by, maintain_order=True).agg(
        pl.col("name").cast(pl.String).str.join(_BETWEEN_IDS).alias("sequence"),
        pl.len().cast(pl.Int64).alias("kernel_count"),
        pl.col("kernel_ns").sum(),
    )


def sequence_texts(rank_trace: RankTrace, sequences: pl.Series, separator: str) -> pl.Series:
    """Convert sequences of string ids to sequences of names, joined by a separator."""
    ids = sequences.str.split(_BETWEEN_IDS)
    names = rank_trace.texts(ids.explode().cast(pl.UInt32))
    place = pl.Series("place", range(len(sequences)), dtype=pl.UInt32)
    owner = place.repeat_by(ids.list.len()).explode() if len(sequences) else place
    joined = pl.DataFrame({"place": owner, "name": names}).group_by("place", maintain_order=True).agg("name")
    return joined["name"].list.join(separator).alias(sequences.name)
