"""Reports unknown, doubtful or contradictory clocks of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from holotrace.units import duration_text

_MOST_NAMED = 5


def findings_of(
    per_host: pl.DataFrame, jumps: pl.DataFrame, contradictions: pl.DataFrame, dropped_count: int
) -> tuple[str, ...]:
    """Return the findings, the most general first; the arguments are tables of `Clocks` and `HostCheck`."""
    return (
        *_unknown(per_host),
        *_divided_hosts(per_host, contradictions),
        *_jumped(jumps),
        *_dropped(dropped_count),
    )


def _unknown(per_host: pl.DataFrame) -> Iterator[str]:
    """List the clocks that could not be compared with the reference, grouped by the reason."""
    reference = _name(*per_host.row(0)[:2]) if len(per_host) else ""
    others = per_host.slice(1).filter(pl.col("offset_ns").is_null())
    for is_met, reason in (
        (False, "Their ranks share no synchronising collective with the reference, directly or through other hosts"),
        (True, "Their calls bound the offset on one side only, or contradict each other"),
    ):
        chosen = others.filter((pl.col("instance_count") > 0) == is_met)
        if len(chosen):
            names = _names(_name(*row) for row in chosen.select("host", "rank").iter_rows())
            yield f"Clocks whose offset to {reference} is unknown: {names}. {reason}."


def _divided_hosts(per_host: pl.DataFrame, contradictions: pl.DataFrame) -> Iterator[str]:
    """List the hosts on which ranks have different clocks; normally, all ranks of a host share one clock."""
    divided = per_host.filter(pl.col("rank").is_not_null())["host"].unique()
    for host, count, largest_ns in contradictions.filter(pl.col("host").is_in(divided.implode())).iter_rows():
        yield (
            f"Ranks of host {host} leave collectives up to {duration_text(largest_ns)} before others enter them "
            f"({count:,} times), so their clocks differ by at least this much; each rank is treated as a separate host."
        )


def _jumped(jumps: pl.DataFrame) -> Iterator[str]:
    for host, rank, _, latest_ns, forward_ns in jumps.iter_rows():
        direction = "forward" if forward_ns > 0 else "back"
        yield (
            f"The clock of {_name(host, rank)} jumped {direction} by {duration_text(abs(forward_ns))}, at some time "
            f"before it showed {latest_ns} ns; its times before and after the jump are aligned separately."
        )


def _dropped(count: int) -> Iterator[str]:
    if count == 1:
        yield (
            "One call contradicts what other calls show about the clocks, so it is probably matched wrongly; the "
            "comparison of clocks leaves it out."
        )
    elif count:
        yield (
            f"{count:,} calls contradict what other calls show about the clocks, so they are probably matched wrongly; "
            "the comparison of clocks leaves them out."
        )


def _name(host: str, rank: int | None) -> str:
    return host if rank is None else f"{host} (rank {rank})"


def _names(names: Iterator[str]) -> str:
    every: Sequence[str] = list(dict.fromkeys(names))
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
