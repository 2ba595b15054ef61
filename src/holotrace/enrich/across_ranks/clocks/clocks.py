"""Compares the clocks of a job's hosts by the calls that their ranks share.

The ranks of a host share its clock. When the clock of a host shows t, the clock of the reference host shows t + x(t).
Clocks are assumed to run at constant rates, so x(t) is a straight line. If a clock jumps, x(t) is one line before the
jump and another line after it. No rank can leave an all-reduce before all ranks have entered it, so every all-reduce
bounds x: see `holotrace.algorithms.clocks.bounds`. Within these bounds, x is estimated from the ends of the calls,
which are nearly simultaneous on all ranks: see `holotrace.algorithms.clocks.lines`.

    offset      the estimate of x at some time
    half width  the distance from the estimate to the bound that is farther away: x is in
                [offset - half width, offset + half width]
    drift       how much faster the reference clock runs than the host's clock, in parts per 10^9

The bounds are right if clocks run at constant rates and the calls are matched correctly. In each call, some time passes
from when the last rank starts the call until the first rank ends it. The shortest of these times limits the precision:
a half width cannot be much smaller. A jump that is smaller than the waits in nearby calls may look like drift; then the
bounds can be wrong by the size of the jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clocks.fitting import Correction, Fit, fit
from holotrace.algorithms.clocks.jumps import DROPPED
from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.clocks.clock_findings import findings_of
from holotrace.enrich.across_ranks.clocks.participants import (
    HostCheck,
    OfClocks,
    by_clock,
    contradictions_within_hosts,
    waiting_calls,
)

LARGEST_DRIFT = 1e-3
"""The largest difference between the rates of two clocks: time daemons slew each of them by at most 500 ppm.

Source: "the slew rate is limited to 0.5 ms/s", https://www.ntp.org/documentation/4.2.8-series/ntpd/
"""

_FEWEST_CONTRADICTIONS = 3
"""If at least this many operations contradict the assumption that the ranks of a host share a clock, each rank has its
own clock. If fewer do, the few contradicting operations are probably matched wrongly."""

_ROUNDING_NS = 1
_EARLIEST_NS, _LATEST_NS = (getattr(np.iinfo(np.int64), name) for name in ("min", "max"))
_JUMPS = {
    "host": pl.String,
    "rank": pl.Int32,
    "earliest_ns": pl.Int64,
    "latest_ns": pl.Int64,
    "forward_ns": pl.Int64,
}

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clocks(EqualByContent):
    """The clocks of a job.

    per_host          one row per clock, the reference first, then by host and rank. A host has more than one row if its
                      clock jumped, or if its ranks have different clocks:

                      host                  str
                      rank                  int32    null if the ranks of the host share the clock
                      rank_count            int64
                      valid_from_ns, valid_to_ns  int64    the row applies in this range; null if the clock never jumped
                      instance_count        int64    calls used to estimate the clock
                      offset_at_ns          int64    the middle of the time range of these calls, on this clock
                      offset_ns             int64    value to add at offset_at_ns to get the time on the reference clock
                      half_width_ns         int64
                      drift_ppb             float64  how much faster the reference clock runs than this clock
                      drift_half_width_ppb  float64

                      Values are null if no calls connect the host to the reference, or if the calls bound its clock on
                      one side only.
    jumps             one row per jump, in order of host and time:

                      host                    str
                      rank                    int32  as above
                      earliest_ns, latest_ns  int64  the jump is between these two times: the last known time
                                             before it, and the first known time after it
                      forward_ns              int64  negative if the clock was set back
    reference         host and, if it has its own clock, rank
    closure_error_ns  the largest error of a cycle of hosts; None if there is no cycle. If calls connect hosts in a
                      cycle (A to B, B to C, C to A), the offset between A and B can be measured directly, and also
                      computed through C. The error of the cycle is the median difference between the two offsets.
    dropped_count     number of instances that were dropped because they contradict other instances
    findings          sentences that report unknown, doubtful or contradictory clocks
    """

    per_host: pl.DataFrame
    jumps: pl.DataFrame
    reference: str
    closure_error_ns: int | None
    dropped_count: int
    findings: tuple[str, ...]
    model: ClockModel

    def aligned(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Add the times of the calls on the reference clock.

        Args:
            calls: with the columns rank, start_ns, end_ns.

        Returns:
            The rows and columns of `calls`, and these new columns:

            clock              int64  number of the clock; calls on the same clock can be compared without error
            aligned_start_ns   int64
            aligned_end_ns     int64
            half_width_ns      int64  of both times

            The new columns are null if the clock is unknown, or if it jumped at about the time of the call.
        """
        clock = self.model.clock_of(calls)
        start, end = (self.model.correction(clock, calls[column].to_numpy()) for column in ("start_ns", "end_ns"))
        columns = {
            "clock": clock,
            "aligned_start_ns": calls["start_ns"].to_numpy() + start.offset_ns,
            "aligned_end_ns": calls["end_ns"].to_numpy() + end.offset_ns,
            "half_width_ns": np.maximum(start.half_width_ns, end.half_width_ns),
        }
        return calls.with_columns(_if_known(start.is_known, columns))

    def corrections(self, rank: int, at_ns: Int64Array) -> pl.DataFrame:
        """Return the clock corrections of a rank at these times.

        Returns:
            at_ns          int64  as given
            offset_ns      int64  the value to add to get the time on the reference clock; null if unknown
            half_width_ns  int64  null if unknown
        """
        times = pl.DataFrame({"rank": np.full(len(at_ns), rank, np.int32), "start_ns": at_ns, "end_ns": at_ns})
        found = self.model.correction(self.model.clock_of(times), at_ns)
        return times.select(
            pl.col("start_ns").alias("at_ns"),
            *_if_known(found.is_known, {"offset_ns": found.offset_ns, "half_width_ns": found.half_width_ns}),
        )


