"""Progress bars on the terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
from contextlib import suppress

import pytest
from rich.console import Console
from rich.progress import Progress

from holotrace.cli.progress import CountingExecutor, Display, TerminalProgress, bars_on, terminal_display
from holotrace.execution.executor import IN_PROCESS
from holotrace.execution.progress import SILENT
from holotrace.testing.synthetic import write_job


def terminal() -> tuple[Progress, io.StringIO]:
    """Return progress bars on a simulated terminal, and the output."""
    stream = io.StringIO()
    return bars_on(Console(file=stream, force_terminal=True, width=100)), stream


def test_a_bar_names_the_file_and_disappears() -> None:
    """A bar shows markup in a file name as plain text, and restarts for the next file."""
    bars, stream = terminal()
    progress = TerminalProgress(bars)
    with bars:
        for name in ("rank0[red].json", "rank1.json"):
            progress.start(2_000_000, name)
            progress.advance(600_000)
            bars.refresh()
            progress.finish()
            assert bars.tasks == []
    assert "rank0[red].json" in stream.getvalue()
    assert "rank1.json" in stream.getvalue()
    assert "600.0 kB/2.0 MB" in stream.getvalue()


def test_a_bar_that_was_not_started_does_nothing() -> None:
    """`advance` and `finish` before `start` do nothing."""
    progress = TerminalProgress(terminal()[0])
    progress.advance(1)
    progress.finish()


def test_without_a_terminal_there_are_no_bars(capsys) -> None:
    """Logs and pipes get no progress bars."""
    with terminal_display() as display:
        assert display.reading is SILENT
        assert display.counted(IN_PROCESS, 8) is IN_PROCESS
    assert capsys.readouterr().err == ""


def test_the_bar_counts_ranks() -> None:
    """The bar advances with each finished rank; a second pass over the ranks starts again at 0."""
    bars, stream = terminal()
    executor = CountingExecutor(IN_PROCESS, bars, 2)
    with bars:
        assert [executor.submit(abs, number).result() for number in (-1, 2)] == [1, 2]
        bars.refresh()
        assert (bars.tasks[0].completed, bars.tasks[0].total) == (2, 2)
        executor.submit(abs, 3)
        assert bars.tasks[0].completed == 1
    assert "ranks done" in stream.getvalue()
    assert "2/2" in stream.getvalue()


def test_one_rank_has_no_bar() -> None:
    """A job with one rank gets no rank counter."""
    assert Display(terminal()[0]).counted(IN_PROCESS, 1) is IN_PROCESS


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_command_on_a_terminal_counts_its_ranks_on_stderr(tmp_path, workers) -> None:
    """On a terminal, rank counts go to stderr; stdout is the same as without a terminal."""
    write_job(tmp_path / "job", ranks=4, steps=1, layers=1)
    command = [
        sys.executable,
        "-m",
        "holotrace",
        "temporal-breakdown",
        tmp_path / "job",
        "--workers",
        str(workers),
        "--json",
    ]
    environment = {
        **os.environ,
        "HOLOTRACE_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:  # noqa: S603
        os.close(theirs)
        shown = _everything(ours)
        answer, _ = process.communicate()
    assert b"ranks done" in shown
    again = subprocess.run(command, env=environment, capture_output=True, check=True)  # noqa: S603
    assert answer == again.stdout


def _everything(terminal_end: int) -> bytes:
    """Read from this end of a terminal until the other end is closed; return everything that was read."""
    output = b""
    with suppress(OSError):  # Linux raises this when the other end is closed
        while select.select([terminal_end], [], [], 60)[0]:
            output += os.read(terminal_end, 65_536)
    os.close(terminal_end)
    return output
