"""What is written in Rust.

The reader is called by `holotrace.ingest.kineto`, copies of traces by `holotrace.export.chrome_trace`, raw memory timelines by
`hta.memory_analysis`, checksums by `holotrace.store.checksums`, and passes over arrays and names by `holotrace.algorithms`.

Intervals are three arrays, and parents one, with -1 where there is none. ValueError: arrays differ in length, name a
row that is not there, or a row lies above itself.

Edges are two arrays: edge i leads from node source[i] to node target[i]. ValueError: they differ in length, name a node
that is not there, or form a cycle where there must be none.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

__all__ = [
    "ArrowTable",
    "EditedCopy",
    "ExpansionError",
    "NotATraceError",
    "SinkError",
    "arrow_checksums",
    "binding_edges",
    "checksum",
    "content_hash",
    "covered_by_group",
    "demangled",
    "depths",
    "earliest_times",
    "file_checksum",
    "furthest_above",
    "has_cycle",
    "holding",
    "memory_events",
    "nearest_above",
    "nest",
    "nesting_order",
    "only_matches",
    "peek",
    "read_trace",
    "rows_of",
    "schema",
    "slacks",
    "summaries",
    "sums_by_name",
    "way_to",
]

_Nodes: TypeAlias = npt.NDArray[np.uint32]
_Numbers: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

@final
class ArrowTable:
    """A table that anything that speaks Arrow can take, once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table over as an Arrow stream."""

@final
class EditedCopy:
    """The text of a trace file, piece by piece, with some events changed; all else letter by letter.

    Args:
        source: the file, or its bytes; plain, gzip or zstd is told by the first of them.
        fates: for each event of the file, in its order: 0 keeps it, 1 leaves it out; 2 adds a text to the end of its
            args; 3 replaces its name by a number and empties its args, where it is a complete event (`ph` X). Events
            beyond the end are kept.
        values: for each event the place of its text in `texts`, or its number.
        texts: JSON without braces: `"critical":1`.
    """

    def __new__(cls, source: _Source, fates: npt.NDArray[np.uint8], values: _Nodes, texts: Sequence[str]) -> Self:
        """Find the events of the file."""

    @property
    def event_count(self) -> int:
        """How many events the source holds, as far as it was copied."""

    @property
    def events_end(self) -> int | None:
        """Offset behind the bracket that closes the events, once that is reached."""

    @property
    def holds_event(self) -> bool:
        """Whether the copy holds an event so far."""

    def events(self) -> bytes | None:
        """Return the next piece up to the bracket that closes the events; None when that is reached."""

    def rest(self) -> bytes | None:
        """Return the next piece from that bracket on; None at the end of the file."""

class NotATraceError(ValueError):
    """The bytes are no profiler trace; the message says what was found."""

class ExpansionError(OSError):
    """The file yields more text than it may."""

class SinkError(OSError):
    """The tables could not be written: disk full, folder read-only or gone."""

class _Stream(Protocol):
    """The bytes of a file that others bring."""

    @property
    def name(self) -> str:
        """How messages call it."""

    @property
    def byte_count(self) -> int:
        """Its size, 0 where that is not known."""

    def read(self) -> bytes:
        """Return the next piece, empty at the end; an exception ends the reading and comes out of it. Any thread calls."""

    def close(self) -> None:
        """Let a `read` that waits end: the reading was stopped."""

_Source: TypeAlias = str | os.PathLike[str] | _Stream

def read_trace(
    source: _Source,
    folder: str | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
    most_bytes: int | None = None,
) -> dict[str, Any]:
    """Read a trace file into the tables of `holotrace.schema`.

    Args:
        source: the file, or its bytes; plain, gzip or zstd is told by the first of them.
        folder: an existing empty folder that gets `<table>.arrow` for every table; None keeps the tables in memory.
        threads: how many threads parse; None for all cores.
        progress: called with (bytes read so far, bytes of the file); an error it raises ends the reading.
        most_bytes: how much text the file may yield when its compression is undone; None for any amount.

    Returns:
        header: JSON text of all top-level keys except `traceEvents`.
        health: JSON text of the health record.
        tables: {name: ArrowTable}; empty where `folder` was given.
    """

def peek(source: _Source, limit: int = ...) -> dict[str, Any]:
    """Look at no more than `limit` bytes, by default 1 MiB, of the decompressed beginning of a file.

    Returns:
        format: "plain", "gzip" or "zstd".
        keys: top-level keys seen.
        is_trace: whether it is a profiler trace.
        rank: `distributedInfo.rank` where seen, else None.
        what: what the file is, in words.
    """

def memory_events(source: _Source) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return times, signed bytes and categories of a raw memory timeline, `[[time, action, bytes, category], …]`."""

