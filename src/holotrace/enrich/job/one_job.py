"""Finds reasons why the traces of a folder may not be one complete job.

A folder may contain files of different jobs, and files may be cut off or unreadable. The results for such a folder
would look like results for one job, so the reasons to doubt them are shown first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from holotrace.enrich.job.findings import ranks_text
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.ingest.trace_writer import other_writer, other_writer_text
from holotrace.ingest.worker_names import worker_of
from holotrace.locations import name_of
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.health import Finding
from holotrace.store.trace import RankTrace, SkippedFile, Trace
from holotrace.units import counted

FARTHEST_APART_NS = 10_000_000_000
"""If more time than this lies between two recordings, they belong to different jobs. Smaller gaps may be due to the
ranks' clocks, which may differ by seconds."""

MOST_NAMED = 4
"""A sentence names at most this many groups, files or ranks."""

CUT_OFF_KINDS = ("truncated_json", "truncated_compression")
"""Kinds of findings about a file that ends too early, within an event."""

_NO_END = "missing_end"
"""Kind of finding about a file that ends too early, but after a complete event."""

_RUNTIMES = {"cuda_runtime_version": "CUDA", "hip_runtime_version": "HIP"}
_TIME_OF_DAY_NS = 10**17
"""Larger times are Unix times; smaller ones are relative to the start of the recording or the boot of the machine."""

_PROPERTIES: dict[str, Callable[[FileFacts], Hashable | None]] = {
    "the world sizes": lambda of_rank: of_rank.world_size,
    "the backends": lambda of_rank: of_rank.backend,
}
HARDWARE: dict[str, Callable[[FileFacts], Hashable | None]] = {
    "the GPUs": lambda of_rank: " and ".join(of_rank.gpus) or None,
    "the runtimes": lambda of_rank: of_rank.runtime or None,
}
"""Hardware properties, which all ranks of a job usually share."""

_MONTH = re.compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?=[_-])", re.IGNORECASE)


@dataclass(frozen=True)
class Wholeness:
    """The reasons why the traces may not be one complete job; all fields are empty if there are none.

    unrelated   a sentence that explains why the ranks do not look like one job
    jobs        if unrelated, a text with the ranks and the files of each job
    foreign     sentences about files that PyTorch's profiler did not write
    is_foreign  whether PyTorch's profiler wrote none of the files
    cut_off     {rank: a sentence about its file, which ends too early}
    cpu_only    ranks in `cut_off` whose files end before any device work
    left_out    sentences about files that exist but are missing from the trace
    """

    unrelated: str = ""
    jobs: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    is_foreign: bool = False
    cut_off: dict[int, str] = field(default_factory=dict)
    cpu_only: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def has_diagnosis(self) -> bool:
        """Whether the traces can be diagnosed: they look like one job, and PyTorch's profiler wrote some of them."""
        return not self.unrelated and not self.is_foreign

    @property
    def sentences(self) -> tuple[str, ...]:
        """All reasons, the most important first; if many files are cut off, only a few of them are listed."""
        cut = list(self.cut_off.values())
        more_count = len(cut) - MOST_NAMED
        are = "file is" if more_count == 1 else "files are"
        more = [f"{more_count:,} more {are} cut off; run holotrace check to see where"]
        first = (*cut[:MOST_NAMED], *(more if len(cut) > MOST_NAMED else ()))
        told = (*filter(None, [self.unrelated]), *self.foreign, *first, *self.left_out)
        return tuple(f"{reason[0].upper()}{reason[1:]}." for reason in told)


@dataclass(frozen=True)
class FileFacts:
    """What one file shows about its job, and how the file ends; fields are None or empty if unknown."""

    world_size: int | None
    backend: str | None
    gpus: tuple[str, ...]
    runtime: str
    first_ns: int | None
    last_ns: int | None
    cut_off: str
    has_device_work: bool
    has_operators: bool = True
    other_writer: str = ""


def wholeness(trace: Trace, *, executor: Executor = IN_PROCESS) -> Wholeness:
    """Return the reasons why the traces may not be one complete job."""
    visit = trace.visit(file_facts, executor)
    return wholeness_from(visit.results, visit.trace)


def wholeness_from(facts: Mapping[int, FileFacts], trace: Trace) -> Wholeness:
    """Derive the result of `wholeness` from the `file_facts` of each rank and the skipped files of the trace."""
    cut_off = {rank: of_rank.cut_off for rank, of_rank in facts.items() if of_rank.cut_off}
    mixed = unrelated(facts)
    return Wholeness(
        unrelated=mixed,
        jobs=_jobs_in_words(facts, trace) if mixed else (),
        foreign=_foreign(facts, trace),
        is_foreign=bool(facts)
        and all(of_rank.other_writer and not of_rank.has_operators for of_rank in facts.values()),
        cut_off=cut_off,
        cpu_only=tuple(rank for rank in cut_off if not facts[rank].has_device_work),
        left_out=(*_unreadable(trace.skipped), *_doubles(trace)),
    )


