"""Hosts and links on which equal collectives take longer than elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from holotrace.algorithms.outliers import stands_out

SLOW = {
    "kind": pl.String,
    "part": pl.String,
    "collective": pl.String,
    "message_bytes": pl.Int64,
    "instance_count": pl.Int64,
    "median_transfer_ns": pl.Float64,
    "peer_transfer_ns": pl.Float64,
    "slowdown": pl.Float64,
}
FEWEST_INSTANCES = 3
MOST_OF_A_HOST = 0.8
"""A host is slow if at least this part of the groups that it shares with others is slow."""

_PEERS = ["collective", "dtype", "message_bytes", "group_size", "host_count"]


def slow_parts(instances: pl.DataFrame) -> pl.DataFrame:
    """Compare the transfer of equal collectives between groups, and name the host, link or group that is slow.

    Groups are peers if they run the same collective on the same type, size and number of ranks and hosts. A group whose
    median transfer stands out (`holotrace.algorithms.outliers`) is slow. If most groups of a host are, the host is; else
    the link between the hosts of a group is or, within one host, the group itself.

    Args:
        instances: one row per collective, with process_group, hosts (sorted list), transfer_ns and the columns of peers.

    Returns:
        The columns `SLOW`, the largest slowdown first.
    """
    counted = instances.with_columns(pl.col("hosts").list.len().alias("host_count"))
    by_group = counted.group_by(*_PEERS, "process_group", "hosts").agg(
        pl.len().cast(pl.Int64).alias("instance_count"),
        pl.col("transfer_ns").median().alias("median_transfer_ns"),
    )
    judged = by_group.filter(pl.col("instance_count") >= FEWEST_INSTANCES).with_columns(
        pl.col("median_transfer_ns").median().over(_PEERS).alias("peer_transfer_ns"),
        stands_out("median_transfer_ns", _PEERS).alias("is_slow"),
    )
    return _named(judged, _slow_hosts(judged))


def _named(judged: pl.DataFrame, slow_hosts: list[str]) -> pl.DataFrame:
    of_host = pl.col("hosts").list.set_intersection(slow_hosts).list.first()
    between = pl.col("hosts").list.join(" and ")
    slow = judged.filter("is_slow").with_columns(
        pl.when(of_host.is_not_null())
        .then(pl.struct(pl.lit("host").alias("kind"), of_host.alias("part")))
        .when(pl.col("host_count") == 2)  # noqa: PLR2004 -- the two ends of a link
        .then(pl.struct(pl.lit("link").alias("kind"), between.alias("part")))
        .otherwise(pl.struct(pl.lit("group").alias("kind"), pl.col("process_group").alias("part")))
        .alias("named")
    )
    return (
        slow.unnest("named")
        .group_by("kind", "part", "collective", "message_bytes")
        .agg(pl.col("instance_count").sum(), pl.col("median_transfer_ns", "peer_transfer_ns").median())
        .with_columns((pl.col("median_transfer_ns") / pl.col("peer_transfer_ns")).alias("slowdown"))
        .sort("slowdown", "kind", "part", "collective", "message_bytes", descending=[True, *[False] * 4])
    )


def _slow_hosts(judged: pl.DataFrame) -> list[str]:
    """Return the hosts that explain several slow groups, the one that explains most of its own groups first."""
    shared = judged.filter(pl.col("host_count") > 1).select("hosts", "is_slow").with_row_index("row")
    chosen: list[str] = []
    while (worst := _worst_host(shared)) is not None:
        chosen.append(worst)
        shared = shared.filter(~pl.col("hosts").list.contains(worst))
    return chosen


def _worst_host(shared: pl.DataFrame) -> str | None:
    by_host = (
        shared.explode("hosts")
        .group_by("hosts")
        .agg(pl.col("is_slow").sum().alias("slow_count"), pl.len().alias("count"))
    )
    share = pl.col("slow_count") / pl.col("count")
    suspects = by_host.filter((pl.col("slow_count") > 1) & (share >= MOST_OF_A_HOST))
    names: Iterable[str] = suspects.sort("slow_count", "hosts", descending=[True, False])["hosts"].head(1)
    return next(iter(names), None)