def _if_known(is_known: npt.NDArray[np.bool_], columns: Mapping[str, Int64Array]) -> Iterator[pl.Expr]:
    known = pl.lit(pl.Series(is_known))
    return (pl.when(known).then(pl.Series(values)).alias(name) for name, values in columns.items())


class WholeCorrection(NamedTuple):
    """The value to add to each time, and its half-width, in whole nanoseconds; 0 if unknown."""

    offset_ns: Int64Array
    half_width_ns: Int64Array
    is_known: npt.NDArray[np.bool_]


class ClockModel(NamedTuple):
    """The fitted clocks.

    fit        lines and bounds, fitted after `base_ns` was subtracted from all times
    base_ns    for each clock, the value to subtract from its times
    reference  number of the reference clock
    of_ranks   one row per rank and clock: rank, clock, and from_ns and to_ns, the window in which its line applies
    """

    fit: Fit
    base_ns: Int64Array
    reference: int
    of_ranks: pl.DataFrame

    def clock_of(self, calls: pl.DataFrame) -> Int64Array:
        """Return the clock of each call; -1 if unknown.

        The clock is unknown if the rank has none, or if it is unclear whether the call is before or after a jump.
        """
        if self.of_ranks["rank"].is_unique().all():
            clock_of = dict(self.of_ranks.select("rank", "clock").iter_rows())
            return calls["rank"].replace_strict(clock_of, default=-1, return_dtype=pl.Int64).to_numpy()
        is_within = (pl.col("start_ns") >= pl.col("from_ns")) & (pl.col("end_ns") <= pl.col("to_ns"))
        possible = (
            calls.select("rank", "start_ns", "end_ns")
            .with_row_index("row")
            .join(self.of_ranks, on="rank")
            .filter(is_within)
            .filter(pl.len().over("row") == 1)
        )
        clock = np.full(calls.height, -1)
        clock[possible["row"].to_numpy()] = possible["clock"].to_numpy()
        return clock

    def correction(self, clock: Int64Array, at_ns: Int64Array) -> WholeCorrection:
        """Return the value to add to each time; `clock` is the number of the clock that measured it, -1 if unknown."""
        exact = self.fit.clocks.correction(clock, (at_ns - self.base_ns[clock]).astype(np.float64))
        is_known = (clock >= 0) & np.isfinite(exact.value)
        offset = self.base_ns[self.reference] - self.base_ns[clock] + whole(np.round(exact.value))
        half_width = np.where(clock == self.reference, 0, whole(np.ceil(exact.half_width)) + _ROUNDING_NS)
        return WholeCorrection(offset, half_width, is_known)


