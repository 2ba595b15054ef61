"""How fast does data move to, from and within the devices?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.summary import summary
from holotrace.algorithms.time_weighted import TIME_WEIGHTED, time_weighted
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

SHORTEST_COPY_NS = 1_000
"""Copies with a recorded duration of 0 ns are assumed to take this long: the clock cannot resolve shorter times."""

_LINK = ("device", "name")
_BYTES_OF_A_GB = 1_000_000_000
_NS_OF_A_SECOND = 1_000_000_000
_MOST_GB_PER_S = 10_000_000
"""Higher bandwidths are ignored as recording errors: no link is nearly as fast, and sums would overflow 64 bits."""

_DIRECTION = re.compile(r"^(?:hip)?Memcpy (\w+)|^Copy(Host|Device|Peer)To(Host|Device|Peer)", re.IGNORECASE)
_FILL = re.compile(r"^(hip)?Memset|^FillBuffer", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class MemoryBandwidth(Result):
    """The bandwidth of each device for each kind of copy.

    series     one row for each start and one for each end of a copy, sorted by rank, device, name, time:

        rank          int32
        device        int32
        name          str     `Memcpy HtoD`, `Memcpy DtoD`, `Memset`, …; `Memcpy Unknown` if the direction is unknown
        time_ns       int64
        event_index   uint32  the copy that starts or ends
        active_count  int64   number of copies that are running right after this start or end
        bytes_per_s   int64   summed bandwidth of these copies

    time_weighted    one row per device and kind of copy, sorted by rank, device, name; each bandwidth is weighted by how
               long it lasts, and time without copies does not count:

        rank, device, name                                       as above
        copy_count                                               int64
        bytes                                                    int64    null if the sizes of all copies are unknown
        busy_ns                                                  int64    time in which at least one copy runs
        mean_bytes_per_s, std_bytes_per_s                        float64
        min_bytes_per_s, max_bytes_per_s                         int64
        p25_bytes_per_s, median_bytes_per_s, p75_bytes_per_s     float64

    change_weighted  the same statistics, computed as in HTA: whenever a copy starts or ends, the new bandwidth counts
               once, however long it lasts; bandwidths of 0 do not count:

        rank, device, name                                       as above
        change_count, min_bytes_per_s, max_bytes_per_s           int64
        mean_…, std_…, p25_…, median_…, p75_bytes_per_s          float64  std_…: sample standard deviation;
                                                                          0 if change_count is 1

    findings   one sentence per rank without device work

    The tables are empty if nothing was copied.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.memory_bandwidth(small_job()).answer
    'Memcpy HtoD moves 3.81 MiB, more than any other kind of copy, at 20 GB/s on average.'
    """

    series: pl.DataFrame
    time_weighted: pl.DataFrame
    change_weighted: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    series: pl.DataFrame
    time_weighted: pl.DataFrame
    change_weighted: pl.DataFrame


def memory_bandwidth(trace: Trace, *, executor: Executor = IN_PROCESS) -> MemoryBandwidth:
    """Add up the bandwidths of concurrent copies and memsets, for each device and kind of copy.

    The bandwidth of a copy is the recorded bandwidth, rounded to whole bytes per second to make sums exact. If no
    bandwidth was recorded, it is size / duration, or 0 if the size is also unknown. Copies of 0 ns are assumed to take
    1 µs. Two copies do not overlap if one ends exactly when the other starts.

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/memory_bandwidth.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> copies = holotrace.memory_bandwidth(small_job())
    >>> copies.time_weighted.select("rank", "name", "bytes", "busy_ns", "mean_bytes_per_s").rows()
    [(0, 'Memcpy HtoD', 2000000, 100000, 20000000000.0), (1, 'Memcpy HtoD', 2000000, 100000, 20000000000.0)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[_Partial, MemoryBandwidth]:
    """Return the two functions of `memory_bandwidth`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def copy_kind(name: str) -> str:
    """Return the kind of copy from its name: `Memcpy HtoD` for `Memcpy HtoD (Pinned -> Device)`."""
    if _FILL.match(name):
        return "Memset"
    direction = _DIRECTION.match(name)
    if not direction:
        return "Memcpy Unknown"
    return f"Memcpy {direction[1] or f'{direction[2][0].upper()}to{direction[3][0].upper()}'}"


def _one_rank(rank_trace: RankTrace) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "memory_bandwidth")
    copies = _copies(rank_trace, work.filter(pl.col("kernel_kind") == KernelKind.MEMORY))
    series = _series(rank_trace.rank, copies)
    return _Partial(series, _time_weighted(rank_trace.rank, copies, series), _change_weighted(series))


def _copies(rank_trace: RankTrace, work: pl.DataFrame) -> pl.DataFrame:
    """Return event_index, device, name, start_ns, end_ns, bytes and bytes_per_s of every copy and memset."""
    ids = work["name"].unique()
    kinds = pl.Series("copy_kind", [copy_kind(text) for text in rank_trace.texts(ids)], dtype=pl.String)
    recorded = rank_trace.table("copies", ["event_index", "bytes", "bandwidth_gb_per_s"])
    end = pl.max_horizontal("end_ns", pl.col("start_ns") + (pl.col("end_ns") == pl.col("start_ns")) * SHORTEST_COPY_NS)
    return (
        work.with_columns(end.alias("end_ns"))
        .join(pl.DataFrame([ids, kinds]), on="name", maintain_order="left")
        .with_columns(pl.col("copy_kind").alias("name"))
        .join(recorded, on="event_index", how="left", maintain_order="left")
        .select("event_index", *_LINK, "start_ns", "end_ns", "bytes", _bytes_per_second().alias("bytes_per_s"))
    )


def _bytes_per_second() -> pl.Expr:
    given = pl.col("bandwidth_gb_per_s")
    recorded = pl.when(given.is_between(0, _MOST_GB_PER_S)).then(given * _BYTES_OF_A_GB)
    duration = (pl.col("end_ns") - pl.col("start_ns")).cast(pl.Float64)
    ratio = pl.col("bytes").clip(lower_bound=0).cast(pl.Float64) * _NS_OF_A_SECOND / duration
    worked_out = pl.when(ratio <= _MOST_GB_PER_S * _BYTES_OF_A_GB).then(ratio)
    return pl.coalesce(recorded, worked_out, pl.lit(0.0)).round().cast(pl.Int64)


def _series(rank: int, copies: pl.DataFrame) -> pl.DataFrame:
    """Return the bandwidth after each start or end of a copy.

    The rows are sorted by device and kind of copy, and one cumulative sum over all rows is enough: after the last
    row of each device and kind, all its copies have ended, so the sum is 0 again.
    """
    begun, ended = (
        copies.select(
            "event_index",
            *_LINK,
            pl.col(time).alias("time_ns"),
            pl.lit(sign, pl.Int64).alias("change"),
            (pl.col("bytes_per_s") * sign).alias("bytes_per_s"),
        )
        for time, sign in (("start_ns", 1), ("end_ns", -1))
    )
    return (
        pl.concat([begun, ended])
        .sort(*_LINK, "time_ns", "change", "event_index")
        .select(
            pl.lit(rank, pl.Int32).alias("rank"),
            *_LINK,
            "time_ns",
            "event_index",
            pl.col("change").cum_sum().alias("active_count"),
            pl.col("bytes_per_s").cum_sum(),
        )
    )


def _time_weighted(rank: int, copies: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    size = pl.col("bytes")
    totals = copies.group_by(_LINK).agg(
        pl.len().cast(pl.Int64).alias("copy_count"), pl.when(size.count() > 0).then(size.sum()).alias("bytes")
    )
    until = pl.col("time_ns").shift(-1).over(_LINK)
    lasting = series.with_columns((until - pl.col("time_ns")).fill_null(0).alias("lasts_ns"))
    running = lasting.filter(pl.col("active_count") > 0)
    bandwidths = time_weighted(running, by=_LINK, value="bytes_per_s", weight="lasts_ns")
    return (
        totals.join(bandwidths, on=_LINK)
        .sort(_LINK)
        .select(
            pl.lit(rank, pl.Int32).alias("rank"),
            *_LINK,
            "copy_count",
            "bytes",
            pl.col("total").alias("busy_ns"),
            *_named(),
        )
    )


def _change_weighted(series: pl.DataFrame) -> pl.DataFrame:
    statistics = summary(series.filter(pl.col("bytes_per_s") > 0), by=["rank", *_LINK], value="bytes_per_s")
    return statistics.select("rank", *_LINK, pl.col("count").alias("change_count"), *_named())


def _named() -> list[pl.Expr]:
    return [pl.col(name).alias(f"{name}_bytes_per_s") for name in TIME_WEIGHTED]


def _combine(partials: dict[int, _Partial]) -> MemoryBandwidth:
    series, time_weighted, change_weighted = (pl.concat(tables) for tables in zip(*partials.values(), strict=True))
    return MemoryBandwidth(series, time_weighted, change_weighted)
