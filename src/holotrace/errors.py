"""Every error that holotrace raises on purpose.

    HolotraceError
    ├── TraceNotFoundError    (FileNotFoundError)  there is no trace at a path
    ├── NotATraceError        (ValueError)         a file exists, but is not a profiler trace
    ├── UnreadableTraceError  (OSError)            a file could not be read
    │   └── UnreachableError                       a URL could not be reached: missing extra, credential or network
    ├── NotASavedPathError    (ValueError)         a file is not a saved critical path, or is damaged
    ├── InvalidOperationsError (ValueError)        a table of operations lacks columns, or has invalid values
    ├── DuplicateRankError    (ValueError)         two files have the same rank
    ├── UnknownRankError      (KeyError, ValueError) the job does not have the requested rank
    ├── InvalidOptionError    (ValueError)         an option has an invalid value
    │   └── WrongTypeError    (TypeError)          an option has a value of the wrong type
    ├── MissingDataError      (LookupError)        the input of an analysis was not recorded
    ├── WorkerLostError       (RuntimeError)       the worker process of a rank was killed repeatedly
    ├── InconsistentTimesError (ValueError)        contradictory times in a trace make a prediction meaningless
    ├── LimitReachedError     (RuntimeError)       a query exceeded its time or memory limit
    └── OutputError           (OSError)            the output of a command could not be written

Each message says what was found, where, and what to do. The message is the only argument of its error, so errors
can be pickled.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable, Sequence
from typing import Any

_MOST_LISTED = 20
_LONGEST_NAME = 100


def what_exists(available: Iterable[Any], *, wanted: int | str) -> str:
    """List the available values for the end of a message: numbers in ascending order, names by similarity to `wanted`.

    If there are more than 20 values, list the 20 nearest to `wanted` and add both counts: `(20 of 300)`.
    """
    distinct = sorted(set(available))
    nearest = heapq.nsmallest(_MOST_LISTED, distinct, key=lambda value: _distance(value, wanted))
    shown = nearest if isinstance(wanted, str) else sorted(nearest)
    texts = [text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…" for text in map(str, shown)]
    more = f" ({len(texts)} of {len(distinct):,})" if len(distinct) > len(texts) else ""
    return (", ".join(texts) or "none") + more


def _distance(value: int | str, wanted: int | str) -> float:
    if isinstance(value, int) and isinstance(wanted, int):
        return abs(value - wanted)
    beginning = str(value)[:_LONGEST_NAME]  # C++ template names can have thousands of characters
    return -difflib.SequenceMatcher(None, beginning, str(wanted), autojunk=False).ratio()


class HolotraceError(Exception):
    """Base class of all errors that holotrace raises on purpose; `str(error)` is the full message.

    >>> import holotrace
    >>> try:
    ...     holotrace.open_trace("no_such_folder")
    ... except holotrace.HolotraceError as error:
    ...     print(type(error).__name__)
    TraceNotFoundError
    """

    def __str__(self) -> str:
        """Return the message as written, whereas KeyError would show the repr of the message."""
        return str(self.args[0]) if self.args else type(self).__name__


class TraceNotFoundError(HolotraceError, FileNotFoundError):
    """There is no trace at a path.

    >>> import holotrace
    >>> try:
    ...     holotrace.open_trace("no_such_folder")
    ... except holotrace.TraceNotFoundError as error:
    ...     print(str(error).split(";")[0])
    no_such_folder does not exist
    """

    @classmethod
    def nothing_under(cls, paths: Sequence[str]) -> TraceNotFoundError:
        """Report that neither the folders nor their subfolders contain a trace."""
        return cls(
            f"there is no profiler trace in {', '.join(paths)} or its subfolders; traces are the .json, .json.gz or "
            ".json.zst files that torch.profiler writes"
        )


class NotATraceError(HolotraceError, ValueError):
    """A file exists, but is not a profiler trace.

    >>> import holotrace
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "config.json")
    ...     _ = path.write_text('{"lr": 0.1}')
    ...     try:
    ...         holotrace.open_trace(path)
    ...     except holotrace.NotATraceError as error:
    ...         print(str(error).replace(folder, "logs"))
    logs/config.json is not a profiler trace: a JSON object without traceEvents
    """

    may_be_damaged = False
    """Whether the file may be a damaged trace, rather than a file of another format."""

    @classmethod
    def maybe_damaged(cls, message: str) -> NotATraceError:
        """Report a file that may be a damaged trace because it is empty, is cut off, or does not begin as JSON."""
        error = cls(message)
        error.may_be_damaged = True
        return error


class UnreadableTraceError(HolotraceError, OSError):
    """A file could not be read: access was denied, the disk is failing, or a compressed stream has no intact content.

    >>> from holotrace import UnreadableTraceError
    >>> issubclass(UnreadableTraceError, OSError)
    True
    """


class UnreachableError(UnreadableTraceError):
    """A URL could not be reached: an optional package is missing, access was refused, or the server does not answer.

    >>> from holotrace import UnreachableError, UnreadableTraceError
    >>> issubclass(UnreachableError, UnreadableTraceError)
    True
    """


class NotASavedPathError(HolotraceError, ValueError):
    """A file is not a saved critical path, is damaged, or was saved by another version.

    >>> from holotrace import NotASavedPathError
    >>> issubclass(NotASavedPathError, ValueError)
    True
    """


class InvalidOperationsError(HolotraceError, ValueError):
    """A table of operations lacks a column, or has values that cannot be replayed.

    >>> from holotrace import InvalidOperationsError
    >>> issubclass(InvalidOperationsError, ValueError)
    True
    """


class DuplicateRankError(HolotraceError, ValueError):
    """Two files have the same rank.

    >>> import holotrace
    >>> import tempfile
    >>> from pathlib import Path
    >>> from holotrace.testing import TraceBuilder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, "first.json"), Path(folder, "second.json")]
    ...     for path in paths:
    ...         _ = path.write_text('{"distributedInfo": {"rank": 0}, "traceEvents": []}')
    ...     try:
    ...         holotrace.open_trace(paths)
    ...     except holotrace.DuplicateRankError as error:
    ...         print(str(error).replace(folder, "logs").split(". ")[0])
    logs/first.json and logs/second.json are both rank 0
    """


class UnknownRankError(HolotraceError, KeyError, ValueError):
    """The job does not have the requested rank.

    >>> import holotrace
    >>> print(holotrace.UnknownRankError.from_available(7, [0, 1]))
    there is no rank 7 in this trace; its ranks are: 0, 1
    """

    @classmethod
    def from_available(cls, rank: int, available: Iterable[int]) -> UnknownRankError:
        """Name the requested rank and the ranks that exist."""
        return cls(f"there is no rank {rank} in this trace; its ranks are: {what_exists(available, wanted=rank)}")


class InvalidOptionError(HolotraceError, ValueError):
    """An option has an invalid value.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> try:
    ...     holotrace.critical_path(small_job(), segment_limit=0)
    ... except holotrace.InvalidOptionError as error:
    ...     print(error)
    segment_limit=0 is below 1
    """

    @classmethod
    def unknown(
        cls, wanted: Sequence[int] | Sequence[str], available: Iterable[Any], *, what: str
    ) -> InvalidOptionError:
        """Report that none of the `wanted` values exists: name the first of them, and list the values that exist."""
        problem = (
            f"there is no {what} {wanted[0]!r} in this trace" if wanted else f"no {what} of this trace was selected"
        )
        listed = what_exists(available, wanted=wanted[0] if wanted else 0)
        return cls(f"{problem}; its {what}s are: {listed}")


class WrongTypeError(InvalidOptionError, TypeError):
    """An option has a value of the wrong type."""


class MissingDataError(HolotraceError, LookupError):
    """The input of an analysis was not recorded; the message says which profiler option was off.

    If other ranks have the input, the analysis leaves this rank out and adds `finding` to its findings.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("aten::add", start_us=0, duration_us=5).build()
    >>> try:
    ...     _ = holotrace.temporal_breakdown(trace)
    ... except holotrace.MissingDataError as error:
    ...     print(str(error).split(". ")[-1])
    Record with ProfilerActivity.CUDA, or leave the rank out with ranks=[...].
    """

    _finding = ""

    @property
    def finding(self) -> str:
        """The finding to add to a result that leaves this rank out; by default the error message."""
        return self._finding or str(self)

    @classmethod
    def no_gpu_kernels(
        cls, analysis: str, *, rank: int, source: str, cpu_events: int, ends_early: bool = False
    ) -> MissingDataError:
        """Report that a rank has no device work for `analysis`, perhaps only because its file ends early."""
        if ends_early:
            return cls(
                f"{analysis}: rank {rank}'s file ends early, before any GPU event ({source}: {cpu_events:,} CPU events), so "
                "it is unknown whether the job used a GPU. Copy or record the file again, or leave the rank out with ranks=[...]."
            )
        error = cls(
            f"{analysis}: rank {rank} has no GPU kernels to measure ({source}: {cpu_events:,} CPU events, 0 GPU "
            f"events). Record with ProfilerActivity.CUDA, or leave the rank out with ranks=[...]."
        )
        error._finding = (
            f"rank {rank} has no GPU kernels ({source}: {cpu_events:,} CPU events), so the result leaves it out"
        )
        return error

    @classmethod
    def no_operators(cls, *, analysis: str, rank: int, source: str) -> MissingDataError:
        """Report that a rank has no operators, which `analysis` needs."""
        return cls(
            f"{analysis}: rank {rank} has no operators ({source}). Record with ProfilerActivity.CPU in addition to the "
            f"device's activity."
        )


class WorkerLostError(HolotraceError, RuntimeError):
    """The worker process of a rank was killed repeatedly.

    >>> import holotrace
    >>> str(holotrace.WorkerLostError.after(3)).split(" during")[0]
    'a worker process was lost 3 times'
    """

    @classmethod
    def after(cls, losses: int) -> WorkerLostError:
        """Report how often a worker was lost during the same call, and the usual causes."""
        return cls(
            f"a worker process was lost {losses} times during the same call, the last time while nothing else ran. "
            "Usually the system kills a worker when memory runs out: use fewer workers or leave the rank out. A script "
            'that starts workers needs its code inside `if __name__ == "__main__":`.'
        )

    @classmethod
    def on_cluster(cls, engine: str, error: BaseException) -> WorkerLostError:
        """Report that a cluster engine, such as Dask, lost a worker, and quote the engine's message."""
        return cls(f"{engine} lost the worker and gave up: {type(error).__name__}: {' '.join(str(error).split())}")


class InconsistentTimesError(HolotraceError, ValueError):
    """The times in a trace contradict each other, so a prediction would be meaningless.

    >>> from holotrace import InconsistentTimesError
    >>> issubclass(InconsistentTimesError, ValueError)
    True
    """


class LimitReachedError(HolotraceError, RuntimeError):
    """A query exceeded its time or memory limit; the message names the option and the argument that raise this limit.

    >>> from holotrace import LimitReachedError
    >>> issubclass(LimitReachedError, RuntimeError)
    True
    """


class OutputError(HolotraceError, OSError):
    """The output of a command could not be written, for instance because the disk is full."""

    @classmethod
    def of_stdout(cls, error: OSError) -> OutputError:
        """Report that stdout cannot be written, with the system's reason."""
        return cls(f"stdout cannot be written: {error.strerror or error}; the output is incomplete")
