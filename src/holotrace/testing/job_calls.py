"""Simulate a job's collectives on many hosts with known clocks; the calls are already matched across ranks.

Only communication calls are simulated, so simulating thousands of ranks takes only a second. A rank computes for a
random time before each operation that it calls. The kind of operation determines what its ranks wait for; `transfer`
is a random time:

    all_reduce, all_gather, reduce_scatter   all ranks leave together, `transfer` after the last rank has entered
    broadcast                                each rank leaves `transfer` after both it and the root have entered
    send, recv                               the sender does not wait; the receiver leaves `transfer` after both entered
    all_to_all with unequal sizes            each rank leaves `transfer` after it has entered; no rank waits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.testing.job_plan import BEGIN_NS, HostClock

Topology: TypeAlias = Literal["world", "grid", "chain"]
"""Which hosts communicate.

`grid`: the hosts form a grid. Each row of hosts performs all-reduces, each column performs reduce-scatters, neighbouring
hosts send and receive, and all hosts take part in broadcasts and all-to-alls. `world`: as in `grid`, with an additional
all-reduce among all hosts. `chain`: only pairs of neighbouring hosts communicate."""

CALL_SCHEMA = {
    "rank": pl.Int32,
    "instance": pl.Int64,
    "family": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "in_bytes": pl.Int64,
    "out_bytes": pl.Int64,
}
"""The columns of matched calls; all calls that belong to one operation of a group have the same `instance`."""

_TOPOLOGIES: tuple[Topology, ...] = ("world", "grid", "chain")
_MANY_HOSTS = 32
_SOMETIMES = 0.4
_TYPICAL_COMPUTATION_NS = 300_000
_END_JITTER_NS = 4_000
_SHORTEST_NS = 12_000
_BYTES = 1 << 20

_Int64: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CallsOptions:
    """The options of simulated calls.

    hosts, ranks_per_host  the size of the job
    operations             the number of simulated operations of all kinds
    topology               which groups cross hosts
    clock_offset_ns        the largest error of a clock at the start, in either direction
    clock_drift_ppb        the largest drift of a clock, in either direction, in parts per 10^9
    slow_host              the host whose ranks compute `slow_ns` longer before every operation; None if no host is slow
    missing_fraction       the fraction of calls that are not recorded
    late_host              the host whose recording begins after a third of the operations; None if no host is late
    seed                   the seed of all random numbers
    """

    hosts: int = 4
    ranks_per_host: int = 2
    operations: int = 80
    topology: Topology = "world"
    clock_offset_ns: int = 2_000_000_000
    clock_drift_ppb: int = 100_000
    slow_host: int | None = None
    slow_ns: int = 1_000_000
    missing_fraction: float = 0.0
    late_host: int | None = None
    seed: int = 0

    @classmethod
    def drawn(cls, seed: int) -> CallsOptions:
        """Draw a random job of 2 to 64 hosts; all kinds of faults may occur, except clocks that jump."""
        dice = np.random.default_rng(seed)
        hosts = int(dice.choice((2, 4, 8, 16, 32, 64)))
        a_host = int(dice.integers(hosts))
        return cls(
            hosts=hosts,
            ranks_per_host=int(dice.choice((1, 2, 4, 8) if hosts < _MANY_HOSTS else (1, 2))),
            operations=int(dice.choice((12, 40, 150))),
            topology=_TOPOLOGIES[int(dice.integers(len(_TOPOLOGIES)))],
            clock_offset_ns=int(dice.choice((0, 1_000_000, 5_000_000_000))),
            clock_drift_ppb=int(dice.choice((0, 10_000, 100_000))),
            slow_host=a_host if dice.random() < _SOMETIMES else None,
            missing_fraction=float(dice.choice((0.0, 0.02, 0.2))),
            late_host=(a_host + 1) % hosts if dice.random() < _SOMETIMES else None,
            seed=seed,
        )

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.hosts * self.ranks_per_host


class JobCalls(NamedTuple):
    """Simulated calls, and the simulated clocks of the hosts.

    calls        the calls with the columns of `CALL_SCHEMA`, sorted by rank and start
    hosts        name of the host of each rank
    clocks       clock of each host
    shortest_ns  the shortest true time from the last rank's start to the first rank's end, over all collectives that
                 span several hosts and that all ranks leave together; no collective can bound the error of a clock
                 more tightly than this time
    """

    calls: pl.DataFrame
    hosts: dict[int, str]
    clocks: dict[str, HostClock]
    shortest_ns: int

    def true_correction_ns(self, host: str, shown_ns: int, reference: str) -> float:
        """Return what to add to a time on a host's clock to convert it to the time on the reference host's clock."""
        clock, other = self.clocks[host], self.clocks[reference]
        passed = (shown_ns - BEGIN_NS - clock.offset_ns) / (1 + clock.drift_ppb * 1e-9)
        shown_since_begin = float(shown_ns - BEGIN_NS)
        return other.offset_ns + passed * (1 + other.drift_ppb * 1e-9) - shown_since_begin

    def true_rate(self, host: str, reference: str) -> float:
        """Return how many seconds the reference host's clock advances while this host's clock advances one second."""
        return (1 + self.clocks[reference].drift_ppb * 1e-9) / (1 + self.clocks[host].drift_ppb * 1e-9)


class _Times(NamedTuple):
    """The calls of one operation in all groups: their rank, instance, and true start and end times."""

    rank: _Int64
    instance: _Int64
    family: list[str]
    start: _Int64
    end: _Int64
    in_bytes: _Int64


def simulated_calls(options: CallsOptions) -> JobCalls:
    """Simulate the calls of a job; equal options give equal calls.

    >>> job = simulated_calls(CallsOptions(hosts=2, ranks_per_host=1, operations=10))
    >>> sorted(job.hosts.items())
    [(0, 'host0'), (1, 'host1')]
    """
    dice = np.random.default_rng(options.seed)
    course = _Course(options, dice)
    for number in range(options.operations):
        course.perform(number)
    clocks = _clocks(options, dice)
    return JobCalls(
        calls=_as_recorded(course.true_calls(), options, clocks, dice),
        hosts={rank: _host_name(rank // options.ranks_per_host) for rank in range(options.ranks)},
        clocks={_host_name(host): clock for host, clock in enumerate(clocks)},
        shortest_ns=course.shortest_ns,
    )


class _Course:
    """The progress of a job in true time: all calls so far, and when each rank can compute again."""

    def __init__(self, options: CallsOptions, dice: np.random.Generator) -> None:
        self.options, self.dice = options, dice
        self.rank: _Int64 = np.arange(options.ranks, dtype=np.int64)
        self.host: _Int64 = self.rank // options.ranks_per_host
        self.free: _Int64 = np.full(options.ranks, BEGIN_NS, np.int64)
        self.done: list[_Times] = []
        self.instance_count = 0
        self.shortest_ns = np.iinfo(np.int64).max

    def perform(self, number: int) -> None:
        """Let each rank that takes part in the next operation compute, and then call the operation."""
        kinds = _KINDS[self.options.topology]
        family, layout = kinds[number % len(kinds)]
        group = _groups(layout, self.host, self.rank % self.options.ranks_per_host, number // len(kinds))
        members = np.flatnonzero(group >= 0)
        if not len(members):
            return
        start = (self.free + self._computation())[members]
        times = self._times(family, group[members], members, start)
        self.free[members] = times.end
        self.done.append(times)
        self.instance_count += int(group.max(initial=-1)) + 1

    def true_calls(self) -> pl.DataFrame:
        """Return all calls so far, with true times."""
        tables = [
            pl.DataFrame(
                {
                    "rank": times.rank,
                    "instance": times.instance,
                    "family": times.family,
                    "start_ns": times.start,
                    "end_ns": times.end,
                    "in_bytes": times.in_bytes,
                    "out_bytes": np.full(len(times.rank), _BYTES),
                },
                schema=CALL_SCHEMA,
            )
            for times in self.done
            if len(times.rank)
        ]
        return pl.concat(tables)

    def _computation(self) -> _Int64:
        """Return how long each rank computes before its next call."""
        times = self.dice.exponential(_TYPICAL_COMPUTATION_NS, self.options.ranks)
        slow_ns = np.where(self.host == self.options.slow_host, self.options.slow_ns, 0)
        return (times + slow_ns).astype(np.int64)

    def _times(self, family: str, group: _Int64, members: _Int64, start: _Int64) -> _Times:
        transfer = (_SHORTEST_NS + self.dice.exponential(80_000, int(group.max(initial=-1)) + 1)).astype(np.int64)
        jitter = self.dice.integers(0, _END_JITTER_NS, len(group))
        end = _END[family](group, start, transfer[group]) + jitter
        in_bytes = np.full(len(group), _BYTES)
        families = [family] * len(group)
        if family == "all_to_all":
            in_bytes += members
        elif family == "send":
            families = ["send" if is_first else "recv" for is_first in _is_first(group)]
        else:
            self._note_shortest(family, group, start, end, members)
        return _Times(members, self.instance_count + group, families, start, end, in_bytes)

    def _note_shortest(self, family: str, group: _Int64, start: _Int64, end: _Int64, members: _Int64) -> None:
        if family not in _ALL_LEAVE_TOGETHER:
            return
        last_start, first_end = _largest(group, start), -_largest(group, -end)
        host = self.host[members]
        crosses_hosts = _largest(group, host) > -_largest(group, -host)
        length = (first_end - last_start)[crosses_hosts]
        self.shortest_ns = min(self.shortest_ns, int(length.min(initial=self.shortest_ns)))


def _all_wait(group: _Int64, start: _Int64, transfer: _Int64) -> _Int64:
    end: _Int64 = _largest(group, start)[group] + transfer
    return end


def _wait_for_first(group: _Int64, start: _Int64, transfer: _Int64) -> _Int64:
    """Return when each rank leaves if it waits only for the first rank of its group (the root or the sender)."""
    root = np.zeros(int(group.max()) + 1, np.int64)
    root[group[_is_first(group)]] = start[_is_first(group)]
    end: _Int64 = np.maximum(root[group], start) + transfer
    return end


def _nobody_waits(_group: _Int64, start: _Int64, transfer: _Int64) -> _Int64:
    return start + transfer


def _largest(group: _Int64, values: _Int64) -> _Int64:
    largest = np.full(int(group.max()) + 1, np.iinfo(np.int64).min // 4)
    np.maximum.at(largest, group, values)
    return largest


def _is_first(group: _Int64) -> npt.NDArray[np.bool_]:
    first = np.zeros(len(group), np.bool_)
    first[np.unique(group, return_index=True)[1]] = True
    return first


_ALL_LEAVE_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
_END = {
    "all_reduce": _all_wait,
    "all_gather": _all_wait,
    "reduce_scatter": _all_wait,
    "broadcast": _wait_for_first,
    "send": _wait_for_first,
    "all_to_all": _nobody_waits,
}

_GRID = (
    ("all_gather", "host"),
    ("all_reduce", "row"),
    ("reduce_scatter", "column"),
    ("send", "next host"),
    ("broadcast", "all"),
    ("all_to_all", "all"),
)
_KINDS: dict[Topology, tuple[tuple[str, str], ...]] = {
    "world": (("all_reduce", "all"), *_GRID),
    "grid": _GRID,
    "chain": (("all_reduce", "pair"), ("all_reduce", "other pair"), ("send", "next host"), ("all_gather", "host")),
}

_ROW = 4


def _groups(layout: str, host: _Int64, local: _Int64, turn: int) -> _Int64:
    """Return the group number of each rank, or -1 for ranks that do not call the operation."""
    rank_count, per_host = len(host), int(local.max()) + 1
    if layout == "all":
        return np.zeros(rank_count, np.int64)
    if layout == "host":
        return host
    if layout == "row":
        return (host // _ROW) * per_host + local
    if layout == "column":
        return (host % _ROW) * per_host + local
    shift = turn % 2 if layout == "next host" else int(layout == "other pair")
    pair = (host + shift) // 2
    alone = np.bincount(pair, minlength=int(pair.max()) + 1)[pair] == per_host
    chosen: _Int64 = np.where(alone, -1, pair * per_host + local)
    return chosen


def _clocks(options: CallsOptions, dice: np.random.Generator) -> list[HostClock]:
    offsets = dice.integers(-options.clock_offset_ns, options.clock_offset_ns + 1, options.hosts)
    drifts = dice.integers(-options.clock_drift_ppb, options.clock_drift_ppb + 1, options.hosts)
    return [HostClock(int(offset), int(drift)) for offset, drift in zip(offsets, drifts, strict=True)]


def _as_recorded(
    true_calls: pl.DataFrame, options: CallsOptions, clocks: list[HostClock], dice: np.random.Generator
) -> pl.DataFrame:
    """Return the calls that trace files would contain: only the recorded calls, with times on the hosts' clocks."""
    host = true_calls["rank"].to_numpy() // options.ranks_per_host
    shown = true_calls.with_columns(
        pl.Series(column, _shown(true_calls[column].to_numpy(), host, clocks)) for column in ("start_ns", "end_ns")
    )
    is_recorded = dice.random(shown.height) >= options.missing_fraction
    if options.late_host is not None:
        begin = np.quantile(true_calls["start_ns"].to_numpy() - BEGIN_NS, 1 / 3) + BEGIN_NS
        is_recorded &= (host != options.late_host) | (true_calls["start_ns"].to_numpy() >= begin)
    return shown.filter(is_recorded).sort("rank", "start_ns")


def _shown(true_ns: _Int64, host: _Int64, clocks: list[HostClock]) -> _Int64:
    """Return, for each true time, the time that the clock of its host shows; see `HostClock.shows`."""
    offset = np.array([clock.offset_ns for clock in clocks])[host]
    drift = np.array([clock.drift_ppb for clock in clocks])[host]
    shown: _Int64 = true_ns + offset + (true_ns - BEGIN_NS) * drift // 1_000_000_000
    return shown


def _host_name(number: int) -> str:
    return f"host{number}"
