"""Every error that hta raises on purpose.

    HtaError
    ├── TraceNotFoundError    (FileNotFoundError)  a path leads to no trace
    ├── NotATraceError        (ValueError)         a file is there, but it holds no profiler trace
    ├── UnreadableTraceError  (OSError)            a file could not be read
    ├── DuplicateRankError    (ValueError)         two files were given the same rank
    ├── UnknownRankError      (KeyError)           a rank was asked for that the job does not have
    ├── InvalidOptionError    (ValueError)         an option has a value that means nothing
    └── MissingDataError      (LookupError)        an analysis lacks its input: which profiler option was off

A message is one string: it says what was found, where, and the way out, and it survives pickling.
"""

from __future__ import annotations

from collections.abc import Iterable

_MOST_LISTED = 20


class HtaError(Exception):
    """Base of all errors raised on purpose; `str(error)` is the whole message."""

    def __str__(self) -> str:
        """Return the message as written; KeyError would otherwise show its repr."""
        return str(self.args[0]) if self.args else type(self).__name__


class TraceNotFoundError(HtaError, FileNotFoundError):
    """A path leads to no trace."""


class NotATraceError(HtaError, ValueError):
    """A file is there, but it holds no profiler trace."""


class UnreadableTraceError(HtaError, OSError):
    """A file could not be read: permissions, a failing disk, a damaged compressed stream without any content."""


class DuplicateRankError(HtaError, ValueError):
    """Two files were given the same rank."""


class UnknownRankError(HtaError, KeyError):
    """A rank was asked for that the job does not have."""

    @classmethod
    def from_available(cls, rank: int, available: Iterable[int]) -> UnknownRankError:
        """Name the rank asked for and the ranks that exist."""
        listed = ", ".join(map(str, sorted(available))) or "none"
        return cls(f"there is no rank {rank} in this trace; its ranks are: {listed}")


class InvalidOptionError(HtaError, ValueError):
    """An option has a value that means nothing."""

    @classmethod
    def no_annotation(cls, annotation: str, available: Iterable[str]) -> InvalidOptionError:
        """No rank has host annotations or operators of that name; name some annotations that there are."""
        names = sorted(set(available))
        listed = ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")
        return cls(f"there is no annotation {annotation!r} in this trace; it has: {listed or 'none'}")


class MissingDataError(HtaError, LookupError):
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
