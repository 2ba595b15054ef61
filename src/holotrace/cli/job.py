"""Opening a job, and the executor of the work on its ranks, as the options ask."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from holotrace.cli.options import Dask, Mpi, NoCache, OnErrorOption, Ranks, Ray, Sources, Workers, parse_ranks
from holotrace.cli.progress import Display, terminal_display
from holotrace.errors import InvalidOptionError
from holotrace.execution.dask import dask
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.execution.mpi import mpi
from holotrace.execution.processes import default_worker_count, processes
from holotrace.execution.ray import RayExecutor
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import OnError, Trace

_RANKS_WORTH_A_WORKER = 16
_BYTES_WORTH_A_WORKER = 8 << 20
"""A worker takes about as long to start as one analysis of so many small ranks, or of compressed files of so many bytes."""

_MEMORY_PER_BYTE = 16
"""What a worker may need for each byte of a compressed file, all analyses together."""

_COMPRESSION = 16
"""How much smaller a compressed trace is; files of other formats count that much less."""


@dataclass(frozen=True)
class ReadingOptions:
    """What to open, and how."""

    sources: Sources
    ranks: Ranks = None
    no_cache: NoCache = False

    @property
    def title(self) -> str:
        """What the job is called on a page."""
        return self.sources[0] if len(self.sources) == 1 else f"{self.sources[0]} and {len(self.sources) - 1} more"

    def opened(self, display: Display, on_error: OnError) -> Trace:
        """Open the traces."""
        source = self.sources[0] if len(self.sources) == 1 else self.sources
        ranks = None if self.ranks is None else parse_ranks(self.ranks)
        return open_trace(source, ranks=ranks, cache=not self.no_cache, progress=display.reading, on_error=on_error)


@dataclass(frozen=True)
class Execution:
    """Where the work on ranks is done, and what becomes of a rank on which it fails."""

    workers: Workers = None
    dask: Dask = None
    ray: Ray = None
    mpi: Mpi = False
    on_error: OnErrorOption = "skip"

    @contextmanager
    def opened(self, *jobs: ReadingOptions) -> Iterator[tuple[list[Trace], Executor]]:
        """Open the traces of each job, and give the executor for the work on all of them."""
        with terminal_display() as display:
            traces = [job.opened(display, self.on_error) for job in jobs]
            with self._executor(traces) as executor:
                yield traces, display.counted(executor, sum(len(trace.ranks) for trace in traces))

    def _executor(self, traces: Sequence[Trace]) -> AbstractContextManager[Executor]:
        asked = [f"--{name}" for name in ("workers", "dask", "ray", "mpi") if getattr(self, name)]
        if len(asked) > 1:
            message = f"{' and '.join(asked)} are different places to work in; give one of them"
            raise InvalidOptionError(message)
        if self.dask:
            return dask(self.dask)
        if self.ray:
            return RayExecutor(self.ray)
        if self.mpi:
            return mpi()
        workers = self.workers or worthwhile_workers(traces)
        return processes(workers) if workers > 1 else nullcontext(IN_PROCESS)


@dataclass(frozen=True)
class JobOptions:
    """The options that commands on one job take."""

    reading: ReadingOptions
    execution: Execution


@contextmanager
def opened_job(job: JobOptions) -> Iterator[tuple[Trace, Executor]]:
    """Open the traces, and give the executor for the work on them."""
    with job.execution.opened(job.reading) as ((trace,), executor):
        yield trace, executor


@contextmanager
def opened_alone(reading: ReadingOptions) -> Iterator[Trace]:
    """Open the traces for work that is not done rank by rank."""
    with terminal_display() as display:
        yield reading.opened(display, on_error="fail")


def worthwhile_workers(traces: Iterable[Trace]) -> int:
    """Return how many worker processes pay for their start and fit into memory; 1 means this process does the work."""
    sizes = [_compressed_size(rank_trace.source) for trace in traces for rank_trace in trace.ranks.values()]
    worth = int(len(sizes) / _RANKS_WORTH_A_WORKER + sum(sizes) / _BYTES_WORTH_A_WORKER)
    if min(worth, len(sizes)) <= 1:
        return 1
    return min(worth, len(sizes), default_worker_count(max(sizes) * _MEMORY_PER_BYTE))


def _compressed_size(path: str) -> int:
    """Return the bytes of a local file, as if it were compressed; what lies elsewhere counts as one without content."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116 -- the path is that of a file or a URL
    except OSError:
        return 0
    return size // _COMPRESSION if path.endswith(".json") else size
