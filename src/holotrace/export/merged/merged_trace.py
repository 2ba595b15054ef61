"""Write the ranks of a job into one file for Perfetto, on the clock of one host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.clocks.clocks import Clocks, clocks
from holotrace.enrich.across_ranks.clocks.rank_clocks import RankClock, correction_text, rank_clocks
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.across_ranks.matching.matching import Matching, match
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.job.findings import ranks_text
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.export.json_columns import track_texts
from holotrace.export.merged.collective_arrows import collective_arrows
from holotrace.export.merged.path_events import path_events
from holotrace.export.merged.processes import Process, new_pids, pid_step, processes
from holotrace.export.merged.rank_events import Opened, RankPlace, by_name, rank_events
from holotrace.export.new_file import expect_writable, new_large_file
from holotrace.locations import Location, name_of
from holotrace.store.trace import RankTrace, Trace
from holotrace.version import __version__

MERGED_NAME = "merged_ranks.json.gz"
"""Name of the file that `holotrace export` writes; when `open_trace` opens a folder, it skips this file."""

_METHOD = (
    "Times of each host are corrected by offset_ns + drift_ppb * (time - at_ns) / 1e9. Offset and drift are estimated "
    "from the collectives that hosts share: no rank leaves a collective before all ranks have entered it, which limits "
    "the possible offsets. The true offset is within half_width_ns of offset_ns."
)


@dataclass(frozen=True, eq=False)
class MergedTrace(EqualByContent):
    """The result of `write_merged_trace`.

    clocks    {rank: clock}
    per_host  `holotrace.enrich.across_ranks.clocks.clocks.Clocks.per_host`
    findings  calls that could not be matched, and clocks that could not be aligned
    """

    path: Location
    clocks: Mapping[int, RankClock]
    per_host: pl.DataFrame
    findings: tuple[str, ...]


class _Rank(NamedTuple):
    """Facts about a rank, read before its events are written; `tracks` lists each collective's pid and tid as JSON."""

    communication: OfRank
    processes: tuple[Process, ...]
    tracks: pl.DataFrame
    base_ns: int


class PathTables(Protocol):
    """The tables of a critical path through all ranks, as in `JobCriticalPath`."""

    @property
    def path(self) -> pl.DataFrame:
        """The segments of the path."""

    @property
    def hops(self) -> pl.DataFrame:
        """The times at which the path moves from one rank to another."""


def write_merged_trace(  # noqa: PLR0913 -- options by name
    trace: Trace,
    target: Location,
    *,
    critical_path: PathTables | None = None,
    overwrite: bool = False,
    executor: Executor = IN_PROCESS,
    opened: Opened = by_name,
) -> MergedTrace:
    """Write all ranks of a trace into one file in the Chrome trace format, on the clock of one host.

    Names, args and tids stay the same. Times are corrected for each host's clock offset and drift, and rounded to whole
    nanoseconds. Pids and flow ids are replaced by numbers that are unique in the job. Processes are sorted by rank and
    named like `rank 3 GPU 0 (± 12 µs)`, with the uncertainty (half-width) of the clock correction. Flows with the
    category `across_ranks` connect the ranks of each matched collective. Queue lengths and copy bandwidths are added as
    counters. The file's `metadata` contains the offset, half-width and drift of each host.

    Ranks are read and written one after the other, so the rank with the largest file determines how much memory is
    needed.

    Args:
        trace: the ranks; selections of events are ignored.
        target: where to write; compressed if the name ends in `.gz`.
        critical_path: the result of `holotrace.critical_path(trace, across_ranks=True)`, added as a separate process.
            This process has a track for each rank on the path, and arrows where the path moves from one rank to
            another.
        overwrite: replace an existing file.
        executor: reads the communication of the ranks.
        opened: opens the file of a rank.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, or its folder is missing or cannot be written.
        UnreadableTraceError: a file can no longer be read.
        OSError: writing failed; no incomplete file remains.
    """
    expect_writable(target, overwrite=overwrite)
    ranks = trace.map(_of_rank, executor)
    hosts = {rank: known.communication.facts.host for rank, known in ranks.items()}
    matching = match({rank: known.communication for rank, known in ranks.items()})
    compared = clocks(matching.calls, hosts)
    merged = _Merged(trace, ranks, matching, compared, rank_clocks(compared.per_host, hosts), critical_path)
    with new_large_file(target, overwrite=overwrite) as file:
        events = merged.events(opened)
        first = next(events, b"").removeprefix(b",")
        file.writelines(chain([merged.head().encode(), first], events, [b"]}\n"]))
    return MergedTrace(target, merged.clocks, compared.per_host, merged.findings)


