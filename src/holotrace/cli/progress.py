"""Progress on the terminal: bars on stderr while files are read and ranks are done, nothing where it is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from holotrace.drawing.names import printable
from holotrace.execution.progress import SILENT, Progress

P = ParamSpec("P")
T = TypeVar("T")


class _DoneColumn(ProgressColumn):
    """How much is done: bytes of a file, or ranks."""

    def render(self, task: Task) -> Text:
        """Say it as `3/64` or `1.2 MB/20 MB`."""
        shown = decimal if task.fields.get("is_bytes") else str
        return Text(f"{shown(int(task.completed))}/{shown(int(task.total or 0))}")


class TerminalProgress:
    """Shows how far the reading of a file is."""

    def __init__(self, bars: Bars) -> None:
        """Draw on `bars`."""
        self._bars = bars
        self._task: TaskID | None = None

    def start(self, total_bytes: int, description: str) -> None:
        """Begin a bar for one file."""
        name = printable(description)
        self._task = self._bars.add_task("", total=total_bytes, what=f"reading {name}", is_bytes=True)

    def advance(self, byte_count: int, /) -> None:
        """Move the bar on."""
        if self._task is not None:
            self._bars.advance(self._task, byte_count)

    def finish(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None


class CountingExecutor(Executor):
    """Passes work on to another executor and counts on a bar of how many ranks it is done."""

    def __init__(self, executor: Executor, bars: Bars, rank_count: int) -> None:
        """Count to `rank_count`, and from 0 again where an analysis goes over the ranks once more."""
        self._executor = executor
        self._bars = bars
        self._task = bars.add_task("", total=rank_count, what="ranks done")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand the call on, and count it when it is done."""
        if next(task for task in self._bars.tasks if task.id == self._task).finished:
            self._bars.reset(self._task)
        future = self._executor.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: self._bars.advance(self._task))
        return future


@dataclass(frozen=True)
class Display:
    """What is shown of the work; `bars` None shows nothing."""

    bars: Bars | None

    @property
    def reading(self) -> Progress:
        """What is told of the reading of files."""
        return SILENT if self.bars is None else TerminalProgress(self.bars)

    def counted(self, executor: Executor, rank_count: int) -> Executor:
        """Return an executor that shows of how many ranks the work is done, where there are several."""
        return executor if self.bars is None or rank_count == 1 else CountingExecutor(executor, self.bars, rank_count)


@contextmanager
def terminal_display() -> Iterator[Display]:
    """Show bars on stderr for the time of a `with` block; nothing where it is no terminal."""
    if not sys.stderr.isatty():
        yield Display(None)
        return
    with bars_on(Console(stderr=True)) as bars:
        yield Display(bars)


def bars_on(console: Console) -> Bars:
    """Return bars that are gone when the work is done."""
    columns = (TextColumn("{task.fields[what]}", markup=False), BarColumn(), _DoneColumn(), TimeRemainingColumn())
    return Bars(*columns, console=console, transient=True)
