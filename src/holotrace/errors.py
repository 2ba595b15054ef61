"""Every error that holotrace raises on purpose.

    HolotraceError
    ├── TraceNotFoundError    (FileNotFoundError)  a path leads to no trace
    ├── NotATraceError        (ValueError)         a file is there, but it holds no profiler trace
    ├── UnreadableTraceError  (OSError)            a file could not be read
    │   └── UnreachableError                       what is behind a URL could not be reached: extra, credential, network
    ├── NotASavedPathError    (ValueError)         a file is no saved critical path, or a damaged one
    ├── DuplicateRankError    (ValueError)         two files were given the same rank
    ├── UnknownRankError      (KeyError, ValueError) a rank was asked for that the job does not have
    ├── InvalidOptionError    (ValueError)         an option has a value that means nothing
    │   └── WrongTypeError    (TypeError)          its type means nothing
    ├── MissingDataError      (LookupError)        an analysis lacks its input: which profiler option was off
    ├── WorkerLostError       (RuntimeError)       the process that worked on a rank was killed, again and again
    ├── InconsistentTimesError (ValueError)        the times of a trace contradict each other too much to compute with
    ├── LimitReachedError     (RuntimeError)       a query took more time or memory than it may
    └── OutputError           (OSError)            what a command prints could not be written

A message is one string: it says what was found, where, and the way out, and it survives pickling.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable, Sequence
from typing import Any

_MOST_LISTED = 20
_LONGEST_NAME = 100


def what_exists(available: Iterable[Any], *, wanted: int | str) -> str:
    """Return what there is, for the end of a message: numbers in rising order, names from the nearest on.

    Of more than 20, those nearest to `wanted`, and how many there are.
    """
    distinct = sorted(set(available))
    nearest = heapq.nsmallest(_MOST_LISTED, distinct, key=lambda each: _distance(each, wanted))
    shown = nearest if isinstance(wanted, str) else sorted(nearest)
    texts = [text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…" for text in map(str, shown)]
    more = f" ({len(texts)} of {len(distinct):,})" if len(distinct) > len(texts) else ""
    return (", ".join(texts) or "none") + more


def _distance(each: int | str, wanted: int | str) -> float:
    if isinstance(each, int) and isinstance(wanted, int):
        return abs(each - wanted)
    beginning = str(each)[:_LONGEST_NAME]  # names of templates have thousands of characters
    return -difflib.SequenceMatcher(None, beginning, str(wanted), autojunk=False).ratio()


class HolotraceError(Exception):
    """Base of all errors raised on purpose; `str(error)` is the whole message."""

    def __str__(self) -> str:
        """Return the message as written; KeyError would otherwise show its repr."""
        return str(self.args[0]) if self.args else type(self).__name__


class TraceNotFoundError(HolotraceError, FileNotFoundError):
    """A path leads to no trace."""

    @classmethod
    def nothing_under(cls, paths: Sequence[str]) -> TraceNotFoundError:
        """Say that neither the folders nor those below them hold a trace."""
        return cls(
            f"no profiler trace lies in {', '.join(paths)} or in a folder below; traces are the .json, .json.gz or "
            ".json.zst files that torch.profiler writes"
        )


class NotATraceError(HolotraceError, ValueError):
    """A file is there, but it holds no profiler trace."""


class UnreadableTraceError(HolotraceError, OSError):
    """A file could not be read: permissions, a failing disk, a damaged compressed stream without any content."""


class UnreachableError(UnreadableTraceError):
    """What is behind a URL could not be reached: an extra is missing, access was refused, or nothing answers."""


class NotASavedPathError(HolotraceError, ValueError):
    """A file is no saved critical path, is damaged, or was saved by another version."""


class DuplicateRankError(HolotraceError, ValueError):
    """Two files were given the same rank."""


class UnknownRankError(HolotraceError, KeyError, ValueError):
    """A rank was asked for that the job does not have."""

    @classmethod
    def from_available(cls, rank: int, available: Iterable[int]) -> UnknownRankError:
        """Name the rank asked for and the ranks that exist."""
        return cls(f"there is no rank {rank} in this trace; its ranks are: {what_exists(available, wanted=rank)}")


class InvalidOptionError(HolotraceError, ValueError):
    """An option has a value that means nothing."""

    @classmethod
    def unknown(
        cls, wanted: Sequence[int] | Sequence[str], available: Iterable[Any], *, what: str
    ) -> InvalidOptionError:
        """Name the first of `wanted`, steps for instance, all of which do not exist, and those that do."""
        asked = f"there is no {what} {wanted[0]!r} in this trace" if wanted else f"no {what} at all is asked for"
        listed = what_exists(available, wanted=wanted[0] if wanted else 0)
        return cls(f"{asked}; its {what}s are: {listed}")


class WrongTypeError(InvalidOptionError, TypeError):
    """An option is of a type that means nothing."""


class MissingDataError(HolotraceError, LookupError):
    """An analysis lacks its input; the message says which profiler option was off."""

    @classmethod
    def no_gpu_kernels(cls, analysis: str, *, rank: int, source: str, cpu_events: int) -> MissingDataError:
        """No rank has device work, which `analysis` measures."""
        return cls(
            f"{analysis}: rank {rank} has no GPU kernels to measure ({source}: {cpu_events:,} CPU events, 0 GPU "
            f"events). Record with ProfilerActivity.CUDA, or leave the rank out with ranks=[...]."
        )

    @classmethod
    def no_operators(cls, *, analysis: str, rank: int, source: str) -> MissingDataError:
        """No rank has operators, which `analysis` measures."""
        return cls(
            f"{analysis}: rank {rank} has no operators ({source}). Record with ProfilerActivity.CPU as well as that of "
            f"the device."
        )


class WorkerLostError(HolotraceError, RuntimeError):
    """The process that worked on a rank was killed, again and again."""

    @classmethod
    def after(cls, losses: int) -> WorkerLostError:
        """Say how often it was tried, and what the usual causes are."""
        return cls(
            f"a worker process was lost {losses} times over the same work, the last time while nothing else ran. "
            "Usually that is the system, which ends processes when memory runs out: use fewer workers or leave the "
            'rank out. A script that starts workers needs `if __name__ == "__main__":` around what it does.'
        )

    @classmethod
    def on_cluster(cls, engine: str, error: BaseException) -> WorkerLostError:
        """Hand on what the engine says of the worker it lost and of the tries it made."""
        return cls(f"{engine} lost the worker, and gave up: {type(error).__name__}: {' '.join(str(error).split())}")


class InconsistentTimesError(HolotraceError, ValueError):
    """The times of a trace contradict each other too much to compute with."""


class LimitReachedError(HolotraceError, RuntimeError):
    """A query took more time or memory than it may; the message says which option or argument raises the limit."""


class OutputError(HolotraceError, OSError):
    """What a command prints could not be written, for instance because the disk is full."""

    @classmethod
    def of_stdout(cls, error: OSError) -> OutputError:
        """Name the stream and the reason that the system gives."""
        return cls(f"stdout cannot be written: {error.strerror or error}; what was printed is incomplete")
