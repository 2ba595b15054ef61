"""What is written in Rust: the reader, called by `hta.ingest.kineto`, and graphs, by `hta.algorithms.longest_path`.

Edges are two arrays: edge i leads from node source[i] to node target[i]. ValueError: they differ in length, name a node
that is not there, or form a cycle where there must be none.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "ArrowTable",
    "ExpansionError",
    "NotATraceError",
    "SinkError",
    "binding_edges",
    "content_hash",
    "earliest_times",
    "has_cycle",
    "peek",
    "read_trace",
    "schema",
    "slacks",
    "way_to",
]

_Nodes: TypeAlias = npt.NDArray[np.uint32]
_Numbers: TypeAlias = npt.NDArray[np.int64]

@final
class ArrowTable:
    """A table that anything that speaks Arrow can take, once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table over as an Arrow stream."""

class NotATraceError(ValueError):
    """The bytes are no profiler trace; the message says what was found."""

class ExpansionError(OSError):
    """The file yields more text than it may."""

class SinkError(OSError):
    """The tables could not be written: disk full, folder read-only or gone."""

def read_trace(
    path: str,
    folder: str | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
    most_bytes: int | None = None,
) -> dict[str, Any]:
    """Read a trace file into the tables of `hta.schema`.

    Args:
        path: the file; plain, gzip or zstd is told by its first bytes.
        folder: an existing empty folder that gets `<table>.arrow` for every table; None keeps the tables in memory.
        threads: how many threads parse; None for all cores.
        progress: called with (bytes read so far, bytes of the file); an error it raises ends the reading.
        most_bytes: how much text the file may yield when its compression is undone; None for any amount.

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

def has_cycle(node_count: int, source: _Nodes, target: _Nodes) -> bool:
    """Say whether some node comes before itself."""

def binding_edges(node_count: int, source: _Nodes, target: _Nodes, arrival: _Numbers) -> _Numbers:
    """Return the edge into each node with the greatest arrival, of equal ones the first; -1 where none leads in."""

def earliest_times(node_count: int, source: _Nodes, target: _Nodes, weight: _Numbers) -> _Numbers:
    """Return the length of the longest way to each node, from nodes without a predecessor."""

def slacks(node_count: int, source: _Nodes, target: _Nodes, spare: _Numbers) -> _Numbers:
    """Return how much later each node could be without any node being later that nothing follows."""

def way_to(last: int, source: _Nodes, target: _Nodes, binding: _Numbers) -> _Nodes:
    """Return the edges on the way back from `last` along the binding edge of each node, the first one first."""
