"""Measures who arrived late in a collective, who waited, and how long the transfer itself took."""

from __future__ import annotations

import polars as pl

ONE_CLOCK = "one clock"
ALIGNED_CLOCKS = "aligned clocks"
SHORTEST_DURATION = "shortest duration"

LARGEST_CLOCK_ERROR = 0.1
"""Times from different hosts are compared only if the clock error is at most this fraction of the transfer time."""

_DURATION = pl.col("end_ns") - pl.col("start_ns")
_START, _END = pl.col("aligned_start_ns"), pl.col("aligned_end_ns")


def arrivals(calls: pl.DataFrame) -> pl.DataFrame:
    """Add how long each call waited, and how long the transfer took once all ranks had arrived.

    A collective can transfer its last byte only after its last rank has arrived. If the starts and ends of all ranks
    are known on one clock:

        lateness  the rank's start - the first start
        wait      the last start - the rank's start, at most the rank's duration
        transfer  the last end - the last start

    Only durations are used if the clocks are not known well enough, if a rank is missing, or if a rank ends before
    another has arrived. This works because all ranks end at about the same time. If d is the rank's duration:

        wait      d - the shortest d
        transfer  the shortest d, an upper bound: it may include waiting for a rank that was not recorded

    Args:
        calls: matched calls of all ranks: instance, group_size, start_ns and end_ns (both on the rank's clock), and the
            columns that `Clocks.aligned` adds.

    Returns:
        The rows of `calls`, in the same order, with these additional columns:

        lateness_ns             int64  null if no other rank recorded the collective, if the clocks are unknown, or if
                                       the lateness is less than lateness_half_width_ns
        lateness_half_width_ns  int64  0 if this rank and the first rank to arrive share a clock
        wait_ns                 int64  null if no other rank recorded the collective
        transfer_ns             int64
        transfer_basis          str    one clock, aligned clocks, or shortest duration
        is_last                 bool   whether this rank waited least; false for all ranks if several waited least
    """
    known = calls.join(_instances(calls), on="instance", how="left", maintain_order="left").with_columns(
        _basis().alias("transfer_basis")
    )
    timed = known.with_columns(_transfer().alias("transfer_ns"), _wait().alias("wait_ns"), _half_width())
    return timed.with_columns(_lateness(), _is_last()).drop(_OF_INSTANCE)


def waits_by_duration(calls: pl.DataFrame) -> pl.DataFrame:
    """Add `wait_ns` and `is_last` as `arrivals` does, but use only durations, even if the clocks are known."""
    waited = _DURATION - _DURATION.min().over("instance")
    return calls.with_columns(pl.when(pl.col("instance").is_not_null()).then(waited).alias("wait_ns")).with_columns(
        _is_last()
    )


_OF_INSTANCE = (
    "present_count",
    "clock_count",
    "first_clock",
    "first_half_width",
    "first_start",
    "last_start",
    "first_end",
    "last_end",
    "shortest",
    "clock_error",
)


def _instances(calls: pl.DataFrame) -> pl.DataFrame:
    """Return one row per instance: its first and last start and end, and how precisely the clocks are known."""
    first = _START.arg_min()
    return (
        calls.drop_nulls("instance")
        .group_by("instance")
        .agg(
            pl.len().alias("present_count"),
            pl.col("clock").n_unique().alias("clock_count"),
            pl.col("clock").get(first).alias("first_clock"),
            pl.col("half_width_ns").get(first).alias("first_half_width"),
            _START.min().alias("first_start"),
            _START.max().alias("last_start"),
            _END.min().alias("first_end"),
            _END.max().alias("last_end"),
            _DURATION.min().alias("shortest"),
            pl.when(pl.col("half_width_ns").null_count() == 0)
            .then(2 * pl.col("half_width_ns").max())
            .alias("clock_error"),
        )
    )


def _is_last() -> pl.Expr:
    wait = pl.col("wait_ns")
    waits_least = (wait == wait.min()) & (wait.max() > 0)
    return (waits_least & (wait.rank("max") == 1)).over("instance").fill_null(value=False).alias("is_last")


def _basis() -> pl.Expr:
    is_complete = pl.col("present_count") >= pl.col("group_size").fill_null(2)
    overlaps = pl.col("last_start") <= pl.col("first_end")
    is_precise = pl.col("clock_error") <= LARGEST_CLOCK_ERROR * (pl.col("last_end") - pl.col("last_start"))
    return (
        pl.when(is_complete & overlaps & (pl.col("present_count") > 1) & (pl.col("clock_count") == 1))
        .then(pl.lit(ONE_CLOCK))
        .when(is_complete & overlaps & (pl.col("present_count") > 1) & is_precise)
        .then(pl.lit(ALIGNED_CLOCKS))
        .otherwise(pl.lit(SHORTEST_DURATION))
    )


_BY_CLOCK = pl.col("transfer_basis") != SHORTEST_DURATION


def _transfer() -> pl.Expr:
    by_duration = pl.coalesce("shortest", _DURATION)
    return pl.when(_BY_CLOCK).then(pl.col("last_end") - pl.col("last_start")).otherwise(by_duration)


def _wait() -> pl.Expr:
    by_clock = pl.min_horizontal(pl.col("last_start") - _START, _DURATION)
    waited = pl.when(_BY_CLOCK).then(by_clock).otherwise(_DURATION - pl.col("shortest"))
    return pl.when(pl.col("present_count") > 1).then(waited)


def _half_width() -> pl.Expr:
    has_same_clock = pl.col("clock") == pl.col("first_clock")
    apart = pl.col("half_width_ns") + pl.col("first_half_width")
    return pl.when(has_same_clock).then(0).otherwise(apart).alias("lateness_half_width_ns")


def _lateness() -> pl.Expr:
    lateness = _START - pl.col("first_start")
    is_resolved = (pl.col("present_count") > 1) & (lateness >= pl.col("lateness_half_width_ns"))
    return pl.when(is_resolved).then(lateness).alias("lateness_ns")
