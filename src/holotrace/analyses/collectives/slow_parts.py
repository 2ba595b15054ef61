"""Find hosts, links and groups whose collectives take longer than the same collectives elsewhere."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job.outliers import stands_out

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
FEWEST_GROUPS = 2
"""A group is judged only if it ran at least 3 collectives. A host is judged only if it belongs to at least 2 groups
that span several hosts."""

_EQUAL = ["collective", "dtype", "message_bytes", "group_size", "host_count"]


def slow_parts(instances: pl.DataFrame) -> pl.DataFrame:
    """Compare the transfer times of equal collectives between groups, and name slow hosts, links and groups.

    Groups are peers if they run the same collective with the same element type and message size, on the same number of
    ranks and hosts. If the element type, message size or number of ranks is unknown, a group has no peers, because
    other groups may move different amounts of data. A group is slow if even the lower quartile of its transfer times is
    an outlier among its peers (`holotrace.enrich.job.outliers`). For a host, the lower quartile is computed twice: over
    the transfer times of each of its groups that span several hosts, and then over the results. The host is slow if the
    final value is an outlier among the hosts.

    If a group has a slow host, the result names the host. Otherwise, if a slow group spans two hosts, the result names
    the link between them. In all other cases, it names the group.

    Args:
        instances: one row per collective, with process_group, hosts (sorted list), collective, dtype,
            message_bytes, group_size and transfer_ns.

    Returns:
        One row per slow part (host, link or group), collective and message size, with the columns of `SLOW`; the
        largest slowdown comes first.
    """
    counted = instances.with_columns(pl.col("hosts").list.len().alias("host_count"))
    by_group = (
        counted.filter(_is_known())
        .group_by(*_EQUAL, "process_group", "hosts")
        .agg(
            pl.len().cast(pl.Int64).alias("instance_count"),
            pl.col("transfer_ns").median().alias("median_transfer_ns"),
            _faster("transfer_ns"),
        )
    )
    several = by_group.filter(pl.col("instance_count") >= FEWEST_INSTANCES)
    judged = several.with_columns(stands_out(several, "faster_ns", _EQUAL).alias("is_slow"))
    return _named(judged, _slow_hosts(judged))


def _is_known() -> pl.Expr:
    """Return whether the group size and, except for barriers, the amount of data are known."""
    is_sized = pl.all_horizontal(pl.col("dtype", "message_bytes").is_not_null())
    return pl.col("group_size").is_not_null() & (is_sized | (pl.col("collective") == "barrier"))


def _faster(name: str) -> pl.Expr:
    """Return the lower quartile; with fewer than five values, this is the smallest value."""
    return pl.col(name).quantile(1 / 4, "lower").alias("faster_ns")


def _slow_hosts(judged: pl.DataFrame) -> pl.DataFrame:
    """Return one row per kind of collective and slow host, with the columns of `_EQUAL` and `slow_host`."""
    shared = judged.filter(pl.col("host_count") > 1).explode("hosts").rename({"hosts": "slow_host"})
    by_host = shared.group_by(*_EQUAL, "slow_host").agg(pl.len().alias("group_count"), _faster("faster_ns"))
    several = by_host.filter(pl.col("group_count") >= FEWEST_GROUPS)
    return several.filter(stands_out(several, "faster_ns", _EQUAL)).select(*_EQUAL, "slow_host")


def _named(judged: pl.DataFrame, slow_hosts: pl.DataFrame) -> pl.DataFrame:
    of_kind = slow_hosts.group_by(_EQUAL).agg("slow_host")
    known = judged.join(of_kind, on=_EQUAL, how="left", nulls_equal=True).with_columns(
        pl.col("hosts").list.set_intersection(pl.col("slow_host")).list.first().alias("slow_host")
    )
    normal = pl.col("median_transfer_ns").filter(~pl.col("is_slow") & pl.col("slow_host").is_null())
    peers = known.with_columns(normal.median().over(_EQUAL).alias("peer_transfer_ns"))
    slow = peers.filter(pl.col("is_slow") | pl.col("slow_host").is_not_null()).with_columns(_kind(), _part())
    return (
        slow.group_by("kind", "part", "collective", "message_bytes")
        .agg(pl.col("instance_count").sum(), pl.col("median_transfer_ns", "peer_transfer_ns").median())
        .with_columns((pl.col("median_transfer_ns") / pl.col("peer_transfer_ns")).alias("slowdown"))
        .sort("slowdown", "kind", "part", "collective", "message_bytes", descending=[True, *[False] * 4])
    )


def _kind() -> pl.Expr:
    is_link = pl.col("host_count") == 2  # noqa: PLR2004 -- the two ends of a link
    of_group = pl.when(is_link).then(pl.lit("link")).otherwise(pl.lit("group"))
    return pl.when(pl.col("slow_host").is_not_null()).then(pl.lit("host")).otherwise(of_group).alias("kind")


def _part() -> pl.Expr:
    is_link = pl.col("host_count") == 2  # noqa: PLR2004 -- the two ends of a link
    of_group = pl.when(is_link).then(pl.col("hosts").list.join(" and ")).otherwise("process_group")
    return pl.coalesce("slow_host", of_group).alias("part")
