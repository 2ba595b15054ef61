"""The reader, in Rust. Only `hta.ingest.kineto` calls it."""

from collections.abc import Callable
from typing import Any, final

__all__ = ["ArrowTable", "NotATraceError", "SinkError", "content_hash", "peek", "read_trace", "schema"]

@final
class ArrowTable:
    """A table that anything that speaks Arrow can take, once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table over as an Arrow stream."""

class NotATraceError(ValueError):
    """The bytes are no profiler trace; the message says what was found."""

class SinkError(OSError):
    """The tables could not be written: disk full, folder read-only or gone."""

def read_trace(
    path: str,
    folder: str | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
) -> dict[str, Any]:
    """Read a trace file into the tables of `hta.schema`.

    Args:
        path: the file; plain, gzip or zstd is told by its first bytes.
        folder: an existing empty folder that gets `<table>.arrow` for every table; None keeps the tables in memory.
        threads: how many threads parse; None for all cores.
        progress: called with (bytes read so far, bytes of the file); an error it raises ends the reading.

    Returns:
        header: JSON text of all top-level keys except `traceEvents`.
        health: JSON text of the health record.
        tables: {name: ArrowTable}; empty where `folder` was given.
    """

def peek(path: str, limit: int = ...) -> dict[str, Any]:
    """Look at no more than `limit` bytes, by default 1 MiB, of the decompressed beginning of a file.

    Returns:
        format: "plain", "gzip" or "zstd".
        keys: top-level keys seen.
        is_trace: whether it is a profiler trace.
        rank: `distributedInfo.rank` where seen, else None.
        what: what the file is, in words.
    """

def content_hash(path: str) -> str:
    """Return the hash of the bytes of a file; equals `content_hash` of its health record."""

def schema() -> dict[str, list[tuple[str, str]]]:
    """Return {table: [(column, type)]} as the reader writes them."""
