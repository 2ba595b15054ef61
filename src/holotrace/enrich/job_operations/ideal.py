"""Compute how long operations would take if all ranks, stages, microbatches and steps took equally long."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job_operations.table import is_communication

_WITHIN_RANK = ("step", "rank")
_OPERATION = (*_WITHIN_RANK, "kind", "sequence")
_PART = (*_OPERATION, "place")
_TRANSFER = ("kind", "message_bytes")


def ideal_ns(operations: pl.DataFrame) -> pl.Series:
    """Return the ideal time of each operation.

        computation    the mean over all operations of its kind
        communication  the median over all operations of its kind and message size (if possible, only over
                       communications whose ranks are all in the table)

    Communication that begins during an operation divides the operation into parts. If all operations of a kind have
    equally many parts, the ideal time of the i-th part is the mean over all i-th parts. Otherwise, the mean time of an
    operation of this kind is divided among its parts in proportion to their measured times.

    Args:
        operations: the result of `operations_table`, with the row number (`row`), `work_ns` (the time without waiting)
            and `is_alone` (see `Dependencies`).
    """
    placed = operations.join(_places(operations), on="row", how="left", maintain_order="left")
    known = placed.with_columns(
        (pl.col("place").n_unique().over(_OPERATION)).alias("part_count"),
        pl.col("work_ns").sum().over(_OPERATION).alias("operation_ns"),
        pl.col("work_ns").sum().over(_PART).alias("part_ns"),
        pl.len().over(_OPERATION).alias("operation_rows"),
        pl.len().over(_PART).alias("part_rows"),
        pl.col("work_ns").filter(~pl.col("is_alone")).median().over(_TRANSFER).alias("matched_median"),
        pl.col("work_ns").median().over(_TRANSFER).alias("median"),
    )
    means = known.join(_mean_of(known, _OPERATION, ["kind"], "operation_mean"), on="kind", how="left").join(
        _mean_of(known, _PART, ["kind", "place"], "part_mean"), on=["kind", "place"], how="left"
    )
    is_divided_alike = pl.col("part_count").n_unique().over("kind") == 1
    by_part, by_operation = (
        pl.col(f"{level}_mean")
        * pl.when(pl.col(f"{level}_ns") > 0)
        .then(pl.col("work_ns") / pl.col(f"{level}_ns"))
        .otherwise(1 / pl.col(f"{level}_rows"))
        for level in ("part", "operation")
    )
    transfer = pl.coalesce("matched_median", "median")
    ideal = pl.when(is_communication()).then(transfer).when(is_divided_alike).then(by_part).otherwise(by_operation)
    return means.sort("row").select(ideal.round().cast(pl.Int64).alias("ideal_ns"))["ideal_ns"]


def _places(operations: pl.DataFrame) -> pl.DataFrame:
    """Return the part of its operation to which each computation row belongs.

    The column `place` is the number of the part, counted from 0. It equals the number of communications that began on
    the rank between the start of the operation and the start of the row.
    """
    began = operations.filter(is_communication()).sort("start_ns")
    counted = began.select(
        *_WITHIN_RANK, "start_ns", pl.int_range(1, pl.len() + 1).over(_WITHIN_RANK).cast(pl.Int64).alias("count")
    )
    rows = operations.filter(~is_communication()).sort("start_ns")
    with_counts = rows.join_asof(counted, on="start_ns", by=_WITHIN_RANK, check_sortedness=False)
    count = pl.col("count").fill_null(0)
    return with_counts.select("row", (count - count.min().over(_OPERATION)).alias("place"))


def _mean_of(known: pl.DataFrame, level: tuple[str, ...], keys: list[str], name: str) -> pl.DataFrame:
    sums = known.group_by(level).agg(pl.col("work_ns").sum())
    return sums.group_by(keys).agg(pl.col("work_ns").mean().alias(name))
