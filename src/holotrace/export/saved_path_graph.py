"""Save a critical path to a file: a zip archive of Parquet tables and a JSON manifest, without executable content.

    manifest.json       format, version, hash of the trace, the graph's integer fields, and a hash of each table
    activities.parquet  … nodes, edges, segments: the tables of `PathGraph`, with names as texts for other tools

Only these members are read, and only into memory, so a malicious archive cannot make holotrace write files.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import fields
from typing import Any

import polars as pl

from holotrace.enrich.critical_path.event_graph import EventGraph
from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.errors import InvalidOptionError, NotASavedPathError
from holotrace.export.new_file import new_file
from holotrace.locations import Location
from holotrace.store.trace import RankTrace

VERSION = 1
_FORMAT = "holotrace critical path"
_MANIFEST = "manifest.json"
_SCHEMAS: dict[str, dict[str, type[pl.DataType]]] = {
    "activities": {
        "event_index": pl.UInt32,
        "kind": pl.UInt8,
        "name": pl.String,
        "track_id": pl.UInt32,
        "device": pl.Int32,
        "stream": pl.Int64,
        "kernel_kind": pl.UInt8,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "is_waiting": pl.Boolean,
    },
    "nodes": {
        "activity": pl.UInt32,
        "is_start": pl.Boolean,
        "time_ns": pl.Int64,
        "binding": pl.Int64,
        "slack_ns": pl.Int64,
    },
    "edges": {
        "source": pl.UInt32,
        "target": pl.UInt32,
        "type": pl.UInt8,
        "weight_ns": pl.Int64,
        "delay_ns": pl.Int64,
        "path_class": pl.UInt8,
        "activity": pl.UInt32,
    },
    "segments": {
        "edge": pl.UInt32,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "path_class": pl.UInt8,
        "activity": pl.UInt32,
    },
}
"""The tables of version 1. A `PathGraph` keeps `binding` and `slack_ns` outside its table `nodes`."""

_ROWS_OF = {
    ("nodes", "activity"): "activities",
    ("nodes", "binding"): "edges",
    ("edges", "source"): "nodes",
    ("edges", "target"): "nodes",
    ("edges", "activity"): "activities",
    ("segments", "edge"): "edges",
    ("segments", "activity"): "activities",
}
"""Columns that contain row numbers: {(table, column): the table to which the numbers refer}."""

_UNREADABLE = (
    zipfile.BadZipFile,
    EOFError,  # a member is truncated
    NotImplementedError,  # a member has an unknown compression
    RuntimeError,  # a member is encrypted
    ValueError,
    TypeError,
    LookupError,
    pl.exceptions.PolarsError,
)
"""Errors that damaged archives, JSON files and Parquet files raise."""


def save_path_graph(rank_trace: RankTrace, path_graph: PathGraph, target: Location, *, overwrite: bool = False) -> None:
    """Write a path graph to a file that `load_path_graph` reads.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, or its folder is missing or cannot be written.
        OSError: writing failed; no incomplete file remains.
    """
    tables = {f"{name}.parquet": _parquet(table) for name, table in _tables(rank_trace, path_graph).items()}
    manifest = {
        "format": _FORMAT,
        "version": VERSION,
        "rank": rank_trace.rank,
        "content_hash": rank_trace.health.content_hash,
        "window": path_graph.window,
        "numbers": {
            field.name: value
            for field in fields(EventGraph)
            if isinstance(value := getattr(path_graph.graph, field.name), int)
        },
        "hashes": {name: _hash(content) for name, content in tables.items()},
    }
    with new_file(target, overwrite=overwrite) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in {_MANIFEST: json.dumps(manifest, indent=1).encode(), **tables}.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def load_path_graph(source: Location, rank_trace: RankTrace) -> PathGraph:
    """Read a path graph that `save_path_graph` wrote.

    Raises:
        NotASavedPathError: the file is not a saved path, is damaged, or comes from another version of this package.
        InvalidOptionError: the path was saved from a trace file other than this rank's.
        OSError: the file cannot be opened.
    """
    try:
        manifest, tables = _read(source)
        path_graph = _path_graph(manifest, tables, rank_trace)
    except _UNREADABLE as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        message = f"{source} is not a saved critical path that can be restored: {reason}"
        raise NotASavedPathError(message) from error
    if manifest["content_hash"] != rank_trace.health.content_hash:
        message = f"{source} was saved from a trace other than {rank_trace.source}; restore it with its own trace"
        raise InvalidOptionError(message)
    return path_graph


def _tables(rank_trace: RankTrace, path_graph: PathGraph) -> dict[str, pl.DataFrame]:
    graph = path_graph.graph
    return {
        "activities": graph.activities.with_columns(rank_trace.texts(graph.activities["name"])),
        "nodes": graph.nodes.with_columns(graph.binding.alias("binding"), path_graph.slack_ns.alias("slack_ns")),
        "edges": graph.edges,
        "segments": path_graph.segments,
    }


def _parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(source: Location) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    with source.open("rb") as file, zipfile.ZipFile(file) as archive:
        manifest = json.loads(_member(archive, _MANIFEST))
        _expect_known(manifest)
        contents = {name: _member(archive, f"{name}.parquet") for name in _SCHEMAS}
    for name, content in contents.items():
        if manifest["hashes"][f"{name}.parquet"] != _hash(content):
            message = f"{name}.parquet is damaged"
            raise ValueError(message)
    tables = {name: pl.read_parquet(io.BytesIO(content)) for name, content in contents.items()}
    for name, table in tables.items():
        _expect_sound(name, table, tables)
    return manifest, tables


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the content of a file in the archive.

    Compressed files are rejected: holotrace never writes any, and decompressing them might fill the memory.
    """
    try:
        member = archive.getinfo(name)
    except KeyError:
        message = f"it has no {name}"
        raise ValueError(message) from None
    if member.compress_type != zipfile.ZIP_STORED:
        message = f"its {name} is compressed"
        raise ValueError(message)
    return archive.read(member)


