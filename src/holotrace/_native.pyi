"""The part of holotrace that is written in Rust.

Callers: `holotrace.ingest.kineto` (reading), `holotrace.export.chrome_trace` (edited copies), `hta.memory_analysis` (raw memory
timelines), `holotrace.store.tables.checksums` (checksums) and `holotrace.algorithms` (all functions on arrays and names).

The functions on arrays raise ValueError if the arrays differ in length or refer to a row, group, node or edge that does
not exist. The arrays `group`, `start` and `end` describe intervals. The array `parent` describes a forest, with -1 for
a root; a cycle raises ValueError. Edge i of a graph leads from node source[i] to node target[i].
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
    "GzipWriter",
    "NotATraceError",
    "PlacedEvents",
    "Placing",
    "SinkError",
    "arrow_checksums",
    "binding_edges",
    "chains",
    "checksum",
    "content_hash",
    "contract",
    "covered_by_group",
    "demangled",
    "depths",
    "difference",
    "distinct",
    "earliest_times",
    "file_checksum",
    "furthest_above",
    "has_cycle",
    "holding",
    "intersection",
    "measured_binding",
    "memory_events",
    "nearest_above",
    "nest",
    "nesting_order",
    "only_matches",
    "pass_on",
    "path_to",
    "peek",
    "read_trace",
    "rows_of",
    "schema",
    "slacks",
    "sorted_points",
    "summaries",
    "sums_by_name",
    "thread_edges",
    "union",
]

_Nodes: TypeAlias = npt.NDArray[np.uint32]
_Numbers: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

@final
class ArrowTable:
    """A table that a library with Arrow support can read once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream; ValueError on the second call."""

@final
class EditedCopy:
    """A copy of a trace file, returned in pieces, with some events changed; all other bytes stay the same.

    Args:
        source: the file, or a stream of its bytes; plain, gzip or zstd, recognised by its first bytes.
        fates: one per event, in the order of the file: 0 keeps the event, 1 drops it, 2 appends a text to its args, 3
            replaces its name with a number and empties its args (only complete events, `ph` X). Events after the last
            entry are kept.
        values: one per event: for fate 2, the index of the text in `texts`; for fate 3, the number that replaces the
            name.
        texts: JSON without braces, such as `"critical":1`.
    """

    def __new__(cls, source: _Source, fates: npt.NDArray[np.uint8], values: _Nodes, texts: Sequence[str]) -> Self:
        """Find the events of the file."""

    @property
    def event_count(self) -> int:
        """The number of events copied so far."""

    @property
    def events_end(self) -> int | None:
        """The offset in the decompressed text just after the bracket that closes the events; None before it is read."""

    @property
    def holds_event(self) -> bool:
        """Whether the part copied so far contains an event."""

    def events(self) -> bytes | None:
        """Return the next piece of the text before the bracket that closes the events; None at the end of this text."""

    def rest(self) -> bytes | None:
        """Return the next piece of the text after the events, closing bracket included; None at the end of the file."""

@final
class GzipWriter:
    """Compress to gzip in half the time that zlib's level 3 takes; the output is a third larger."""

    def __new__(cls) -> Self: ...
    def compressed(self, piece: bytes) -> bytes:
        """Compress `piece`; return the compressed bytes that are ready so far, possibly none."""

    def end(self) -> bytes:
        """End the stream; return its last bytes."""

@final
class Placing:
    """How to convert a rank's events for a timeline of several ranks, which share one clock but have separate pids.

    Args:
        rank: the rank.
        base_ns: the base time of the rank's file, to which its times are relative.
        new_base_ns: the base time of the timeline.
        clock: corrections `(at_ns, offset_ns, drift_ppb, last_ns)`, in order of time. Each applies to times t
            up to its `last_ns`, and adds offset_ns + drift_ppb * (t - at_ns) / 1e9. Without corrections, times stay as
            they are.
        pids: `(pid in the file, pid in the timeline)`; any other pid is replaced by the highest number used so far
            plus 1.
    """

    def __new__(
        cls,
        rank: int,
        base_ns: int,
        new_base_ns: int,
        clock: Sequence[tuple[int, int, float, int]],
        pids: Sequence[tuple[int | str, int]],
    ) -> Self: ...
    def placed(self, events: bytes) -> bytes:
        """Convert events (JSON, separated by commas) for the timeline; each converted event has a comma before it.

        The conversion changes times, pids and the ids that link events. It leaves out process names, their sort
        positions, and the metadata of pids that are not listed in `pids`.
        """

@final
class PlacedEvents:
    """The events of a trace file, converted for a timeline, in pieces."""

    def __new__(cls, source: _Source, placing: Placing) -> Self:
        """Find the events of the file."""

    @property
    def event_count(self) -> int:
        """The number of events read so far."""

    @property
    def events_end(self) -> int | None:
        """The offset in the decompressed text just after the bracket that closes the events; None before it is read."""

    def next(self) -> bytes | None:
        """Return the next events, each with a comma before it; None at the end."""

