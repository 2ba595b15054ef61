"""Progress on the terminal: a bar on stderr while files are read, nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from hta.execution.progress import SILENT, Progress
from hta.figures.names import printable

P = ParamSpec("P")
T = TypeVar("T")


class TerminalProgress:
    """Shows how far the reading of a file is."""

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._console = console
        self._bar: Bar | None = None

    def start(self, total_bytes: int, description: str) -> None:
        """Begin a bar for one file."""
        name = Text(printable(description))
        columns = (
            TextColumn("reading {task.fields[file]}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Bar(*columns, console=self._console, transient=True)
        self._bar.add_task("", total=total_bytes, file=name.plain)
        self._bar.start()

    def advance(self, byte_count: int, /) -> None:
        """Move the bar on."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0], byte_count)

    def finish(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class CountingExecutor(Executor):
    """Passes work on to another executor and counts on a bar what is done."""

    def __init__(self, executor: Executor, bar: Bar) -> None:
        """Count the work of `executor` on `bar`."""
        self._executor = executor
        self._bar = bar
        self._task = bar.add_task("", total=0)
        self._total = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand the call on, and count it when it is done."""
        self._total += 1
        self._bar.update(self._task, total=self._total)
        future = self._executor.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: self._bar.advance(self._task))
        return future


def terminal_progress() -> Progress:
    """Return a bar on stderr, or silence where stderr is no terminal."""
    return TerminalProgress(Console(stderr=True)) if sys.stderr.isatty() else SILENT


@contextmanager
def counted(executor: Executor) -> Iterator[Executor]:
    """Give an executor that shows on stderr how many pieces of work are done, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield executor
        return
    columns = (TextColumn("working in processes"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield CountingExecutor(executor, bar)