def clocks(calls: pl.DataFrame, hosts: Mapping[int, str]) -> Clocks:
    """Compare the clocks of hosts.

    Args:
        calls: matched calls of all ranks: rank, instance (equal for all calls of one operation, null if unmatched),
            family, start_ns, end_ns; if available also in_bytes, out_bytes, is_even, in_splits, matched_by. Calls
            whose matches were guessed from times or counts are not used.
        hosts: the host of each rank.

    The reference is the host with the most ranks; on a tie, the host with the lowest rank.
    """
    known_hosts = {**{int(rank): f"rank {rank}" for rank in calls["rank"].unique()}, **hosts}
    waiting = waiting_calls(calls)
    check = contradictions_within_hosts(waiting, known_hosts)
    owners = _owners(known_hosts, check)
    sound = _without_mismatches(waiting, check)
    compared = by_clock(sound, owners.clock_of_rank, len(owners.names))
    fitted = fit(compared.participants, len(owners.names), 0, largest_drift=LARGEST_DRIFT)
    dropped_count = _dropped_count(compared, fitted) + waiting["instance"].n_unique() - sound["instance"].n_unique()
    spans = _spans(compared, fitted)
    model = ClockModel(fitted, compared.base_ns[fitted.source], 0, pl.DataFrame())
    model = model._replace(of_ranks=_of_ranks(model, owners, spans))
    per_host = _per_host(model, owners, spans)
    jumps = _jumps(model, owners, spans)
    closure_error = fitted.clocks.closure_error
    return Clocks(
        per_host=per_host,
        jumps=jumps,
        reference=owners.text(0),
        closure_error_ns=None if closure_error is None else round(closure_error),
        dropped_count=dropped_count,
        findings=findings_of(per_host, jumps, check.by_host, dropped_count),
        model=model,
    )


class _Owners(NamedTuple):
    """The owner of each clock, and the clock of each rank.

    A clock's owner is a host or, if the ranks of a host have different clocks, a single rank.
    """

    names: list[tuple[str, int | None]]
    clock_of_rank: dict[int, int]

    def text(self, clock: int) -> str:
        host, rank = self.names[clock]
        return host if rank is None else f"{host}, rank {rank}"


def _owners(hosts: Mapping[int, str], check: HostCheck) -> _Owners:
    """Number the clocks, the reference first.

    If the times of a host's ranks contradict each other often enough, each of these ranks gets its own clock.
    """
    is_clear = pl.col("contradicted_count") >= _FEWEST_CONTRADICTIONS
    divided = set(check.by_host.filter(is_clear)["host"])
    ranks_of = {host: [rank for rank in sorted(hosts) if hosts[rank] == host] for host in set(hosts.values())}
    in_order = sorted(ranks_of, key=lambda host: (-len(ranks_of[host]), ranks_of[host][0]))
    names = [(host, rank) for host in in_order for rank in (ranks_of[host] if host in divided else [None])]
    number = {name: clock for clock, name in enumerate(names)}
    return _Owners(names, {rank: number[host, rank if host in divided else None] for rank, host in hosts.items()})


