"""Computes the size of a collective's message, and how much of it crosses each rank's link, as defined by nccl-tests.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import polars as pl

_FAMILY = pl.col("family")
_RANKS = pl.col("group_size")


def message_bytes() -> pl.Expr:
    """Return the size S of a message: the size of the complete array that a collective handles, not of one rank's part.

    With n ranks, if `in` and `out` are the bytes of a rank's input and output:

        all_reduce, reduce, broadcast     S = in
        all_gather                        S = out, else in * n
        reduce_scatter                    S = in, else out * n
        gather                            S = in * n
        scatter                           S = out * n
        all_to_all                        S = in; with uneven splits, S differs between ranks
        send, recv, send_recv             S = in on the sender and out on the receiver
        barrier                           null: a barrier moves no data

    The expression reads `family`, `in_bytes`, `out_bytes` and `group_size`; it is null if sizes were not recorded.
    """
    given, received = pl.col("in_bytes"), pl.col("out_bytes")
    return (
        pl.when(_FAMILY == "all_gather")
        .then(pl.coalesce(received, given * _RANKS))
        .when(_FAMILY == "reduce_scatter")
        .then(pl.coalesce(given, received * _RANKS))
        .when(_FAMILY == "gather")
        .then(given * _RANKS)
        .when(_FAMILY == "scatter")
        .then(received * _RANKS)
        .when(_FAMILY == "recv")
        .then(pl.coalesce(received, given))
        .when(_FAMILY == "barrier")
        .then(None)
        .otherwise(pl.coalesce(given, received))
        .alias("message_bytes")
    )


def bus_factor() -> pl.Expr:
    """Return the factor in `bus bandwidth = factor * S / t`; null for an unknown collective or group size.

        all_reduce                                                   2 (n - 1) / n
        all_gather, reduce_scatter, all_to_all, gather, scatter        (n - 1) / n
        broadcast, reduce, send, recv, send_recv                                 1

    The factors are right for rings and trees. If a switch reduces the data (NVLink SHARP), less data moves, so the
    computed bandwidth may exceed the bandwidth of the link. The expression reads `family` and `group_size`.
    """
    others = (_RANKS - 1) / _RANKS
    return (
        pl.when(_FAMILY == "all_reduce")
        .then(2 * others)
        .when(_FAMILY.is_in(["all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"]))
        .then(others)
        .when(_FAMILY.is_in(["broadcast", "reduce", "send", "recv", "send_recv"]))
        .then(1.0)
        .alias("bus_factor")
    )
