"""Progress bars on stderr while files are read and ranks are analysed; silent unless stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
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
from holotrace.execution.executor import submit_near
from holotrace.execution.progress import SILENT, Progress

P = ParamSpec("P")
T = TypeVar("T")


class _DoneColumn(ProgressColumn):
    """The number of bytes read from a file, or of finished ranks."""

    def render(self, task: Task) -> Text:
        """Return the count as `3/64` or `1.2 MB/20 MB`."""
        shown = decimal if task.fields.get("is_bytes") else str
        return Text(f"{shown(int(task.completed))}/{shown(int(task.total or 0))}")


class TerminalProgress:
    """Shows how much of a file has been read."""

    def __init__(self, bars: Bars) -> None:
        """Draw on `bars`."""
        self._bars = bars
        self._task: TaskID | None = None

    def start(self, total_bytes: int, description: str) -> None:
        """Add a bar for one file."""
        name = printable(description)
        self._task = self._bars.add_task("", total=total_bytes, what=f"reading {name}", is_bytes=True)

    def advance(self, byte_count: int, /) -> None:
        """Advance the bar."""
        if self._task is not None:
            self._bars.advance(self._task, byte_count)

    def finish(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None


class CountingExecutor(Executor):
    """Passes work to another executor, and shows the number of finished ranks on a bar."""

    def __init__(self, executor: Executor, bars: Bars, rank_count: int) -> None:
        """Count up to `rank_count`; start again from 0 if an analysis processes the ranks a second time."""
        self._executor = executor
        self._bars = bars
        self._task = bars.add_task("", total=rank_count, what="ranks done")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit the call, and count it when it finishes."""
        return self._counted(self._executor.submit(fn, *args, **kwargs))

    def submit_near(self, key: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit the call to the worker that ran the last call with this key, and count it when it finishes."""
        return self._counted(submit_near(self._executor, key, fn, *args, **kwargs))

    def _counted(self, future: Future[T]) -> Future[T]:
        if next(task for task in self._bars.tasks if task.id == self._task).finished:
            self._bars.reset(self._task)
        future.add_done_callback(lambda _: self._bars.advance(self._task))
        return future


@dataclass(frozen=True)
class Display:
    """Shows progress on `bars`; shows nothing if `bars` is None."""

    bars: Bars | None

    @property
    def reading(self) -> Progress:
        """The object that receives progress updates while files are read."""
        return SILENT if self.bars is None else TerminalProgress(self.bars)

    def counted(self, executor: Executor, rank_count: int) -> Executor:
        """Return an executor that shows the number of finished ranks, if there are several ranks."""
        return executor if self.bars is None or rank_count == 1 else CountingExecutor(executor, self.bars, rank_count)


@contextmanager
def terminal_display() -> Iterator[Display]:
    """Show bars on stderr during a `with` block if stderr is a terminal; otherwise show nothing."""
    if not sys.stderr.isatty():
        yield Display(None)
        return
    with bars_on(Console(stderr=True)) as bars:
        yield Display(bars)


def bars_on(console: Console) -> Bars:
    """Return bars that disappear when the work is done."""
    columns = (TextColumn("{task.fields[what]}", markup=False), BarColumn(), _DoneColumn(), TimeRemainingColumn())
    return Bars(*columns, console=console, transient=True)
