"""What keeps the traces of a folder from being the whole of one job.

Files of different jobs that lie in one folder, files that are cut off, and files that cannot be read: a verdict over what
is left would pass for one on the job, so whoever shows it says these first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from holotrace.enrich.job.findings import ranks_text
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.ingest.worker_names import worker_of
from holotrace.locations import name_of
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.health import Finding
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, SkippedFile, Trace

FARTHEST_APART_NS = 10_000_000_000
"""Ranks of one job record at the same time; their clocks may differ by seconds."""

MOST_NAMED = 4
"""Groups, files or ranks named in one sentence."""

CUT_OFF_KINDS = ("truncated_json", "truncated_compression")
"""Kinds of findings that say that a file ends too early, with a part of an event lost."""

_NO_END = "missing_end"
"""The end is missing, but no part of an event is lost."""

_RUNTIMES = {"cuda_runtime_version": "CUDA", "hip_runtime_version": "HIP"}
_TIME_OF_DAY_NS = 10**17
"""Later times count from 1970, earlier ones from some start of the recording."""

_MONTH = re.compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?=[_-])", re.IGNORECASE)


@dataclass(frozen=True)
class Wholeness:
    """What is known to keep the traces from being one whole job; all empty for one that is whole.

    unrelated   why the ranks do not look like one job, in one sentence
    cut_off     one sentence for each file that ends too early, by its rank
    cpu_only    ranks among `cut_off` whose file ends before any device work
    left_out    what was found and is missing, in sentences
    """

    unrelated: str = ""
    cut_off: dict[int, str] = field(default_factory=dict)
    cpu_only: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in the order in which it matters; of many files that are cut off the first."""
        cut = list(self.cut_off.values())
        more = [f"{len(cut) - MOST_NAMED:,} more files are cut off; holotrace check says where"]
        first = (*cut[:MOST_NAMED], *(more if len(cut) > MOST_NAMED else ()))
        told = (*filter(None, [self.unrelated]), *first, *self.left_out)
        return tuple(f"{each[0].upper()}{each[1:]}." for each in told)


@dataclass(frozen=True)
class _Facts:
    """What one file says about its job and its end; None and empty stand for unknown."""

    world_size: int | None
    backend: str | None
    gpus: tuple[str, ...]
    runtime: str
    first_ns: int | None
    last_ns: int | None
    cut_off: str
    has_device_work: bool


def wholeness(trace: Trace, *, executor: Executor = IN_PROCESS) -> Wholeness:
    """Say what keeps the traces from being one whole job; quiet where nothing is known to."""
    return wholeness_plan(trace).run(trace, executor)


def wholeness_plan(trace: Trace) -> Plan[_Facts, Wholeness]:
    """Return the two halves of `wholeness`; the second also looks at the files of the trace that were skipped."""
    return Plan(_facts, partial(_whole, trace))


def _whole(trace: Trace, facts: Mapping[int, _Facts]) -> Wholeness:
    cut_off = {rank: each.cut_off for rank, each in facts.items() if each.cut_off}
    return Wholeness(
        unrelated=_unrelated(facts),
        cut_off=cut_off,
        cpu_only=tuple(rank for rank in cut_off if not facts[rank].has_device_work),
        left_out=(*_unreadable(trace.skipped), *_doubles(trace)),
    )


def _facts(rank_trace: RankTrace) -> _Facts:
    whole, header = rank_trace.unselected, rank_trace.header
    events = whole.table("events", ["start_ns", "duration_ns"])
    counts = whole.event_counts()
    names = {each["name"] for each in header.device_properties if isinstance(each.get("name"), str)}
    runtimes = [f"{name} {header.raw[key]}" for key, name in _RUNTIMES.items() if isinstance(header.raw.get(key), int)]
    return _Facts(
        world_size=header.world_size,
        backend=header.backend,
        gpus=tuple(sorted(names)),
        runtime=", ".join(runtimes),
        first_ns=_number(events["start_ns"].min()),
        last_ns=_number((events["start_ns"] + events["duration_ns"]).max()),
        cut_off=_cut_off(rank_trace),
        has_device_work=any(counts.get(kind) for kind in DEVICE_WORK_KINDS),
    )


def _number(value: Any) -> int | None:  # noqa: ANN401 -- what Polars gives for a column of any type
    return value if isinstance(value, int) else None


