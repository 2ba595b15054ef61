"""Matches the calls of all ranks of a job, aligns clocks, and divides the time in calls into waiting and transfer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.all_to_alls import is_even
from holotrace.enrich.across_ranks.clocks.clocks import Clocks
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.across_ranks.message_sizes import bus_factor, message_bytes
from holotrace.enrich.across_ranks.timed_calls import timed_calls


@dataclass(frozen=True, eq=False)
class JobCalls(EqualByContent):
    """The calls of all ranks, with their groups, sizes, bandwidths and waits.

    calls     the columns of `Matching.calls` and `arrivals`, with window and family renamed to `step` and `collective`, and:

              host           str
              process_group  str      description and ranks of the group, such as `mesh_dp [0, 2]`; null if unknown
              group_size     int64    2 for a send or receive
              message_bytes  int64    see `holotrace.enrich.across_ranks.message_sizes`
              bus_bytes      int64    bytes that cross the rank's link
              duration_ns    int64
              is_even        bool     as in `OfRank.calls`, but also true if all ranks have inputs and outputs of the same size

              algorithm_bytes_per_s, bus_bytes_per_s  float64  message_bytes and bus_bytes divided by transfer_ns

    groups    `Matching.groups`
    clocks    the clocks of the hosts
    coverage  `Matching.coverage`
    findings  sentences that report calls that could not be matched, and clocks that could not be aligned
    """

    calls: pl.DataFrame
    groups: pl.DataFrame
    clocks: Clocks
    coverage: pl.DataFrame
    findings: tuple[str, ...]


def job_calls(of_ranks: Mapping[int, OfRank]) -> JobCalls:
    """Match the calls of all ranks, align the clocks of their hosts, and time each call.

    Args:
        of_ranks: {rank: the result of `holotrace.enrich.across_ranks.matching.calls.of_rank`}.
    """
    timed = timed_calls(of_ranks)
    matching, aligned = timed.matching, timed.clocks
    hosts = {rank: known.facts.host for rank, known in of_ranks.items()}
    labels = matching.groups.select("group", pl.Series("process_group", _labels(matching.groups), pl.String))
    named = timed.calls.join(labels, on="group", how="left", maintain_order="left").with_columns(
        pl.col("rank").replace_strict(hosts, return_dtype=pl.String).alias("host"),
        pl.col("family", "matched_by").cast(pl.String),
    )
    even = pl.when(is_even(named)).then(pl.lit(value=True)).otherwise("is_even").alias("is_even")
    sized = named.with_columns(message_bytes(), bus_factor(), even)
    return JobCalls(
        calls=_with_bandwidths(_with_bus_bytes(sized)).rename({"window": "step", "family": "collective"}),
        groups=matching.groups,
        clocks=aligned,
        coverage=matching.coverage.with_columns(pl.col("matched_by").cast(pl.String)),
        findings=(*matching.findings, *aligned.findings),
    )


def _with_bus_bytes(calls: pl.DataFrame) -> pl.DataFrame:
    """Replace `bus_factor` with `bus_bytes`: `sent_bytes` if known, else `message_bytes` times `bus_factor`."""
    by_factor = (pl.col("message_bytes") * pl.col("bus_factor")).round().cast(pl.Int64)
    return calls.with_columns(pl.coalesce("sent_bytes", by_factor).alias("bus_bytes")).drop("bus_factor")


def _with_bandwidths(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.with_columns(
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
        per_second("message_bytes", "transfer_ns").alias("algorithm_bytes_per_s"),
        per_second("bus_bytes", "transfer_ns").alias("bus_bytes_per_s"),
    )


def per_second(byte_count: str, duration_ns: str) -> pl.Expr:
    """Return bytes per second; null if the bytes or the duration are 0 or unknown."""
    is_known = (pl.col(byte_count) > 0) & (pl.col(duration_ns) > 0)
    return pl.when(is_known).then(pl.col(byte_count) / pl.col(duration_ns) * 1e9)


def _labels(groups: pl.DataFrame) -> list[str]:
    rows = groups.select("description", "ranks", "size").iter_rows()
    return [f"{description or ''} {ranks_text(ranks, size)}".strip() for description, ranks, size in rows]


def ranks_text(ranks: list[int] | None, size: int) -> str:
    """Return a short text that names the ranks of a group.

    >>> ranks_text([0, 2], 2), ranks_text([0, 1, 2, 3], 4), ranks_text([0, 8, 16, 24], 4), ranks_text(None, 64)
    ('[0, 2]', '[0-3]', '[0-24 by 8]', '[64 ranks]')
    """
    if not ranks:
        return f"[{size} ranks]"
    strides = {after - before for before, after in pairwise(ranks)}
    if len(ranks) > 2 and len(strides) == 1:  # noqa: PLR2004 -- two ranks are as short in full
        stride = strides.pop()
        return f"[{ranks[0]}-{ranks[-1]}]" if stride == 1 else f"[{ranks[0]}-{ranks[-1]} by {stride}]"
    shown = ", ".join(map(str, ranks[:4])) + (", …" if len(ranks) > 4 else "")  # noqa: PLR2004
    return f"[{shown}]"
