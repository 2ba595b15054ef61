"""Progress on the terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import Progress

from hta.cli.progress import CountingExecutor, TerminalProgress, counted, terminal_progress
from hta.execution.executor import IN_PROCESS
from hta.execution.progress import SILENT


def terminal() -> tuple[Console, io.StringIO]:
    """Return a console that believes to be a terminal, and what it wrote."""
    stream = io.StringIO()
    return Console(file=stream, force_terminal=True, width=80), stream


def test_a_bar_names_the_file_and_goes_away() -> None:
    """The name is text, whatever it holds; afterwards the bar can be started anew."""
    console, stream = terminal()
    progress = TerminalProgress(console)
    for name in ("rank0[red].json", "rank1.json"):
        progress.start(100, name)
        progress.advance(60)
        progress.advance(40)
        progress.finish()
    assert "rank0[red].json" in stream.getvalue()
    assert "rank1.json" in stream.getvalue()


def test_a_bar_that_was_not_started_does_nothing() -> None:
    """Order of calls is not ours to choose."""
    progress = TerminalProgress(terminal()[0])
    progress.advance(1)
    progress.finish()


def test_without_a_terminal_there_is_silence(capsys) -> None:
    """Logs and pipes hold no bars."""
    assert terminal_progress() is SILENT
    with counted(IN_PROCESS) as executor:
        assert executor is IN_PROCESS
    assert capsys.readouterr().err == ""


def test_work_in_processes_is_counted() -> None:
    """Each call that is done moves the bar, and the result comes back."""
    bar = Progress(console=terminal()[0])
    executor = CountingExecutor(IN_PROCESS, bar)
    assert [executor.submit(abs, number).result() for number in (-1, 2)] == [1, 2]
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (2, 2)
