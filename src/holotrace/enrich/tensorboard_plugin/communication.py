"""Find the communication nodes of torch_tb_profiler: host events such as `nccl:all_reduce`, each with its kernels.

The plugin treats a kernel as communication if it has the same external id as one of these host events. Since PyTorch
1.13, a kernel and its host event have different external ids, so the plugin mistakes NCCL kernels for computation.
holotrace itself recognises collectives by names and arguments; see `holotrace.enrich.collectives.collectives`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from holotrace.enrich.job.rank_tables import of_all_ranks
from holotrace.enrich.tensorboard_plugin.events import COLLECTIVE_NAMES, PluginType, plugin_events
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_HOST_TYPES = (PluginType.OPERATOR, PluginType.USER_ANNOTATION)
_COLUMNS = ("event_index", "start_ns", "end_ns", "external_id")
_BYTES = {
    "long int": 8,
    "float": 4,
    "int": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "unsigned char": 1,
}
"""Bytes per element; all other element types, even `double`, count as 0 bytes."""


@derived
def communication_events(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the events that the plugin considers collectives.

    Returns:
        In the order of `plugin_events`: event_index uint32, start_ns and end_ns int64, external_id int64 or null, name
        str.
    """
    ids = rank_trace.strings.is_in(list(COLLECTIVE_NAMES)).arg_true().cast(pl.UInt32)
    events = plugin_events(rank_trace).filter(pl.col("type").is_in(_HOST_TYPES) & pl.col("name").is_in(ids.implode()))
    return events.select(*_COLUMNS, rank_trace.texts(events["name"]))