def _without_mismatches(waiting: pl.DataFrame, check: HostCheck) -> pl.DataFrame:
    """If only a few instances contradict the shared clock of a host, drop these instances."""
    few = check.by_host.filter(pl.col("contradicted_count") < _FEWEST_CONTRADICTIONS)["host"]
    wrong = check.instances.filter(pl.col("host").is_in(few.implode()))["instance"]
    return waiting if wrong.is_empty() else waiting.filter(~pl.col("instance").is_in(wrong.unique().implode()))


def _dropped_count(compared: OfClocks, fitted: Fit) -> int:
    """Return the number of operations that were dropped because they contradict the times of other operations."""
    return len(np.unique(compared.participants.operation[fitted.clock_of_row == DROPPED]))


def _spans(compared: OfClocks, fitted: Fit) -> pl.DataFrame:
    """Return, for each clock, the number of its operations, the start of the first one and the end of the last one.

    Returns:
        clock, source, instance_count, first_ns, last_ns (both are times on this clock): int64; sorted by clock.
    """
    rows = pl.DataFrame({"clock": fitted.clock_of_row, "operation": compared.participants.operation})
    base_ns = compared.base_ns[compared.participants.clock]
    start = np.minimum(compared.participants.start, compared.participants.reading)
    known_start = np.where(np.isfinite(start), start, compared.participants.reading)
    times = rows.with_columns(
        pl.Series("first_ns", base_ns + whole(known_start)),
        pl.Series("last_ns", base_ns + whole(compared.participants.reading)),
    )
    spans = times.group_by("clock").agg(
        pl.len().cast(pl.Int64).alias("instance_count"), pl.col("first_ns").min(), pl.col("last_ns").max()
    )
    every = pl.DataFrame({"clock": np.arange(len(fitted.source)), "source": fitted.source})
    return every.join(spans, on="clock", how="left").with_columns(pl.col("instance_count").fill_null(0))