def clock_lines(merged: MergedTrace) -> Iterator[str]:
    """Yield, for each host, a line about the correction of its clock."""
    ranks: dict[str, list[int]] = {}
    clocks: dict[str, RankClock] = {}
    for rank, clock in merged.clocks.items():
        ranks.setdefault(clock.host, []).append(rank)
        clocks.setdefault(clock.host, clock)
    if len(ranks) > 1:
        for host, clock in clocks.items():
            yield f"{name_of(host)} ({ranks_text(ranks[host])}): {correction_text(clock)}"


def _of_rank(rank_trace: RankTrace) -> _Rank:
    whole = rank_trace.unselected
    communication = of_rank(whole)
    indexes = communication.calls["event_index"]
    tracks = of_events(whole.table("events", ["event_index", "track_id"]), indexes)["track_id"]
    texts = tracks.to_frame().join(track_texts(whole), on="track_id", how="left", maintain_order="left")
    return _Rank(
        communication,
        processes(whole),
        texts.select(indexes, "pid", "tid"),
        whole.header.base_time_ns,
    )


@dataclass(frozen=True)
class _Merged:
    trace: Trace
    ranks: Mapping[int, _Rank]
    matching: Matching
    compared: Clocks
    clocks: Mapping[int, RankClock]
    critical_path: PathTables | None

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings about calls that could not be matched, and clocks that could not be aligned."""
        return (*self.matching.findings, *self.compared.findings)

    @property
    def base_ns(self) -> int:
        """The base time of the first file. Times are written relative to it, so that they lose no digits as doubles."""
        return next(known.base_ns for known in self.ranks.values())

    def head(self) -> str:
        """Return the JSON text that precedes the events in the file."""
        keys = {
            "schemaVersion": 1,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_ns,
            "metadata": {"clocks": self._metadata()},
        }
        return f'{json.dumps(keys)[:-1]},\n"traceEvents":['

    def events(self, opened: Opened) -> Iterator[bytes]:
        """Yield the events of all ranks and the arrows between ranks as nonempty JSON; a comma precedes each event."""
        step = pid_step(len(known.processes) for known in self.ranks.values())
        pids = {rank: new_pids(rank, known.processes, step) for rank, known in self.ranks.items()}
        for rank, known in self.ranks.items():
            rank_trace = self.trace.ranks[rank]
            place = RankPlace(rank, self.clocks[rank], known.base_ns, self.base_ns, pids[rank])
            yield from filter(None, rank_events(rank_trace, known.processes, place, opened))
            rank_trace.forget()
        tracks = [_new_tracks(rank, known, pids[rank]) for rank, known in self.ranks.items()]
        yield from collective_arrows(self.matching.calls, pl.concat(tracks), self.clocks, self.base_ns)
        if self.critical_path is not None:
            pid = (max(self.ranks) + 1) * step
            for text in path_events(self.critical_path.path, self.critical_path.hops, pid, self.base_ns):
                yield b"," + text.encode()

    def _metadata(self) -> dict[str, Any]:
        ranks: dict[str, list[int]] = {}
        for rank, clock in self.clocks.items():
            ranks.setdefault(clock.host, []).append(rank)
        per_host = self.compared.per_host.to_dicts()
        return {
            "made_by": f"holotrace {__version__}",
            "method": _METHOD,
            "reference_host": name_of(self.compared.reference),
            "closure_error_ns": self.compared.closure_error_ns,
            "hosts": [{**row, "host": name_of(row["host"]), "ranks": ranks[row["host"]]} for row in per_host],
            "files": {rank: name_of(self.trace.ranks[rank].source) for rank in self.ranks},
            "findings": list(self.findings),
        }


def _new_tracks(rank: int, known: _Rank, pids: Mapping[int | str, int]) -> pl.DataFrame:
    by_text = {json.dumps(pid): number for pid, number in pids.items()}
    pid = known.tracks["pid"].replace_strict(by_text, default=None, return_dtype=pl.Int64)
    return known.tracks.with_columns(pid, rank=pl.lit(rank, pl.Int32)).select("rank", "event_index", "pid", "tid")
