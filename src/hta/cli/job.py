"""Opening a job, and the processes that work on it, as the options ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hta.cli.options import parse_ranks
from hta.cli.progress import counted, terminal_progress
from hta.execution.executor import IN_PROCESS, Executor
from hta.execution.processes import processes
from hta.ingest.open_trace import open_trace
from hta.store.trace import Trace


@dataclass(frozen=True)
class JobOptions:
    """The options that all commands take."""

    sources: Sequence[str]
    ranks: str | None
    workers: int | None
    no_cache: bool

    @property
    def title(self) -> str:
        """What the job is called on a page."""
        return self.sources[0] if len(self.sources) == 1 else f"{self.sources[0]} and {len(self.sources) - 1} more"


@contextmanager
def opened_job(options: JobOptions) -> Iterator[tuple[Trace, Executor]]:
    """Open the traces, and give the executor for the work on them."""
    source = options.sources[0] if len(options.sources) == 1 else list(options.sources)
    ranks = None if options.ranks is None else parse_ranks(options.ranks)
    trace = open_trace(source, ranks=ranks, cache=not options.no_cache, progress=terminal_progress())
    with _executor(options.workers) as executor:
        yield trace, executor


@contextmanager
def _executor(workers: int | None) -> Iterator[Executor]:
    if workers is None:
        yield IN_PROCESS
        return
    with processes(workers) as pool, counted(pool) as executor:
        yield executor