class NotATraceError(ValueError):
    """The file is not a profiler trace; the message says what it is instead."""

class ExpansionError(OSError):
    """The file decompresses to more text than allowed."""

class SinkError(OSError):
    """Writing the tables failed: disk full, folder read-only or deleted."""

class _Stream(Protocol):
    """A file whose bytes the reader gets by calling `read`."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def byte_count(self) -> int:
        """The size of the file; 0 if unknown."""

    def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end of the file.

        The reader may call this method from any thread. If `read` raises an exception, the reader stops.
        """

    def close(self) -> None:
        """Close the file, and make any `read` that still waits return; the reader calls this method when it stops."""

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
        source: the file, or a stream of its bytes; plain, gzip or zstd, recognised by its first bytes.
        folder: an existing empty folder that receives `<table>.arrow` for every table; None keeps the tables in memory.
        threads: the number of threads that parse; None for one per core.
        progress: receives (bytes read so far, bytes of the file); if it raises an exception, reading stops.
        most_bytes: limit on the bytes of decompressed text; None for no limit.

    Returns:
        header: JSON text of all top-level keys except `traceEvents`.
        health: JSON text of the health record.
        tables: {name: ArrowTable}; empty if `folder` is given.
    """

def peek(source: _Source, limit: int = ...) -> dict[str, Any]:
    """Look at the first `limit` bytes (default 1 MiB) of a file, after decompression.

    Returns:
        format: "plain", "gzip" or "zstd".
        keys: the top-level keys in these bytes.
        kind: "trace"; "empty" if there is no text; "cut_off" if the object continues after these bytes and they contain
            no events; "not_json"; or "other_json".
        rank: `distributedInfo.rank` if these bytes contain it, else None.
        what: a description of the file's content.
    """

def memory_events(source: _Source) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return times, signed byte counts and categories of a raw memory timeline, `[[time, action, bytes, category], …]`."""

def content_hash(source: _Source) -> str:
    """Return the hash of a file's bytes; the trace's health record contains it as `content_hash`."""

def demangled(name: str) -> str | None:
    """Return the readable form of a mangled C++ name (`_Z…`); None for other names, unknown manglings and very long names."""

def checksum(data: bytes) -> str:
    """Return the XXH3 checksum of bytes as 16 hexadecimal digits."""

def file_checksum(path: str | os.PathLike[str]) -> str:
    """Return the `checksum` of a file's bytes.

    Raises:
        OSError: the file cannot be read.
    """

def arrow_checksums(path: str | os.PathLike[str], columns: Sequence[int] | None = None) -> tuple[str, list[str]]:
    """Return a checksum of an Arrow IPC file's structure, and a checksum of each given column (None for all).

    `columns` are column numbers. The checksum of a column covers its buffers in all batches; the structure is everything
    outside columns. Other columns are not read.

    Raises:
        OSError: the file cannot be read, or is not an Arrow file of flat columns.
    """

def schema() -> dict[str, list[tuple[str, str]]]:
    """Return {table: [(column, type)]} of the tables that the reader writes."""

def sorted_points(
    start: _Numbers, end: _Numbers, first: int, last: int
) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers, _Flags]:
    """Sort starts and ends; return the fields of `holotrace.algorithms.graphs.threads.Points`."""

def thread_edges(
    ranges: tuple[_Numbers, _Numbers, _Numbers, _Numbers, _Flags, _Flags, _Flags],
    points: tuple[_Numbers, _Flags, _Numbers],
    main_lane: int,
    works_inside: Sequence[int],
    host_end: int,
) -> tuple[_Nodes, _Nodes, _Numbers, npt.NDArray[np.int32], _Numbers]:
    """Return the dependencies between activities on threads; see `holotrace.algorithms.graphs.threads`."""

def has_cycle(node_count: int, source: _Nodes, target: _Nodes) -> bool:
    """Return whether the graph has a cycle."""

def binding_edges(node_count: int, source: _Nodes, target: _Nodes, arrival: _Numbers) -> _Numbers:
    """Return, per node, the incoming edge that arrives last (on a tie, the first such edge); -1 if there is none."""

def measured_binding(
    source: _Nodes, target: _Nodes, time: _Numbers, weight: _Numbers
) -> tuple[_Numbers, _Numbers, int]:
    """Return the fields of `holotrace.algorithms.graphs.longest_path.MeasuredBinding`, which documents them."""

def earliest_times(node_count: int, source: _Nodes, target: _Nodes, weight: _Numbers) -> _Numbers:
    """Return the length of the longest path to each node from a node without predecessors; ValueError for a cycle."""

