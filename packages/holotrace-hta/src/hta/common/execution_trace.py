"""Execution traces, at HTA's import path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from holotrace.enrich.host.execution_nodes import node_rows
from holotrace.errors import InvalidOptionError
from holotrace.ingest.execution_trace import ExecutionTrace, read_execution_trace
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

EtColumn = Literal["op_schema", "input_shapes", "input_types", "output_shapes", "output_types", "et_node_name"]

_SOURCES = {
    "op_schema": "operator_schema",
    "input_shapes": "input_shapes",
    "input_types": "input_types",
    "output_shapes": "output_shapes",
    "output_types": "output_types",
    "et_node_name": "name",
}
_LISTS = ("input_shapes", "input_types", "output_shapes", "output_types")


def load_execution_trace(et_file: str) -> ExecutionTrace:
    """Read an execution trace, plain or gzip."""
    return read_execution_trace(et_file)


def correlate_execution_trace(trace: TraceView, rank: int, et: ExecutionTrace) -> None:
    """Add `et_node` to a rank's frame: the id of each event's node in the execution trace, or NaN if it has no node.

    Args:
        trace: `TraceAnalysis(...).t`.
        rank: the rank whose frame, `trace.get_trace(rank)`, receives the column.
        et: the execution trace of that rank.

    Raises:
        UnknownRankError: the rank does not exist.
    """
    frame = trace.get_trace(rank)
    matches = node_rows(trace.trace.ranks[rank], et)
    events = matches["event_index"].to_numpy()
    indexes = frame["index"].to_numpy()
    nodes = np.full(1 + max(indexes.max(initial=0), events.max(initial=0)), np.nan)
    nodes[events] = et.nodes["node_id"].to_numpy()[matches["row"].to_numpy()]
    frame["et_node"] = nodes[indexes]


def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: EtColumn) -> None:
    """Add a column with one property of each row's node in the execution trace; None for rows without a node.

    Raises:
        InvalidOptionError: the column does not exist, or the frame has no `et_node` yet.
    """
    if column not in _SOURCES or "et_node" not in trace_df.columns:
        known = ", ".join(_SOURCES)
        message = (
            f"column={column!r} must be one of {known}, and the frame needs `et_node`: call correlate_execution_trace"
        )
        raise InvalidOptionError(message)
    ids, values = et.nodes["node_id"].to_list(), et.nodes[_SOURCES[column]].to_list()
    decoded = [json.loads(value) for value in values] if column in _LISTS else values
    by_node = dict(zip(ids, decoded, strict=True))
    node_values = [by_node.get(node) for node in trace_df["et_node"]]
    trace_df[column] = pd.Series(node_values, index=trace_df.index, dtype=object)
