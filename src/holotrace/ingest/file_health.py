"""The health of a job's files: format, rank, how the rank was determined, and repaired or dropped data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holotrace.errors import HolotraceError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.ingest.rank_names import rank_in_name
from holotrace.ingest.trace_writer import other_writer
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.header import Header
from holotrace.store.health import Finding, state_of
from holotrace.store.trace import RankTrace, Trace

RankOrigin = Literal["distributedInfo", "file name", "collectives", "given or next free number"]
"""How the rank of a file was determined. The last value means that the caller chose the rank, or that the file got the
next free number."""

State = Literal["clean", "repaired", "with losses", "unreadable"]


@dataclass(frozen=True)
class FileHealth:
    """One file of a job.

    path           the path as the user wrote it
    rank           rank of the file; rank_origin: how this number was determined
    format         plain, gzip or zstd
    bytes_read     size of the file; bytes_decoded: size of the decompressed JSON text
    event_count    number of events of every phase
    gpu_event_count  number of kernels, copies and memsets
    options        profiler options that were on during the recording
    findings       data that were repaired or dropped, and other remarks
    other_writer   the program that wrote the file; empty for PyTorch's profiler
    error          why the file could not be read, else None; if set, the fields from format to findings are empty or 0
    """

    path: str
    rank: int
    rank_origin: RankOrigin
    format: str = ""
    bytes_read: int = 0
    bytes_decoded: int = 0
    event_count: int = 0
    gpu_event_count: int = 0
    options: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    other_writer: str = ""
    error: str | None = None

    @property
    def state(self) -> State:
        """The overall state of the file in one or two words."""
        return state_of(self.findings) if self.error is None else "unreadable"


def file_health(trace: Trace, *, executor: Executor = IN_PROCESS) -> tuple[FileHealth, ...]:
    """Return the health of each file of a job, sorted by rank; `error` is set for files that cannot be read."""
    return tuple(trace.map(health_of_rank, executor).values())


def health_of_rank(rank_trace: RankTrace) -> FileHealth:
    """Return the health of a rank's file."""
    try:
        return _of_readable(rank_trace)
    except HolotraceError as error:
        return FileHealth(rank_trace.source, rank_trace.rank, _origin(rank_trace, None), error=str(error))


def _of_readable(rank_trace: RankTrace) -> FileHealth:
    health, header = rank_trace.health, rank_trace.header
    return FileHealth(
        path=rank_trace.source,
        rank=rank_trace.rank,
        rank_origin=_origin(rank_trace, header),
        format=health.format,
        bytes_read=health.bytes_read,
        bytes_decoded=health.bytes_decoded,
        event_count=health.event_count,
        gpu_event_count=sum(rank_trace.event_counts().get(kind, 0) for kind in DEVICE_WORK_KINDS),
        options=tuple(name for name, is_on in header.options.items() if is_on),
        findings=health.findings,
        other_writer=other_writer(rank_trace),
    )


def _origin(rank_trace: RankTrace, header: Header | None) -> RankOrigin:
    """Return how the rank was determined; the order of the checks is that of `holotrace.ingest.discover`."""
    rank = rank_trace.rank
    if header is not None and header.rank == rank:
        return "distributedInfo"
    if rank_in_name(rank_trace.source) == rank:
        return "file name"
    named = header is not None and rank in rank_trace.table("collectives", ["rank"]).get_column("rank")
    return "collectives" if named else "given or next free number"
