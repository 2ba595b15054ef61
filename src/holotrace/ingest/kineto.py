"""PyTorch profiler (Kineto) traces, read by the native reader."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from holotrace import _native
from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.execution.processes import reader_threads
from holotrace.execution.progress import Progress
from holotrace.locations import Location, RemoteStream, located, native_source
from holotrace.store.arrow_tables import MemoryTables
from holotrace.store.cache import CacheWriteError, Reading
from holotrace.store.header import rank_or_none
from holotrace.units import size_text

_LONG_HEADER_BYTES = 64 << 20
"""How far to look for the events of a file whose header is unusually long, as with thousands of process groups."""

EXPANSION_VARIABLE = "HOLOTRACE_MOST_EXPANSION"
"""Environment variable: how many times its size a compressed file may yield; `MOST_EXPANSION` where it is unset."""

MOST_EXPANSION = 100
"""Traces shrink to a tenth or a fiftieth. A file made to fill memory or disk shrinks to a thousandth, or far less."""

_SMALL_BYTES = 256 << 20
"""Any file may yield so much."""

_MOST_BYTES = (1 << 63) - 1

_CUT_OFF = "JSON without traceEvents at its beginning"
"""What the native reader says of an object that does not end where its look does."""

_EXECUTION_TRACE_KEYS = {"schema", "pid", "nodes"}


@dataclass(frozen=True)
class KinetoReader:
    """Reads what all versions of the PyTorch profiler, and the tools that rewrite its files, have written."""

    def read(self, path: str | Location, folder: Path | None, progress: Progress) -> Reading:
        """Read a file, writing the tables into the empty `folder`, or keeping them in memory where it is None.

        Raises:
            CacheWriteError: `folder` cannot be written.
            NotATraceError: the file holds no trace.
            UnreadableTraceError: the file cannot be read.
        """
        with (
            _errors_of(path, is_kept=folder is not None),
            native_source(path) as source,
            _expansion_of(path, most_bytes(source)) as most,
            _shown_on(progress, source) as callback,
        ):
            target = None if folder is None else str(folder)
            read = _native.read_trace(source, target, reader_threads(), callback, most)
        return Reading(read["header"], read["health"], MemoryTables(_frames(read["tables"])))

    def content_hash(self, path: str | Location) -> str:
        """Return what identifies the bytes of a file.

        Raises:
            UnreadableTraceError: the file cannot be read.
        """
        with _errors_of(path), native_source(path) as source:
            return _native.content_hash(source)


@dataclass(frozen=True)
class Peek:
    """What the beginning of a file shows: whether it is a trace, of which rank (None: not said), or what else it is."""

    is_trace: bool
    rank: int | None
    what: str


def peek(path: str) -> Peek:
    """Look at the beginning of a file.

    Raises:
        UnreadableTraceError: the file cannot be read.
    """
    with _errors_of(path):
        seen = _peek(path)
        if seen["what"] == _CUT_OFF:  # perhaps its header is longer than a peek
            seen = _peek(path, _LONG_HEADER_BYTES)
    return Peek(seen["is_trace"], rank_or_none(seen["rank"]), _named(seen))


def _peek(path: str, *limit: int) -> dict[str, Any]:
    with native_source(path, ahead=False) as source:
        return _native.peek(source, *limit)


def most_bytes(source: Path | RemoteStream) -> int | None:
    """Return how much text a file may yield when its compression is undone; None where its size is not known."""
    size = source.byte_count if isinstance(source, RemoteStream) else source.stat().st_size
    return max(_SMALL_BYTES, min(_most_expansion() * size, _MOST_BYTES)) if size else None


def _most_expansion() -> int:
    asked = os.environ.get(EXPANSION_VARIABLE, "")
    return int(asked) if re.fullmatch(r"0*[1-9][0-9]{0,17}", asked) else MOST_EXPANSION


@contextmanager
def _expansion_of(path: str | Location, most: int | None) -> Iterator[int | None]:
    """Give how much text a file may yield, and say what to do where it yields more."""
    try:
        yield most
    except _native.ExpansionError as error:
        message = (
            f"{path} was not read: it is compressed so much that it may be made to fill memory or disk; it yields more "
            f"than {size_text(most or 0)}. If it is a trace, set {EXPANSION_VARIABLE} above {_most_expansion()}: so "
            f"many times its size a file may yield"
        )
        raise UnreadableTraceError(message) from error


def _named(seen: dict[str, Any]) -> str:
    """Name formats that lie beside traces by their keys."""
    if not seen["is_trace"] and _EXECUTION_TRACE_KEYS.issubset(seen["keys"]):
        return "a PyTorch execution trace"
    return str(seen["what"])


def _frames(tables: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Take over the tables one after the other, each in one piece, so that only one exists twice at a time."""
    return {name: pl.DataFrame(tables.pop(name)).rechunk() for name in list(tables)}


@contextmanager
def _errors_of(path: str | Location, *, is_kept: bool = False) -> Iterator[None]:
    """Turn the reader's errors into ours; `is_kept` says that the tables go into a cache."""
    try:
        yield
    except HolotraceError:
        raise
    except _native.NotATraceError as error:
        raise NotATraceError(str(error)) from error
    except _native.SinkError as error:
        if not is_kept:
            message = f"{path} cannot be read: {error}"
            raise UnreadableTraceError(message) from error
        message = f"the cache cannot be written: {error}"
        raise CacheWriteError(message) from error
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or str(error).removeprefix(f'{path}: ')}"
        raise UnreadableTraceError(message) from error


@contextmanager
def _shown_on(progress: Progress, source: Path | RemoteStream) -> Iterator[Callable[[int, int], None]]:
    """Give the callback that shows how far the reading is.

    There always is one, even when nothing is shown: Python looks for Ctrl-C while it runs.
    """
    shown = 0

    def callback(done: int, _total: int) -> None:
        nonlocal shown
        progress.advance(done - shown)
        shown = done

    if isinstance(source, RemoteStream):
        progress.start(source.byte_count, located(source.name).name)
    else:
        progress.start(source.stat().st_size, source.name)
    try:
        yield callback
    finally:
        progress.finish()