@derived
def communication_kernels(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the kernels with the external id of a communication event.

    Returns:
        event_index uint32, start_ns and end_ns int64, external_id int64 or null; rows in the order of `plugin_events`.
    """
    ids = communication_events(rank_trace)["external_id"].unique()
    kernels = plugin_events(rank_trace).filter(pl.col("type") == PluginType.KERNEL).select(_COLUMNS)
    return kernels.join(ids.to_frame(), on="external_id", how="semi", nulls_equal=True, maintain_order="left")


@derived
def communication_nodes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the communication nodes, one for each external id: the last event with this id.

    A rank that uses both NCCL and gloo has no nodes, because the plugin does not distinguish them.

    Returns:
        event_index uint32, name str, start_ns, end_ns int64, external_id int64 or null, byte_count int64. Sorted by
        start; nodes with the same start are sorted from longest to shortest.
    """
    events = communication_events(rank_trace)
    if events["name"].str.slice(0, 4).n_unique() > 1:
        return _with_bytes(rank_trace, events.clear())
    nodes = events.unique("external_id", keep="last", maintain_order=True)
    # Nodes with the same start and end are sorted by the first occurrence of their ids.
    first = events.unique("external_id", keep="first", maintain_order=True).select("external_id").with_row_index("met")
    ordered = nodes.join(first, on="external_id", nulls_equal=True)
    by_time = ordered.sort("start_ns", "end_ns", "met", descending=[False, True, False]).drop("met")
    return _with_bytes(rank_trace, by_time)


@derived
def node_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the intervals of every communication node: the host event and, with NCCL, its kernels.

    Returns:
        node uint32 (row of `communication_nodes`), place int64 (number of the range within the node), start_ns and
        end_ns int64. Sorted by node, then by start; ranges with the same start are sorted from longest to shortest.
    """
    nodes = communication_nodes(rank_trace).with_row_index("node")
    uses_nccl = nodes["name"].str.starts_with("nccl:").any()
    kernels = communication_kernels(rank_trace) if uses_nccl else nodes.clear()
    of_nodes = kernels.select("external_id", "start_ns", "end_ns").join(
        nodes.select("external_id", "node"), on="external_id", nulls_equal=True
    )
    columns = ["node", "start_ns", "end_ns"]
    ranges = pl.concat([nodes.select(columns), of_nodes.select(columns)])
    ordered = ranges.sort("node", "start_ns", "end_ns", descending=[False, False, True])
    return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("node").alias("place"))


def plugin_communication_ranges(rank_trace: RankTrace, steps: pl.DataFrame) -> pl.DataFrame:
    """Return the ranges of a rank's communication nodes, with the columns of `JobRanges`, except rank and wait_ns.

    Two more columns, node and place, identify a range; see `node_ranges`. `steps` is the result of
    `holotrace.enrich.tensorboard_plugin.steps.plugin_steps`.
    """
    nodes = communication_nodes(rank_trace)
    with_step = nodes.with_columns(step_of_nodes(nodes, steps)).with_row_index("node")
    ranges = node_ranges(rank_trace).join(
        with_step.select("node", "step", "name", "byte_count"), on="node", how="left", maintain_order="left"
    )
    return ranges.select(
        "node",
        "place",
        "step",
        pl.lit(value=False).alias("is_before"),
        pl.col("name").alias("collective"),
        pl.lit(None, pl.String).alias("dtype"),
        "byte_count",
        (pl.col("place") == 0).alias("is_call"),
        "start_ns",
        "end_ns",
    )


def matched_plugin_ranges(of_ranks: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the ranges of all ranks in one table, as described in `JobRanges`.

    Ranges of different ranks match if two numbers are equal: the number of the node that contains the range, and the
    number of the range within its node (`place`). The duration of the shortest matching range is the transfer time; the remainder of a longer
    range is waiting. If any range is missing on any rank, all waiting times are unknown.
    """
    ranges = of_all_ranks(of_ranks)
    duration = pl.col("end_ns") - pl.col("start_ns")
    is_everywhere = (pl.len().over("node", "place") == len(of_ranks)).all()
    wait = pl.when(is_everywhere).then(duration - duration.min().over("node", "place"))
    return ranges.with_columns(wait.alias("wait_ns"))


def step_of_nodes(nodes: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    """Return, for each node, the number (int64) of the step that contains the entire node; null if there is none.

    `steps` is the result of `holotrace.enrich.tensorboard_plugin.steps.plugin_steps`.
    """
    row = np.searchsorted(steps["end_ns"].to_numpy(), nodes["start_ns"].to_numpy(), side="right")
    known = pl.Series(np.where(row < len(steps), row, -1)).replace(-1, None).cast(pl.UInt32)
    containing = steps.select(pl.col("window", "start_ns", "end_ns").gather(known))
    inside = (containing["start_ns"] <= nodes["start_ns"]) & (containing["end_ns"] >= nodes["end_ns"])
    return containing.select(pl.when(inside).then("window").alias("step"))["step"]


def _with_bytes(rank_trace: RankTrace, events: pl.DataFrame) -> pl.DataFrame:
    inputs = rank_trace.table("operator_inputs", ["event_index", "input_dims", "input_types"])
    known = events.join(inputs, on="event_index", how="left", maintain_order="left")
    distinct = known.select("input_dims", "input_types").unique()
    texts = (rank_trace.texts(distinct[column]).to_list() for column in ("input_dims", "input_types"))
    sizes = [_byte_count(dims, types) for dims, types in zip(*texts, strict=True)]
    by_input = distinct.with_columns(pl.Series("byte_count", sizes, pl.Int64))
    counted = known.join(
        by_input, on=["input_dims", "input_types"], how="left", nulls_equal=True, maintain_order="left"
    )
    return counted.drop("input_dims", "input_types")


def _byte_count(dims: str | None, types: str | None) -> int:
    """Return the total size of all inputs in bytes, computed as in the plugin."""
    if dims is None or types is None:
        return 0
    shapes, kinds = json.loads(dims), json.loads(types)
    return sum(_elements(shape) * _BYTES.get(kind, 0) for shape, kind in zip(shapes, kinds, strict=False))


def _elements(shape: Any) -> int:  # noqa: ANN401 -- whatever JSON holds
    is_shape = isinstance(shape, list) and all(isinstance(dim, int) for dim in shape)
    return math.prod(shape) if is_shape else 0
