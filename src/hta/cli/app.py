"""The entry point of the command `hta`: its version at once, and how errors are told."""

from __future__ import annotations

import io
import signal
import sys
from concurrent.futures import CancelledError
from importlib.metadata import version
from types import FrameType
from typing import TextIO

from hta.errors import HtaError


def main() -> None:
    """Run the command line; an error that the user can mend is one line on stderr and exit code 1.

    The version is printed before the commands are loaded, since those need tables and that takes a while.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or pipe may know fewer characters than names hold
            stream.reconfigure(errors="replace")
    if sys.argv[1:] == ["--version"]:
        _print(f"hta {version('holistic-trace-analysis')}", sys.stdout)
        return
    for name in ("SIGTERM", "SIGHUP"):  # a scheduler's end of the job, a terminal that is closed
        if number := getattr(signal, name, None):
            signal.signal(number, _end)
    from hta.cli.commands import app  # noqa: PLC0415 -- see above

    try:
        app()
    except HtaError as error:
        _stop(str(error))
    except CancelledError:
        _stop("the cluster dropped the work; is its scheduler still there?")
    except OSError as error:
        _stop(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))


def _end(number: int, _frame: FrameType | None) -> None:
    """End in order: what is being written is removed, and workers end."""
    sys.exit(128 + number)


def _stop(message: str) -> None:
    _print(f"hta: {message}", sys.stderr)
    sys.exit(1)


def _print(line: str, stream: TextIO) -> None:
    stream.write(f"{line}\n")