def _cut_off(rank_trace: RankTrace) -> str:
    """Say that a file ends too early, and where."""
    found = {each.kind: each for each in rank_trace.health.findings}
    named = next((found[kind] for kind in CUT_OFF_KINDS if kind in found), None)
    if named is None and rank_trace.header.raw:  # the brackets of a list alone may be left open
        named = found.get(_NO_END)
    return "" if named is None else _where(rank_trace, named)


def _where(rank_trace: RankTrace, finding: Finding) -> str:
    at = f", at byte {finding.offsets[0]:,} of its text" if finding.offsets else ""
    events = rank_trace.health.event_count
    name = name_of(rank_trace.source)
    return f"rank {rank_trace.rank}'s file is cut off after {events:,} events{at} ({name}); what came later is missing"


def _unrelated(facts: Mapping[int, _Facts]) -> str:
    """Say in what the ranks differ that one job has in common."""
    differences = [
        _times(facts),
        _difference(facts, "the world sizes", lambda each: each.world_size),
        _difference(facts, "the GPUs", lambda each: " and ".join(each.gpus) or None),
        _difference(facts, "the backends", lambda each: each.backend),
        _difference(facts, "the runtimes", lambda each: each.runtime or None),
    ]
    known = [each for each in differences if each]
    if not known:
        return ""
    return f"these {len(facts):,} traces do not look like one job: {'; '.join(known)}"


def _difference(facts: Mapping[int, _Facts], what: str, of: Callable[[_Facts], Hashable | None]) -> str:
    ranks: dict[Hashable, list[int]] = {}
    for rank, each in facts.items():
        if (value := of(each)) is not None:
            ranks.setdefault(value, []).append(rank)
    return f"{what} are {_groups(ranks.items())}" if len(ranks) > 1 else ""


def _times(facts: Mapping[int, _Facts]) -> str:
    """Say when the ranks were recorded, where that was at different times."""
    spans = {rank: (each.first_ns, each.last_ns) for rank, each in facts.items()}
    known = sorted(
        (first, last, rank) for rank, (first, last) in spans.items() if first is not None and last is not None
    )
    groups: list[tuple[int, list[int]]] = []
    until = 0
    for first, last, rank in known:
        if not groups or first - until > FARTHEST_APART_NS:
            groups.append((first, []))
            until = last
        groups[-1][1].append(rank)
        until = max(until, last)
    if len(groups) < 2:  # noqa: PLR2004 -- one time is no difference
        return ""
    return f"they were recorded at {_groups((_time_text(first), ranks) for first, ranks in groups)}"


def _groups(values: Iterable[tuple[Hashable, list[int]]]) -> str:
    """Return `8 (rank 0, 1), 2 (rank 3)`; of many the first."""
    told = [f"{value} ({ranks_text(sorted(ranks))})" for value, ranks in values]
    more = [f"{len(told) - MOST_NAMED:,} more"] if len(told) > MOST_NAMED else []
    return ", ".join([*told[:MOST_NAMED], *more])


def _time_text(time_ns: int) -> str:
    if time_ns < _TIME_OF_DAY_NS:
        return f"{time_ns / 1e9:,.1f} s"
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=time_ns // 1_000)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _unreadable(skipped: Iterable[SkippedFile]) -> list[str]:
    """Name files that cannot be read and would be part of the job."""
    files = [each for each in skipped if each.is_unreadable]
    if not files:
        return []
    named = "; ".join(f"{name_of(each.path)} ({_reason(each)})" for each in files[:MOST_NAMED])
    more = f"; {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
    subject = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return [f"{subject} could not be read and {'is' if len(files) == 1 else 'are'} missing here: {named}{more}"]


def _reason(file: SkippedFile) -> str:
    return file.reason.removeprefix(f"{file.path} ").removeprefix("cannot be read: ")


def _doubles(trace: Trace) -> list[str]:
    """Name ranks that several files claim which are not called like recordings of one process."""
    named = {rank: name_of(each.source) for rank, each in trace.ranks.items()}
    others = {
        each.rank: name_of(each.path)
        for each in trace.skipped
        if each.rank in named and _unnumbered(each.path) != _unnumbered(trace.ranks[each.rank].source)
    }
    if not others:
        return []
    first = min(others)
    claims = f"several files claim to be {ranks_text(sorted(others))}, such as {named[first]} and {others[first]}"
    return [f"{claims}; the newest of each was taken, so look whether they belong together"]


def _unnumbered(path: str) -> str:
    """Return the name of who recorded a file without its numbers, which change from one recording to the next."""
    return re.sub(r"\d+", "", _MONTH.sub("", worker_of(path)))