def slacks(node_count: int, source: _Nodes, target: _Nodes, spare: _Numbers) -> _Numbers:
    """Return by how much each node could be delayed without delaying any node that has no successor.

    `spare` is, for each edge, the longest delay of its source that does not delay its target. ValueError for a cycle.
    """

def path_to(last: int, source: _Nodes, target: _Nodes, binding: _Numbers) -> _Nodes:
    """Follow binding edges back from the node `last`; return them as a path that ends there; ValueError for a cycle."""

def contract(
    node_count: int, source: _Nodes, target: _Nodes, weight: _Numbers, is_kept: _Flags
) -> tuple[_Nodes, _Nodes, _Numbers]:
    """Remove nodes that need not be kept; return source, target and weight of the remaining edges.

    Such a node is kept if its removal would increase the number of edges. The longest paths between kept nodes keep their lengths. ValueError for
    a cycle.
    """

def chains(
    source: _Nodes, target: _Nodes, binding: _Numbers, ends: _Nodes
) -> tuple[_Nodes, _Numbers, _Numbers, _Nodes, _Numbers]:
    """Return the fields of `holotrace.algorithms.graphs.longest_path.Chains`; ValueError if a node of `ends` or an edge of `binding` does not exist."""

def pass_on(
    first: _Numbers, target: _Numbers, weight: _Numbers, node: _Numbers, label: _Numbers, amount: _Numbers
) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
    """Return the fields of `holotrace.algorithms.graphs.propagation.Arrived`; ValueError if a node passes an amount on to itself or a later node."""

def nesting_order(group: _Nodes, start: _Numbers, end: _Numbers) -> _Nodes:
    """Return the rows sorted by group, start and descending length; each row then follows all rows that contain it."""

def nest(group: _Nodes, start: _Numbers, end: _Numbers) -> tuple[_Numbers, npt.NDArray[np.int32], _Flags]:
    """Return each interval's parent, number of ancestors, and whether it begins inside a sibling that ends earlier."""

def depths(parent: _Numbers) -> npt.NDArray[np.int32]:
    """Return the number of ancestors of each row."""

def nearest_above(parent: _Numbers, wanted: _Flags, rows: _Numbers) -> _Numbers:
    """Return the nearest wanted ancestor of each of `rows`; -1 for rows that are -1 or have no wanted ancestor."""

def furthest_above(parent: _Numbers, wanted: _Flags, rows: _Numbers) -> _Numbers:
    """Return, for each of `rows`, the wanted ancestor closest to the root; -1 for rows that are -1 or have none."""

def union(start: _Numbers, end: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Merge overlapping and touching intervals; return the starts and ends of the merged intervals, in order."""

def intersection(first: tuple[_Numbers, _Numbers], second: tuple[_Numbers, _Numbers]) -> tuple[_Numbers, _Numbers]:
    """Return the time that both sets cover, as sorted, disjoint intervals."""

def difference(first: tuple[_Numbers, _Numbers], second: tuple[_Numbers, _Numbers]) -> tuple[_Numbers, _Numbers]:
    """Return the time that only the first set covers, as sorted, disjoint intervals."""

def covered_by_group(group: _Nodes, start: _Numbers, end: _Numbers, group_count: int) -> _Numbers:
    """Return, for each of the groups 0, 1, …, how much time its intervals cover; overlaps count once."""

def holding(start: _Numbers, end: _Numbers, times: _Numbers) -> _Numbers:
    """Return, per time, the row of the interval that began last; -1 if it has already ended, or none has begun.

    Starts must ascend.
    """

def distinct(values: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Number the distinct values in order of appearance; return the first row of each value, and each row's number."""

def only_matches(offered: _Numbers, wanted: _Numbers) -> _Numbers:
    """Return, per wanted key, the only row of `offered` that has it; -1 if no row has it, -2 if several rows do."""

def rows_of(numbers: _Nodes, wanted: _Nodes) -> _Numbers:
    """Return the row in `numbers` of each wanted number, or -1 if it has none. `numbers` must be unique."""

def summaries(
    number: _Nodes, value: _Numbers
) -> tuple[_Nodes, _Numbers, _Numbers, _Numbers, _Numbers, npt.NDArray[np.float64]]:
    """Return the distinct numbers in order of appearance, and statistics of the values of each number.

    The statistics are count, sum, min, max and sample standard deviation.
    """

def sums_by_name(
    kind: npt.NDArray[np.uint8], name: _Nodes, value: _Numbers, mark: _Numbers, is_marked: _Flags
) -> tuple[npt.NDArray[np.uint8], _Nodes, _Numbers, _Numbers, _Numbers, _Numbers]:
    """Return each kind and name, the count and sum of all its rows, and the count and sum of its marked rows.

    Row i is marked if `mark[i]` is not -1 and `is_marked[mark[i]]` is true. Negative values count as 0.
    """
