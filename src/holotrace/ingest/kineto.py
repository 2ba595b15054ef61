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
from holotrace.store.cache import CacheWriteError, Reading
from holotrace.store.header import rank_or_none
from holotrace.store.tables.arrow_tables import MemoryTables
from holotrace.units import size_text

_LONG_HEADER_BYTES = 64 << 20
"""How many bytes to search for the first event if the header is long, for example because of many process groups."""

EXPANSION_VARIABLE = "HOLOTRACE_MOST_EXPANSION"
"""Environment variable: the highest accepted ratio of decompressed to compressed size; `MOST_EXPANSION` if unset."""

MOST_EXPANSION = 100
"""Highest accepted ratio of decompressed to compressed size, unless the environment variable sets another. Traces have
ratios from 10 to 50; decompression bombs have ratios of 1,000 or more.
"""

_SMALL_BYTES = 256 << 20
"""A file that decompresses to at most this size is accepted, whatever its ratio."""

_MOST_BYTES = (1 << 63) - 1

_KINDS_OF_DAMAGE = {"empty", "cut_off", "not_json"}
"""Values of `kind` from `holotrace._native.peek` for files that may be damaged traces."""

_EXECUTION_TRACE_KEYS = {"schema", "pid", "nodes"}


@dataclass(frozen=True)
class KinetoReader:
    """Reads traces of all versions of PyTorch's profiler, including files rewritten by other tools."""

    def read(self, path: str | Location, folder: Path | None, progress: Progress) -> Reading:
        """Read a file and write the tables into the empty `folder`, or keep them in memory if `folder` is None.

        Raises:
            CacheWriteError: `folder` cannot be written.
            NotATraceError: the file is not a trace.
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
        """Return a hash of the bytes of a file.

        Raises:
            UnreadableTraceError: the file cannot be read.
        """
        with _errors_of(path), native_source(path) as source:
            return _native.content_hash(source)


@dataclass(frozen=True)
class Peek:
    """Facts about a file, read from its beginning.

    is_trace        whether the file is a trace
    rank            the rank stated near the beginning of the file; None if there is none
    what            a description of the file if it is not a trace
    may_be_damaged  whether the file may be a damaged trace rather than a file of another format
    """

    is_trace: bool
    rank: int | None
    what: str
    may_be_damaged: bool = False


def peek(path: str) -> Peek:
    """Look at the beginning of a file.

    Raises:
        UnreadableTraceError: the file cannot be read.
    """
    with _errors_of(path):
        beginning = _peek(path)
        if beginning["kind"] == "cut_off":  # the header may be longer than the part read so far
            beginning = _peek(path, _LONG_HEADER_BYTES)
    kind, rank = beginning["kind"], rank_or_none(beginning["rank"])
    if kind != "trace" and _EXECUTION_TRACE_KEYS.issubset(beginning["keys"]):
        return Peek(is_trace=False, rank=rank, what="a PyTorch execution trace")
    return Peek(kind == "trace", rank, str(beginning["what"]), may_be_damaged=kind in _KINDS_OF_DAMAGE)


def _peek(path: str, *limit: int) -> dict[str, Any]:
    with native_source(path, ahead=False) as source:
        return _native.peek(source, *limit)


def most_bytes(source: Path | RemoteStream) -> int | None:
    """Return the highest number of bytes a file may decompress to; None if the file size is unknown."""
    size = source.byte_count if isinstance(source, RemoteStream) else source.stat().st_size
    return max(_SMALL_BYTES, min(_most_expansion() * size, _MOST_BYTES)) if size else None


def _most_expansion() -> int:
    asked = os.environ.get(EXPANSION_VARIABLE, "")
    return int(asked) if re.fullmatch(r"0*[1-9][0-9]{0,17}", asked) else MOST_EXPANSION


@contextmanager
def _expansion_of(path: str | Location, most: int | None) -> Iterator[int | None]:
    """Yield `most`, the maximum decompressed size; if the file exceeds it, raise an error that explains the limit."""
    try:
        yield most
    except _native.ExpansionError as error:
        message = (
            f"{path} was not read: it decompresses to more than {size_text(most or 0)}, over {_most_expansion()} times "
            f"its size, which may be an attempt to fill memory or disk. If it is a trace, set {EXPANSION_VARIABLE} above "
            f"{_most_expansion()}, the highest ratio accepted now"
        )
        raise UnreadableTraceError(message) from error


def _frames(tables: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Convert the tables, and release each before converting the next, so at most one table is in memory twice."""
    return {name: pl.DataFrame(tables.pop(name)).rechunk() for name in list(tables)}


@contextmanager
def _errors_of(path: str | Location, *, is_kept: bool = False) -> Iterator[None]:
    """Turn errors of the native reader into errors of holotrace; if `is_kept`, the tables are written to a cache."""
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
    """Yield the callback that reports progress.

    The reader gets a callback even if nothing is displayed: while the native code reads, Python can handle Ctrl-C only
    in this callback.
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