def _jobs_in_words(facts: Mapping[int, FileFacts], trace: Trace) -> tuple[str, ...]:
    return tuple(
        f"{ranks_text(ranks)}: {_paths([trace.ranks[rank].source for rank in ranks])}" for ranks in jobs_of(facts)
    )


def _foreign(facts: Mapping[int, FileFacts], trace: Trace) -> tuple[str, ...]:
    """Name the files that other programs wrote, in one sentence per program."""
    ranks: dict[str, list[int]] = {}
    for rank, of_rank in facts.items():
        if of_rank.other_writer:
            ranks.setdefault(of_rank.other_writer, []).append(rank)
    return tuple(
        f"{ranks_text(sorted(of_writer))} ({_names(of_writer, trace)}): {other_writer_text(writer)}"
        for writer, of_writer in ranks.items()
    )


def _names(ranks: Sequence[int], trace: Trace) -> str:
    more = f" and {len(ranks) - MOST_NAMED:,} more" if len(ranks) > MOST_NAMED else ""
    return f"{', '.join(name_of(trace.ranks[rank].source) for rank in ranks[:MOST_NAMED])}{more}"


def _paths(sources: list[str]) -> str:
    more = f" and {len(sources) - MOST_NAMED:,} more" if len(sources) > MOST_NAMED else ""
    return f"{' '.join(sources[:MOST_NAMED])}{more}"


def file_facts(rank_trace: RankTrace) -> FileFacts:
    """Return the facts about a rank's file that are compared between ranks."""
    whole, header = rank_trace.unselected, rank_trace.header
    events = whole.table("events", ["start_ns", "duration_ns"])
    counts = whole.event_counts()
    names = {gpu["name"] for gpu in header.device_properties if isinstance(gpu.get("name"), str)}
    runtimes = [f"{name} {header.raw[key]}" for key, name in _RUNTIMES.items() if isinstance(header.raw.get(key), int)]
    return FileFacts(
        world_size=header.world_size,
        backend=header.backend,
        gpus=tuple(sorted(names)),
        runtime=", ".join(runtimes),
        first_ns=_number(events["start_ns"].min()),
        last_ns=_number((events["start_ns"] + events["duration_ns"]).max()),
        cut_off=cut_off_text(rank_trace),
        has_device_work=any(counts.get(kind) for kind in DEVICE_WORK_KINDS),
        has_operators=EventKind.CPU_OP in counts,
        other_writer=other_writer(rank_trace),
    )


def _number(value: Any) -> int | None:  # noqa: ANN401 -- what Polars gives for a column of any type
    return value if isinstance(value, int) else None


def cut_off_text(rank_trace: RankTrace) -> str:
    """Return a sentence about where the file was cut off; empty if it is complete."""
    by_kind = {finding.kind: finding for finding in rank_trace.health.findings}
    named = next((by_kind[kind] for kind in CUT_OFF_KINDS if kind in by_kind), None)
    if named is None and rank_trace.header.raw:  # a file that is only a list of events may omit the closing bracket
        named = by_kind.get(_NO_END)
    return "" if named is None else _where(rank_trace, named)


def _where(rank_trace: RankTrace, finding: Finding) -> str:
    at = f", at byte {finding.offsets[0]:,} of its text" if finding.offsets else ""
    events = rank_trace.health.event_count
    name = name_of(rank_trace.source)
    return f"rank {rank_trace.rank}'s file is cut off after {counted(events, 'event')}{at} ({name}); what came later is missing"


def unrelated(facts: Mapping[int, FileFacts]) -> str:
    """Return a sentence that says why the traces do not look like one job; empty if they do."""
    differences = [
        _times(facts),
        _single(facts),
        *(_difference(facts, what, of) for what, of in _PROPERTIES.items()),
        *(() if _is_surely_one_job(facts) else (_difference(facts, what, of) for what, of in HARDWARE.items())),
    ]
    known = [difference for difference in differences if difference]
    if not known:
        return ""
    return f"these {len(facts):,} traces do not look like one job: {'; '.join(known)}"


def jobs_of(facts: Mapping[int, FileFacts]) -> list[list[int]]:
    """Divide the ranks of unrelated traces into jobs; ranks whose known facts agree form one job."""
    times = _recorded_together(facts)
    jobs: list[tuple[dict[str, Hashable], list[int]]] = []
    for rank, of_rank in facts.items():
        said = {what: of(of_rank) for what, of in {**_PROPERTIES, **HARDWARE}.items()} | {"time": times.get(rank)}
        known = {what: value for what, value in said.items() if value is not None}
        is_alone = of_rank.world_size == 1
        fitting = (
            job for job in jobs if not is_alone and all(job[0].get(what, known[what]) == known[what] for what in known)
        )
        properties, ranks = next(fitting, ({}, []))
        if not ranks:
            jobs.append((properties, ranks))
        properties.update(known)
        ranks.append(rank)
    return [ranks for _, ranks in jobs]


