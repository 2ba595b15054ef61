"""Execution traces of PyTorch: which operators ran, with their schemas, shapes and types, but without times.

`torch.profiler.ExecutionTraceObserver` writes execution traces. Each node has a record function id, which links it to
an operator of a profiler trace; see `holotrace.enrich.host.execution_nodes`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.errors import HolotraceError, NotATraceError, TraceNotFoundError, UnreadableTraceError
from holotrace.locations import Address, address_text, located

_GZIP_MAGIC = b"\x1f\x8b"
_SCHEMA = {
    "node_id": pl.Int64,
    "name": pl.String,
    "record_function_id": pl.Int64,
    "parent": pl.Int64,
    "operator_schema": pl.String,
    "sequence_number": pl.Int64,
    "thread": pl.Int64,
    **dict.fromkeys(("input_shapes", "input_types", "output_shapes", "output_types"), pl.String),
}


@dataclass(frozen=True, eq=False)
class ExecutionTrace(EqualByContent):
    """The operators that a process executed.

    source  path or URL of the file
    header  the top-level keys of the file except `nodes`
    nodes   one row for each node, in the order of the file:

        node_id             int64
        name                str
        record_function_id  int64  identifies the operator in the profiler trace; null if not recorded
        parent              int64  node_id of the enclosing node; null if not recorded
        operator_schema     str    `aten::empty.memory_format(SymInt[] size, …)`; empty if the node is not an operator
        sequence_number     int64  shared by a forward operator and its backward operators; null if not recorded
        thread              int64  PyTorch's number for the thread; null if not recorded
        input_shapes, input_types, output_shapes, output_types  str  JSON lists
    """

    source: str
    header: dict[str, Any]
    nodes: pl.DataFrame


def read_execution_trace(path: Address) -> ExecutionTrace:
    """Read an execution trace (schema 1.0 or later; plain or gzip) at a path or a URL.

    Raises:
        TraceNotFoundError: the file does not exist.
        UnreadableTraceError: the file cannot be read.
        NotATraceError: the file is not an execution trace.
    """
    content = _parsed(path)
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(node, dict) and "id" in node for node in nodes):
        message = f"{path} is not an execution trace: it has no list `nodes` of objects with an `id`"
        raise NotATraceError(message)
    header = {key: value for key, value in content.items() if key != "nodes"}
    return ExecutionTrace(
        address_text(path), header, pl.DataFrame([_row(node) for node in nodes], _SCHEMA, orient="row")
    )


def _parsed(path: Address) -> Any:  # noqa: ANN401 -- any JSON
    try:
        content = located(path).read_bytes()
        text = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
        return json.loads(text)
    except HolotraceError:
        raise
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise TraceNotFoundError(message) from error
    except (OSError, EOFError) as error:
        message = f"{path} cannot be read: {error}"
        raise UnreadableTraceError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"{path} is not an execution trace: {error}"
        raise NotATraceError(message) from error


def _row(node: dict[str, Any]) -> tuple[object, ...]:
    """Return the columns of a node; from schema 1.1 on, most of them are in the node's list `attrs`."""
    attributes = {attribute.get("name"): attribute.get("value") for attribute in node.get("attrs", ())}
    known = {**attributes, **node}
    return (
        known["id"],
        str(known.get("name", "")),
        known.get("rf_id"),
        known.get("parent", known.get("ctrl_deps")),
        known.get("op_schema") or "",
        known.get("seq_id"),
        known.get("tid"),
        *(_described(node, side, what) for side in ("input", "output") for what in ("shapes", "types")),
    )


def _described(node: dict[str, Any], side: str, what: str) -> str:
    """Return shapes or types as JSON; from schema 1.1 on, they are in the dict `inputs` or `outputs` of the node."""
    values = node.get(f"{side}s")
    return json.dumps(values.get(what, []) if isinstance(values, dict) else node.get(f"{side}_{what}", []))
