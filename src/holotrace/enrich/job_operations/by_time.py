"""Infer from the times of operations which operations wait for which."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job_operations.dependencies import Dependencies
from holotrace.enrich.job_operations.table import is_communication

_WITHIN_RANK = ["step", "rank"]


def by_time(operations: pl.DataFrame) -> Dependencies:
    """Return the dependencies of operations; the table must contain the `instance` of each communication.

        computation    starts after the previous computation on its rank, and after each communication that ended
                       between these two computations
        communication  starts after the last computation that ended before the communication began; if other
                       communications ended between the end of that computation and the start of this communication,
                       it also starts after the last of these

    In a communication, each rank waits until the last rank enters, unless it left before that.

    Args:
        operations: the result of `operations_table`, with the row number (`row`, uint32) and the instance of each
            communication.
    """
    ordered = operations.with_columns((pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")).sort(
        "start_ns", "end_ns"
    )
    computation = ordered.filter(~is_communication())
    calls = ordered.filter(is_communication())
    lane = computation.with_columns(
        pl.col("row").shift(1).over(_WITHIN_RANK).alias("before"),
        pl.col("end_ns").shift(1).over(_WITHIN_RANK).alias("idle_from"),
    )
    after = pl.concat(
        [
            lane.select("row", "before"),
            _computation_after_calls(lane, calls),
            _calls_after_computation(calls, computation),
            _calls_after_calls(calls, computation),
        ]
    )
    instance = _shared(operations)
    is_alone = operations.select(is_communication())["kind"].alias("is_alone") & instance.is_null()
    return Dependencies(after.drop_nulls().unique(), instance, _waits(operations, instance), is_alone)


def _computation_after_calls(lane: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    begins = lane.select(*_WITHIN_RANK, pl.col("start_ns").alias("time"), pl.col("row").alias("next"), "idle_from")
    ended = calls.select(*_WITHIN_RANK, pl.col("end_ns").alias("time"), "row")
    found = ended.sort("time").join_asof(
        begins.sort("time"), on="time", by=_WITHIN_RANK, strategy="forward", check_sortedness=False
    )
    waited = found.filter(pl.col("idle_from").is_null() | (pl.col("time") > pl.col("idle_from")))
    return waited.select(pl.col("next").alias("row"), pl.col("row").alias("before"))


def _calls_after_computation(calls: pl.DataFrame, computation: pl.DataFrame) -> pl.DataFrame:
    ended = computation.select(*_WITHIN_RANK, pl.col("end_ns").alias("time"), pl.col("row").alias("before"))
    return _latest(calls, ended).select("row", "before")


def _calls_after_calls(calls: pl.DataFrame, computation: pl.DataFrame) -> pl.DataFrame:
    """Make a call depend on the last call that ended before it, if no computation ended in between."""
    lane_ended = computation.select(*_WITHIN_RANK, pl.col("end_ns").alias("time"), pl.col("end_ns").alias("computed"))
    computed = _latest(calls, lane_ended).select("row", "computed")
    ended = calls.filter(pl.col("duration_ns") > 0).select(
        *_WITHIN_RANK, pl.col("end_ns").alias("time"), pl.col("row").alias("before"), pl.col("end_ns").alias("ended")
    )
    both = _latest(calls, ended).join(computed, on="row")
    follows = pl.col("computed").is_null() | (pl.col("ended") > pl.col("computed"))
    return both.filter(follows & (pl.col("before") != pl.col("row"))).select("row", "before")


def _latest(calls: pl.DataFrame, ended: pl.DataFrame) -> pl.DataFrame:
    """Join each call with the operation that ended last on its rank before the call began."""
    begins = calls.select(*_WITHIN_RANK, "row", pl.col("start_ns").alias("time")).sort("time")
    return begins.join_asof(ended.sort("time"), on="time", by=_WITHIN_RANK, strategy="backward", check_sortedness=False)


def _shared(operations: pl.DataFrame) -> pl.Series:
    """Return the number of each operation's communication; null if only one rank in the table takes part in it."""
    is_shared = pl.col("instance").is_not_null() & (pl.col("rank").n_unique().over("step", "instance") > 1)
    number = pl.struct("step", "instance").rank("dense").cast(pl.Int64) - 1
    numbered = operations.filter(is_shared).select("row", number.alias("number"))
    return (
        operations.select("row").join(numbered, on="row", how="left", maintain_order="left")["number"].alias("instance")
    )


def _waits(operations: pl.DataFrame, instance: pl.Series) -> pl.Series:
    end = pl.col("start_ns") + pl.col("duration_ns")
    waits = end >= pl.col("start_ns").max().over("instance")
    return operations.with_columns(instance).select((pl.col("instance").is_null() | waits).alias("waits"))["waits"]