def _expect_known(manifest: Any) -> None:  # noqa: ANN401 -- any JSON
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        message = f"its {_MANIFEST} was not written by holotrace"
        raise ValueError(message)
    if manifest.get("version") != VERSION:
        message = f"it has version {manifest.get('version')}, and this holotrace reads version {VERSION}"
        raise ValueError(message)


def _expect_sound(name: str, table: pl.DataFrame, tables: dict[str, pl.DataFrame]) -> None:
    """Raise ValueError if a table has unexpected columns or an invalid row number."""
    if table.schema != _SCHEMAS[name]:
        message = f"{name}.parquet has unexpected columns"
        raise ValueError(message)
    for (referring, column), referred in _ROWS_OF.items():
        highest = table[column].max() if referring == name else None
        if isinstance(highest, int) and highest >= len(tables[referred]):
            message = f"{name}.parquet refers to {referred} that do not exist"
            raise ValueError(message)


def _path_graph(manifest: dict[str, Any], tables: dict[str, pl.DataFrame], rank_trace: RankTrace) -> PathGraph:
    activities, nodes = tables["activities"], tables["nodes"]
    graph = EventGraph(
        **manifest["numbers"],
        activities=activities.with_columns(_ids(rank_trace, activities["name"])),
        nodes=nodes.drop("binding", "slack_ns"),
        edges=tables["edges"],
        binding=nodes["binding"],
    )
    names = graph.activities.select("name", activities["name"].alias("text")).unique().sort("name")
    return PathGraph(
        graph=graph,
        window=str(manifest["window"]),
        names=names,
        segments=tables["segments"],
        slack_ns=nodes["slack_ns"],
    )


def _ids(rank_trace: RankTrace, texts: pl.Series) -> pl.Series:
    """Return the string id of each string; null if the trace does not contain it."""
    known = rank_trace.unselected.strings
    ids = pl.int_range(len(known), dtype=pl.UInt32, eager=True)
    return texts.replace_strict(known, ids, default=None, return_dtype=pl.UInt32)