def _windows(model: ClockModel, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the window (from_ns to to_ns) in which each fitted line may apply; a clock that jumps has several lines.

    A clock jumps at an unknown time between the last call before the jump and the first call after it. Between
    these calls, the window of the line before the jump overlaps the window of the line after it, because it is unclear
    which line applies. A clock's first window begins before its first call, and its last window ends after its last
    call; both margins are as long as the time from the job's first to its last compared call. The only window of a clock
    that never jumped covers all times.
    """
    ordered = spans.sort("source", "clock")
    beside = ordered.with_columns(
        pl.col("last_ns").shift().over("source").alias("earlier_ns"),
        pl.col("clock").shift().over("source").alias("earlier"),
        pl.col("first_ns").shift(-1).over("source").alias("later_ns"),
        pl.col("clock").shift(-1).over("source").alias("later"),
    )
    length = pl.lit(int(np.ptp(model.fit.clocks.bounds.knots)))
    is_only = pl.len().over("source") == 1
    begin = pl.coalesce(_on_line_of(model, beside, "earlier"), pl.col("first_ns") - length)
    end = pl.coalesce(_on_line_of(model, beside, "later"), pl.col("last_ns") + length)
    return ordered.with_columns(
        pl.when(is_only).then(_EARLIEST_NS).otherwise(begin).alias("from_ns"),
        pl.when(is_only).then(_LATEST_NS).otherwise(end).alias("to_ns"),
    )


def _on_line_of(model: ClockModel, beside: pl.DataFrame, which: str) -> pl.Series:
    """Return the time at which the window of each line begins (`which` is "earlier") or ends ("later").

    A window begins at the last call before a jump, and ends at the first call after the next jump. When
    these two calls were recorded, another line applied, so their times are converted to what the clock would have shown
    if this window's line had applied.
    The window is then extended by the sum of the half-widths of both lines (how far the lines may be off), so it is
    never too short. The result is null if there is no such jump, or if an offset is unknown.
    """
    other = beside[which].fill_null(-1).to_numpy()
    at_ns = beside[f"{which}_ns"].fill_null(0).to_numpy()
    there, here = model.correction(other, at_ns), model.correction(beside["clock"].to_numpy(), at_ns)
    shown = at_ns + there.offset_ns - here.offset_ns
    reach = (there.half_width_ns + here.half_width_ns) * (1 if which == "later" else -1)
    return pl.Series(shown + reach).zip_with(
        pl.Series(there.is_known & here.is_known), pl.Series([None], dtype=pl.Int64)
    )


def _of_ranks(model: ClockModel, owners: _Owners, spans: pl.DataFrame) -> pl.DataFrame:
    """Return `ClockModel.of_ranks`."""
    schema = {"rank": pl.Int32, "source": pl.Int64}
    ranks = pl.DataFrame(list(owners.clock_of_rank.items()), schema=schema, orient="row")
    return ranks.join(_windows(model, spans), on="source").select("rank", "clock", "from_ns", "to_ns")


def _per_host(model: ClockModel, owners: _Owners, spans: pl.DataFrame) -> pl.DataFrame:
    """Return `Clocks.per_host`."""
    counts = np.bincount(list(owners.clock_of_rank.values()), minlength=len(owners.names))
    ordered = spans.sort("source", "clock")
    clock, source = ordered["clock"].to_numpy(), ordered["source"].to_numpy()
    middle = (ordered["first_ns"] + (ordered["last_ns"] - ordered["first_ns"]) // 2).fill_null(0)
    offset = model.correction(clock, middle.to_numpy())
    rate = Correction(*(part[clock] for part in model.fit.clocks.rate()))
    is_known, is_met = pl.Series(offset.is_known), ordered["instance_count"] > 0
    has_jumped = (pl.len().over("source") > 1) & pl.Series(is_met)
    return ordered.select(
        pl.Series("host", [owners.names[number][0] for number in source], pl.String),
        pl.Series("rank", [owners.names[number][1] for number in source], pl.Int32),
        pl.Series("rank_count", counts[source], pl.Int64),
        pl.when(has_jumped).then("first_ns").alias("valid_from_ns"),
        pl.when(has_jumped).then("last_ns").alias("valid_to_ns"),
        "instance_count",
        pl.when(is_met).then(middle).alias("offset_at_ns"),
        pl.when(is_known).then(pl.Series(offset.offset_ns)).alias("offset_ns"),
        pl.when(is_known).then(pl.Series(offset.half_width_ns)).alias("half_width_ns"),
        pl.when(is_known).then(pl.Series(rate.value * 1e9)).alias("drift_ppb"),
        pl.when(is_known).then(pl.Series(rate.half_width * 1e9)).alias("drift_half_width_ppb"),
    )


def _jumps(model: ClockModel, owners: _Owners, spans: pl.DataFrame) -> pl.DataFrame:
    """Return `Clocks.jumps`.

    If a clock jumps forward by d, the value to add to its times is smaller by d after the jump.
    """
    following = spans.sort("source", "clock").with_columns(
        pl.col("clock", "last_ns").shift().over("source").name.prefix("before_")
    )
    pairs = following.drop_nulls()
    source, at_ns = pairs["source"].to_numpy(), pairs["before_last_ns"].to_numpy()
    before, after = (model.correction(pairs[column].to_numpy(), at_ns) for column in ("before_clock", "clock"))
    return pl.DataFrame(
        {
            "host": [owners.names[number][0] for number in source],
            "rank": [owners.names[number][1] for number in source],
            "earliest_ns": at_ns,
            "latest_ns": pairs["first_ns"],
            "forward_ns": before.offset_ns - after.offset_ns,
        },
        schema=_JUMPS,
    ).filter(pl.Series(before.is_known & after.is_known, dtype=pl.Boolean))


def whole(values: Float64Array) -> Int64Array:
    """Return the values as whole numbers; 0 for unknown and infinite values."""
    return np.where(np.isfinite(values), values, 0).astype(np.int64)
