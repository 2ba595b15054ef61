"""The entry point of the command `holotrace`: its version at once, and errors of one line."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
import warnings
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib.metadata import version
from types import FrameType

from holotrace.cli.stdout import writing_to_stdout
from holotrace.errors import HolotraceError
from holotrace.visible_text import visible

TRACEBACK_VARIABLE = "HOLOTRACE_TRACEBACK"
"""With this environment variable, an error that is a bug of holotrace ends with its traceback."""

LONGEST_MESSAGE = 10_000
"""Characters of an error; names in it have any length."""

FAILED = 1
MISUSED = 2


def main() -> None:
    """Run the command line; every failure is one line on stderr, with exit code 1 or, where it is misused, 2.

    The version is printed before the commands are loaded, since those need tables and that takes a while.
    """
    try:
        _run_with_errors_told()
    except SystemExit as ending:
        _expect_no_query_to_go_on(ending)
        raise


def _run_with_errors_told() -> None:
    _prepare_streams()
    if not sys.warnoptions:  # what libraries warn of is for those who program with them
        warnings.simplefilter("ignore")
    for name in ("SIGTERM", "SIGHUP"):  # a scheduler's end of the job, a terminal that is closed
        if number := getattr(signal, name, None):
            signal.signal(number, _end)
    try:
        _run()
        _flush()
    except SystemExit:
        raise
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BaseException as error:  # panics of native code are no Exception
        if _is_bug(error) and os.environ.get(TRACEBACK_VARIABLE):
            raise
        _stop(_described(error))


def _is_bug(error: BaseException) -> bool:
    return not isinstance(error, (HolotraceError, CancelledError, OSError, MemoryError))


def _described(error: BaseException) -> str | None:
    """Return what an error says to whoever runs the command; None where that is nothing."""
    if isinstance(error, HolotraceError):
        return str(error)
    if isinstance(error, CancelledError):
        return "the cluster dropped the work; is its scheduler still there?"
    if isinstance(error, BrokenPipeError):  # `holotrace … | head`: who reads has seen enough
        return None
    if isinstance(error, OSError):
        return _reason(error)
    if isinstance(error, MemoryError):
        return "memory ran out; use fewer --workers or fewer --ranks"
    return _bug(error)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        with writing_to_stdout():
            sys.stdout.write(f"holotrace {version('holotrace')}\n")
        return
    from holotrace.cli.commands import app, misuse  # noqa: PLC0415 -- see main

    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except Exception as error:
        message = misuse(error)
        if message is None:
            raise
        _stop(message, MISUSED)
    _flush()
    if not sys.argv[1:]:
        sys.exit(MISUSED)
    if isinstance(code, int) and code:
        sys.exit(code)


def _prepare_streams() -> None:
    """Make streams that know fewer characters than names hold, or that are closed, no reason to fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 -- for the rest of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _end(number: int, _frame: FrameType | None) -> None:
    """End in order: what is being written is removed, and workers end."""
    sys.exit(128 + number)


def _expect_no_query_to_go_on(ending: SystemExit) -> None:
    """End at once if DuckDB still works on a query: the interpreter would wait for it, or fall over it."""
    running = sys.modules.get("holotrace.sql_queries.running")
    if running is not None and running.ABANDONED.count:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(ending.code if isinstance(ending.code, int) else FAILED)


def _flush() -> None:
    with writing_to_stdout():
        sys.stdout.flush()


def _stop(message: str | None, code: int = FAILED) -> None:
    """Print the message, if any, in one line, and end."""
    with suppress(OSError, ValueError):  # where it cannot be printed, the exit code is what is left to say
        if message is not None:
            shown = visible(message[:LONGEST_MESSAGE])
            sys.stderr.write(f"holotrace: {shown}\n")
            sys.stderr.flush()
    _forget_output()
    sys.exit(code)


def _forget_output() -> None:
    """Print what stdout still holds if that is possible; else the interpreter would complain of it when it ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return f"{error.strerror or error}, as the system says of a file without a name; is it where the output goes?"


def _bug(error: BaseException) -> str:
    """Describe an error that nobody foresaw: where it happened, and how to see more."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"a bug of holotrace{where}: {what}; please report it, with what {TRACEBACK_VARIABLE}=1 shows"
