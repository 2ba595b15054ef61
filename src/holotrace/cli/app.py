"""The entry point of the command `holotrace`, which reports every failure in one line."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import traceback
import warnings
from concurrent.futures import CancelledError
from contextlib import suppress
from types import FrameType

from holotrace.cli.stdout import print_text, writing_to_stdout
from holotrace.errors import HolotraceError
from holotrace.execution.freed_memory import keep_freed_memory
from holotrace.visible_text import visible

TRACEBACK_VARIABLE = "HOLOTRACE_TRACEBACK"
"""If this environment variable is set, holotrace prints the traceback of a bug."""

LONGEST_MESSAGE = 10_000
"""Maximum length of a printed error message, in characters; needed because a message can contain very long names."""

FAILED = 1
MISUSED = 2

_OBJECTS_PER_COLLECTION = 200_000
"""Number of new objects after which Python collects garbage. With Python's default of 700, garbage would be collected
often while modules load."""


def main() -> None:
    """Run the command line; on failure, print one line on stderr and exit with 1, or with 2 for a wrong option."""
    try:
        _run_and_report_errors()
    except SystemExit as ending:
        _exit_despite_running_query(ending)
        raise


def _run_and_report_errors() -> None:
    _prepare_streams()
    _collect_less_garbage()
    keep_freed_memory()
    if not sys.warnoptions:  # libraries address their warnings to programmers, not to users of a command
        warnings.simplefilter("ignore")
    for name in ("SIGTERM", "SIGHUP"):  # the signals sent when a scheduler ends the job or the terminal closes
        if number := getattr(signal, name, None):
            signal.signal(number, _end)
    try:
        _run()
        _flush()
    except SystemExit:
        raise
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BaseException as error:  # a panic in native code is a BaseException
        if _is_bug(error) and os.environ.get(TRACEBACK_VARIABLE):
            raise
        _stop(_described(error))


def _is_bug(error: BaseException) -> bool:
    return not isinstance(error, (HolotraceError, CancelledError, OSError, MemoryError))


def _described(error: BaseException) -> str | None:
    """Return the message for an error; None if the command should end silently."""
    if isinstance(error, HolotraceError):
        return str(error).replace("with ranks=[...]", "with --ranks")  # users of the command line set --ranks instead
    if isinstance(error, CancelledError):
        return "the cluster cancelled the work; check that its scheduler is still running"
    if isinstance(error, BrokenPipeError):  # in `holotrace … | head`, head closes the pipe early
        return None
    if isinstance(error, OSError):
        return _reason(error)
    if isinstance(error, MemoryError):
        return "out of memory; use fewer --workers or fewer --ranks"
    return _bug(error)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version  # noqa: PLC0415 -- needed only here

        print_text(f"holotrace {version('holotrace')}")
        return
    from holotrace.cli.group import app, misuse  # noqa: PLC0415 -- not needed for --version

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


def _collect_less_garbage() -> None:
    """Collect garbage rarely, because most new objects belong to loaded modules, which never become garbage.

    This makes short commands a quarter faster.
    """
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    atexit.register(_freeze)


def _freeze() -> None:
    """Skip the garbage collection at exit, unless DuckDB is loaded.

    Without this collection, DuckDB's bindings would report false leaks.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def _prepare_streams() -> None:
    """Make stdout and stderr accept any text, even if they are closed or their encoding lacks a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the shell closed the stream, as with `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 -- stays open until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _end(number: int, _frame: FrameType | None) -> None:
    """Exit by raising an exception, so that half-written files are removed and workers end."""
    sys.exit(128 + number)


def _exit_despite_running_query(ending: SystemExit) -> None:
    """Exit immediately if DuckDB is still running a query; in a normal exit, the interpreter would wait or crash."""
    running = sys.modules.get("holotrace.sql_queries.running")
    if running is not None and running.ABANDONED.count:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(ending.code if isinstance(ending.code, int) else FAILED)


def _flush() -> None:
    with writing_to_stdout():
        sys.stdout.flush()


def _stop(message: str | None, code: int = FAILED) -> None:
    """Print the message, if any, on one line, and exit."""
    with suppress(OSError, ValueError):  # if stderr is closed, only the exit code reports the failure
        if message is not None:
            shown = visible(message[:LONGEST_MESSAGE])
            sys.stderr.write(f"holotrace: {shown}\n")
            sys.stderr.flush()
    _discard_output()
    sys.exit(code)


def _discard_output() -> None:
    """Flush stdout. If flushing fails, discard the buffer, so that the interpreter reports no second error at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return f"{error.strerror or error}; the operating system does not name the file; it may be the output file"


def _bug(error: BaseException) -> str:
    """Describe an unexpected error: what happened, where, and how to see more."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"a bug in holotrace{where}: {what}; please report it with the traceback that {TRACEBACK_VARIABLE}=1 shows"