def _single(facts: Mapping[int, FileFacts]) -> str:
    """Report the files with a world size of 1, if there are several."""
    alone = [rank for rank, of_rank in facts.items() if of_rank.world_size == 1]
    return f"{ranks_text(sorted(alone))} each recorded a world size of 1" if len(alone) > 1 else ""


def _is_surely_one_job(facts: Mapping[int, FileFacts]) -> bool:
    """Return whether all ranks report the same world size, and this size is at least the number of ranks.

    If so, the ranks belong to one job even if they differ in hardware.
    """
    sizes = {of_rank.world_size for of_rank in facts.values()}
    return None not in sizes and len(sizes) == 1 and (sizes.pop() or 0) >= len(facts)


def _difference(facts: Mapping[int, FileFacts], what: str, of: Callable[[FileFacts], Hashable | None]) -> str:
    ranks: dict[Hashable, list[int]] = {}
    for rank, of_rank in facts.items():
        if (value := of(of_rank)) is not None:
            ranks.setdefault(value, []).append(rank)
    return f"{what} are {_groups(ranks.items())}" if len(ranks) > 1 else ""


def _times(facts: Mapping[int, FileFacts]) -> str:
    """Return the times at which the ranks were recorded, if they differ."""
    groups: dict[int, list[int]] = {}
    for rank, first in _recorded_together(facts).items():
        groups.setdefault(first, []).append(rank)
    if len(groups) < 2:  # noqa: PLR2004 -- a single time cannot differ
        return ""
    return f"they were recorded at {_groups((_time_text(first), ranks) for first, ranks in groups.items())}"


def _recorded_together(facts: Mapping[int, FileFacts]) -> dict[int, int]:
    """Group recordings that are close in time; return {rank: start of its group's first recording}, sorted by time."""
    spans = {rank: (of_rank.first_ns, of_rank.last_ns) for rank, of_rank in facts.items()}
    known = sorted(
        (first, last, rank) for rank, (first, last) in spans.items() if first is not None and last is not None
    )
    group_of: dict[int, int] = {}
    group = until = 0
    for first, last, rank in known:
        if not group_of or first - until > FARTHEST_APART_NS:
            group = until = first
        group_of[rank] = group
        until = max(until, last)
    return group_of


def _groups(values: Iterable[tuple[Hashable, list[int]]]) -> str:
    """List the first few values, each with its ranks: `8 (ranks 0-1), 2 (rank 3)`."""
    told = [f"{value} ({ranks_text(sorted(ranks))})" for value, ranks in values]
    more = [f"{len(told) - MOST_NAMED:,} more"] if len(told) > MOST_NAMED else []
    return ", ".join([*told[:MOST_NAMED], *more])


def _time_text(time_ns: int) -> str:
    if time_ns < _TIME_OF_DAY_NS:
        return f"{time_ns / 1e9:,.1f} s"
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=time_ns // 1_000)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _unreadable(skipped: Iterable[SkippedFile]) -> list[str]:
    """Return a list with one sentence that names the unreadable files; an empty list if there are none."""
    files = [file for file in skipped if file.is_unreadable]
    if not files:
        return []
    named = "; ".join(f"{name_of(file.path)} ({_reason(file)})" for file in files[:MOST_NAMED])
    more = f"; {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
    subject = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return [f"{subject} could not be read and {'is' if len(files) == 1 else 'are'} left out: {named}{more}"]


def _reason(file: SkippedFile) -> str:
    return file.reason.removeprefix(f"{file.path} ").removeprefix("cannot be read: ")


def _doubles(trace: Trace) -> list[str]:
    """Warn if several files contain the same rank number, unless their names suggest that one process wrote them."""
    named = {rank: name_of(rank_trace.source) for rank, rank_trace in trace.ranks.items()}
    others = {
        file.rank: name_of(file.path)
        for file in trace.skipped
        if file.rank in named and _unnumbered(file.path) != _unnumbered(trace.ranks[file.rank].source)
    }
    if not others:
        return []
    first = min(others)
    claims = f"several files claim to be {ranks_text(sorted(others))}, such as {named[first]} and {others[first]}"
    return [f"{claims}; the newest file of each rank was used; check whether these files belong together"]


def _unnumbered(path: str) -> str:
    """Return the worker name in a file name, without digits and months, because these differ between recordings."""
    return re.sub(r"\d+", "", _MONTH.sub("", worker_of(path)))