def content_hash(source: _Source) -> str:
    """Return the hash of the bytes of a file; equals `content_hash` of its health record."""

def demangled(name: str) -> str | None:
    """Return what a mangled C++ name (`_Z…`) stands for; None for other names, unknown manglings and endless texts."""

def checksum(data: bytes) -> str:
    """Return the XXH3 checksum of bytes, 16 hexadecimal digits."""

def file_checksum(path: str | os.PathLike[str]) -> str:
    """Return the checksum of all bytes of a file.

    Raises:
        OSError: it cannot be read.
    """

def arrow_checksums(path: str | os.PathLike[str], columns: Sequence[int] | None = None) -> tuple[str, list[str]]:
    """Return the checksums of an Arrow IPC file: of its structure, and of these columns, of all for None.

    A column is given by its number; its checksum is of its buffers in all batches. The structure is everything else.
    The bytes of other columns are not read.

    Raises:
        OSError: the file cannot be read, or is not an Arrow file of flat columns.
    """

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

def nesting_order(group: _Nodes, start: _Numbers, end: _Numbers) -> _Nodes:
    """Return the rows so that each comes after all that contain it: by group, start, the longest first, and row."""

def nest(group: _Nodes, start: _Numbers, end: _Numbers) -> tuple[_Numbers, npt.NDArray[np.int32], _Flags]:
    """Return the parent of each interval, how many lie around it, and whether it begins in a sibling that ends sooner."""

def depths(parent: _Numbers) -> npt.NDArray[np.int32]:
    """Return how many rows lie above each."""

def nearest_above(parent: _Numbers, wanted: _Flags, rows: _Numbers) -> _Numbers:
    """Return the nearest wanted row above each of these rows; -1 where there is none, and for -1."""

def furthest_above(parent: _Numbers, wanted: _Flags, rows: _Numbers) -> _Numbers:
    """Return the last wanted row on the way up from each of these rows; -1 where there is none, and for -1."""

def covered_by_group(group: _Nodes, start: _Numbers, end: _Numbers, group_count: int) -> _Numbers:
    """Return how much time the intervals of each of the groups 0, 1, … cover."""

def holding(start: _Numbers, end: _Numbers, moments: _Numbers) -> _Numbers:
    """Return the row of the interval that holds each moment, of those begun the last; -1 where that has ended.

    Starts rise.
    """

def only_matches(offered: _Numbers, wanted: _Numbers) -> _Numbers:
    """Return the only row of `offered` that has each wanted key; -1 where none has it, -2 where several have."""

def rows_of(numbers: _Nodes, wanted: _Nodes) -> _Numbers:
    """Return the row that has each wanted number, -1 where none has it; no two rows have the same."""

def summaries(
    number: _Nodes, value: _Numbers
) -> tuple[_Nodes, _Numbers, _Numbers, _Numbers, _Numbers, npt.NDArray[np.float64]]:
    """Return each number in the order of the first rows, and count, sum, min, max and sample deviation of its values."""

def sums_by_name(
    kind: npt.NDArray[np.uint8], name: _Nodes, value: _Numbers, place: _Numbers, is_marked: _Flags
) -> tuple[npt.NDArray[np.uint8], _Nodes, _Numbers, _Numbers, _Numbers, _Numbers]:
    """Return kind, name, count and sum of each group, and count and sum of its rows at marked places, -1 being none.

    Values below 0 count as 0. ValueError: a place is not among those of `is_marked`.
    """
