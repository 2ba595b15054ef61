"""Open the traces that the options name, together with an executor that processes their ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from holotrace.cli.option_groups import read_or_refuse
from holotrace.cli.options import (
    Capture,
    Control,
    ControlCapture,
    ControlRanks,
    Dask,
    Mpi,
    NoCache,
    OnErrorOption,
    Ranks,
    Ray,
    Sources,
    Test,
    TestCapture,
    TestRanks,
    Workers,
)
from holotrace.cli.progress import Display, terminal_display
from holotrace.errors import InvalidOptionError
from holotrace.execution.dask import dask
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.execution.mpi import mpi
from holotrace.execution.processes import processes
from holotrace.execution.ray import RayExecutor
from holotrace.ingest.open_trace import open_trace
from holotrace.questions.options import numbers
from holotrace.store.trace import OnError, Trace
from holotrace.whole_job.workers import worthwhile_workers


@dataclass(frozen=True)
class ReadingOptions:
    """The options for opening traces."""

    sources: Sources
    ranks: Ranks = None
    capture: Capture = None
    no_cache: NoCache = False

    @property
    def title(self) -> str:
        """The job's title on a page: the first source, and the number of other sources if there are any."""
        return self.sources[0] if len(self.sources) == 1 else f"{self.sources[0]} and {len(self.sources) - 1} more"

    def opened(self, display: Display, on_error: OnError) -> Trace:
        """Open the traces."""
        source = self.sources[0] if len(self.sources) == 1 else self.sources
        ranks = None if self.ranks is None else read_or_refuse(numbers, self.ranks)
        return open_trace(
            source,
            ranks=ranks,
            capture=self.capture or None,
            cache=not self.no_cache,
            progress=display.reading,
            on_error=on_error,
        )


@dataclass(frozen=True)
class Execution:
    """The options that select where the ranks are processed, and what happens if a rank fails."""

    workers: Workers = None
    dask: Dask = None
    ray: Ray = None
    mpi: Mpi = False
    on_error: OnErrorOption = "skip"

    @contextmanager
    def opened(self, *jobs: ReadingOptions) -> Iterator[tuple[list[Trace], Executor]]:
        """Open the traces of each job, with one executor for all of them."""
        with terminal_display() as display:
            traces = [job.opened(display, self.on_error) for job in jobs]
            with self._executor(traces) as executor:
                yield traces, display.counted(executor, sum(len(trace.ranks) for trace in traces))

    def _executor(self, traces: Sequence[Trace]) -> AbstractContextManager[Executor]:
        asked = [f"--{name}" for name in ("workers", "dask", "ray", "mpi") if getattr(self, name)]
        if len(asked) > 1:
            message = f"{' and '.join(asked)} cannot be combined; choose one of them"
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
    """The options of commands about one job."""

    reading: ReadingOptions
    execution: Execution


@dataclass(frozen=True)
class SidesOptions:
    """The options of commands that compare two traces."""

    control: Control
    test: Test
    control_ranks: ControlRanks = None
    test_ranks: TestRanks = None
    control_capture: ControlCapture = None
    test_capture: TestCapture = None
    no_cache: NoCache = False
    execution: Execution = field(default_factory=Execution)

    @contextmanager
    def opened(self) -> Iterator[tuple[Trace, Trace, Executor]]:
        """Open both traces, with an executor that processes their ranks."""
        control = ReadingOptions([self.control], self.control_ranks, self.control_capture, self.no_cache)
        test = ReadingOptions([self.test], self.test_ranks, self.test_capture, self.no_cache)
        with self.execution.opened(control, test) as ((control_trace, test_trace), executor):
            yield control_trace, test_trace, executor


@contextmanager
def opened_job(job: JobOptions) -> Iterator[tuple[Trace, Executor]]:
    """Open the traces, together with an executor that processes their ranks."""
    with job.execution.opened(job.reading) as ((trace,), executor):
        yield trace, executor


@contextmanager
def opened_alone(reading: ReadingOptions) -> Iterator[Trace]:
    """Open the traces without an executor; fail if a file cannot be read."""
    with terminal_display() as display:
        yield reading.opened(display, on_error="fail")
