"""Adds args of events to a frame as columns; finds each arg by its name in the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.schema import TABLES
from holotrace.store.trace import RankTrace
from hta.configs.default_values import AVAILABLE_ARGS, AttributeSpec, ValueType
from hta.configs.parser_config import ParserConfig
from hta.facade.imports.modules_later import pd

_SOURCES: dict[str, dict[str, str]] = {
    "events": {"correlation": "correlation", "External id": "external_id", "device": "device", "stream": "stream"},
    "operators": {
        "Ev Idx": "evaluation_index",
        "Record function id": "record_function_id",
        "Sequence number": "sequence_number",
        "Fwd thread id": "forward_thread_id",
    },
    "operator_inputs": {
        "Input Dims": "input_dims",
        "Input type": "input_types",
        "Input Strides": "input_strides",
        "Concrete Inputs": "concrete_inputs",
    },
    "operator_sources": {
        "Call stack": "call_stack",
        "Module Hierarchy": "module_hierarchy",
        "Backend": "backend",
        "CallFrom": "called_from",
        "finished": "finished",
        "scope": "scope",
        "Device": "recorded_device",
        "Trace name": "trace_name",
        "Trace iteration": "trace_iteration",
        "Op count": "op_count",
        "instructions": "instructions",
    },
    "compiled_kernels": {
        **{f"kernel_{arg}": f"kernel_{arg}" for arg in ("file", "hash", "backend", "name", "kwargs", "flop")},
        "num_warps": "num_warps",
        "num_stages": "num_stages",
        "kernel_num_gb": "kernel_gigabytes",
    },
    "collectives": {
        "Collective name": "collective",
        "dtype": "dtype",
        "In msg nelems": "in_elements",
        "Out msg nelems": "out_elements",
        "In split size": "in_split_sizes",
        "Out split size": "out_split_sizes",
        "Group size": "group_size",
        "Process Group Name": "group_name",
        "Process Group Description": "group_description",
        "Process Group Ranks": "group_ranks",
        "Src Rank": "source_rank",
        "Dst Rank": "destination_rank",
        "Rank": "rank",
        "Seq": "sequence",
        "Comms Id": "communication_id",
        "Is asynchronized op": "is_asynchronous",
        "Global rank start": "global_rank_start",
        "Global rank stride": "global_rank_stride",
        "Input Tensors start": "input_tensors_start",
        "Output Tensors start": "output_tensors_start",
        "Communicator_id": "communicator_id",
    },
    "kernels": {
        "context": "context",
        "queued": "queued_ns",
        "registers per thread": "registers_per_thread",
        "shared memory": "shared_memory_bytes",
        "blocks per SM": "blocks_per_sm",
        "warps per SM": "warps_per_sm",
        "est. achieved occupancy %": "occupancy_percent",
        "occupancy": "occupancy",
        "graph id": "graph_id",
        "graph node id": "graph_node_id",
        "priority": "priority",
        "channel": "channel",
        "channel_type": "channel_type",
        "hsa_queue": "hsa_queue",
        "kind": "activity_kind",
    },
    "copies": {
        "bytes": "bytes",
        "memory bandwidth (GB/s)": "bandwidth_gb_per_s",
        "fromDevice": "from_device",
        "inDevice": "in_device",
        "toDevice": "to_device",
        "fromContext": "from_context",
        "inContext": "in_context",
        "toContext": "to_context",
        "copy kind": "copy_kind",
        "src kind": "source_kind",
        "dst kind": "destination_kind",
        "flags": "flags",
        "value": "value",
        "memory kind": "memory_kind",
        "src": "source",
        "dst": "destination",
    },
    "runtime_calls": {
        "cbid": "callback_id",
        "kernel": "launched_kernel",
        "ptr": "pointer",
        "external ts": "external_timestamp_us",
    },
    "python_frames": {
        "Python id": "python_id",
        "Python parent id": "python_parent_id",
        "Python module id": "python_module_id",
        "Python thread": "python_thread",
    },
    "synchronisations": {
        "cuda_sync_kind": "sync_kind",
        "wait_on_stream": "wait_on_stream",
        "wait_on_cuda_event_record_corr_id": "wait_on_record_correlation",
        "wait_on_cuda_event_id": "wait_on_event_id",
        "event_id": "event_id",
    },
    "xpu": {
        "sycl queue": "sycl_queue",
        "l0 queue": "l0_queue",
        "l0 call": "l0_call",
        "kernel_id": "kernel_id",
        "sycl_node_id": "sycl_node_id",
        "sycl_invocation_id": "sycl_invocation_id",
        "source_file_name": "source_file_name",
        "source_line_number": "source_line_number",
        "memory opration id": "memory_operation_id",
        "Type": "sync_type",
        "Context_handle": "context_handle",
        "Queue_handle": "queue_handle",
        "Event_handle": "event_handle",
        "Number_wait_events": "wait_event_count",
        "Return_code": "return_code",
        "overhead cost": "overhead_cost",
        "overhead occupancy": "overhead_occupancy",
        "overhead count": "overhead_count",
    },
    "mtia": {
        "direction": "direction",
        "size": "size",
        "k_work_ptr": "work_pointer",
        "packet_ptr": "packet_pointer",
        "sqid": "submission_queue",
        "column": "column",
        "row": "row",
        "seq_num": "sequence_number",
        "host_ctx": "host_context",
        "cmd_name": "command",
        "mem size": "memory_size",
        "stream_id": "stream_id",
        "executable_name": "executable_name",
    },
}
"""{table: {arg: column}}, with one spelling for each arg. Omits args of events that frames do not list, such as memory events."""

_TRIPLES = ("grid", "block")
_NUMBERS: dict[ValueType, pl.DataType] = {ValueType.Int: pl.Int64(), ValueType.Float: pl.Float64()}


class _StoredArg(NamedTuple):
    table: str
    columns: tuple[str, ...]


_STORED_ARGS: dict[str, _StoredArg] = {
    **{raw: _StoredArg(table, (column,)) for table, columns in _SOURCES.items() for raw, column in columns.items()},
    **{raw: _StoredArg("kernels", tuple(f"{raw}_{axis}" for axis in "xyz")) for raw in _TRIPLES},
}
_TYPES = {(table, column.name): column.type for table, columns in TABLES.items() for column in columns}


def configured(frame: pd.DataFrame, rank_trace: RankTrace, config: ParserConfig) -> pd.DataFrame:
    """Return a frame of `trace_frame` with the configured args as columns.

    If the configured args are the default args, returns the frame itself. Otherwise, puts the columns of the args
    between `dur` and `index_correlation`; the other columns keep their order.
    """
    wanted = _seen(frame, rank_trace, config) if config.parse_all_args else config.get_args()
    if wanted == config.ARGS_DEFAULT:
        return frame
    args = {spec.name for spec in config.ARGS_DEFAULT}
    fixed = [name for name in frame.columns if name not in args]
    after_duration = fixed.index("dur") + 1
    columns: dict[str, Any] = {name: frame[name] for name in fixed[:after_duration]}
    columns |= {spec.name: _column(frame, rank_trace, spec) for spec in wanted if spec.name not in fixed}
    return pd.DataFrame(columns | {name: frame[name] for name in fixed[after_duration:]}, index=frame.index)


def _column(frame: pd.DataFrame, rank_trace: RankTrace, spec: AttributeSpec) -> npt.NDArray[Any] | pd.Series:
    if spec in ParserConfig.ARGS_DEFAULT:
        return frame[spec.name]
    return arg_values(rank_trace, frame["index"].to_numpy(), spec)


def arg_values(rank_trace: RankTrace, event_indexes: npt.NDArray[np.int64], spec: AttributeSpec) -> npt.NDArray[Any]:
    """Return an arg's value for each event, or `spec.default_value` for events without the arg.

    Values of numeric columns are cast to the column's type; values that are not numbers are treated as missing. Text
    and lists become objects.
    """
    recorded = _recorded(rank_trace, spec.raw_name).unique("event_index", keep="first")
    rows = pl.DataFrame({"event_index": event_indexes}).with_columns(pl.col("event_index").cast(pl.UInt32))
    positions = rows.join(
        recorded.with_row_index("row").select("event_index", "row"), on="event_index", how="left", maintain_order="left"
    )["row"]
    return _filled(recorded["value"], positions, spec)


def _filled(values: pl.Series, positions: pl.Series, spec: AttributeSpec) -> npt.NDArray[Any]:
    """Return the value at each position, or the default where the position is null."""
    if spec.value_type in _NUMBERS and spec.default_value is not None and values.dtype != pl.Object:
        numbers = values.cast(_NUMBERS[spec.value_type], strict=False).gather(positions)
        return numbers.fill_null(spec.default_value).to_numpy()
    objects = np.empty(len(values) + 1, dtype=object)
    for row, value in enumerate([*values.to_list(), spec.default_value]):
        objects[row] = spec.default_value if value is None else value
    filled: npt.NDArray[Any] = objects[positions.fill_null(len(values)).to_numpy()]
    return filled


def _recorded(rank_trace: RankTrace, raw_name: str) -> pl.DataFrame:
    """Return `event_index` and `value` of the events that have an arg."""
    if raw_name not in _STORED_ARGS:
        return _extra(rank_trace, raw_name)
    table, columns = _STORED_ARGS[raw_name]
    stored = rank_trace.table(table, ["event_index", *columns]).drop_nulls()
    return stored.select("event_index", _value(rank_trace, table, stored.select(columns)))


def _value(rank_trace: RankTrace, table: str, stored: pl.DataFrame) -> pl.Series:
    if stored.width > 1:
        return stored.select(pl.concat_list(pl.all())).to_series().alias("value")
    values = stored.to_series()
    stored_type = _TYPES[table, values.name]
    if stored_type == "json":
        return _decoded(rank_trace.texts(values), json.loads)
    return (rank_trace.texts(values) if stored_type == "string" else values).alias("value")


def _decoded(texts: pl.Series, decode: Callable[[str], object]) -> pl.Series:
    """Decode JSON strings; equal strings share one object."""
    known = {text: decode(text) for text in texts.unique().to_list()}
    return pl.Series("value", [known[text] for text in texts.to_list()], dtype=pl.Object)


def _extra(rank_trace: RankTrace, raw_name: str) -> pl.DataFrame:
    """Return the values of an arg that is stored only as JSON in the table `extra_args`."""
    with_arg = [(index, args[raw_name]) for index, args in _extra_args(rank_trace) if raw_name in args]
    return pl.DataFrame(
        {
            "event_index": pl.Series([index for index, _ in with_arg], dtype=pl.UInt32),
            "value": _typed([value for _, value in with_arg]),
        }
    )


def _typed(values: list[Any]) -> pl.Series:
    is_number = all(isinstance(value, int | float) for value in values)
    return pl.Series("value", values, dtype=pl.Float64 if is_number else pl.Object, strict=False)


def _extra_args(rank_trace: RankTrace) -> Iterator[tuple[int, dict[str, Any]]]:
    table = rank_trace.table("extra_args")
    known = {text: json.loads(text) for text in table["json"].unique().to_list()}
    return ((index, known[text]) for index, text in table.select("event_index", "json").iter_rows())


def _seen(frame: pd.DataFrame, rank_trace: RankTrace, config: ParserConfig) -> list[AttributeSpec]:
    """Return a column for each arg in the frame's events: first HTA's args in HTA's order, then all other args."""
    shown = pl.Series(frame["index"].to_numpy()).cast(pl.UInt32).implode()
    values = {raw: value for raw in _STORED_ARGS if (value := _first(_recorded(rank_trace, raw), shown)) is not None}
    for index, args in _extra_args(rank_trace):
        values |= {raw: value for raw, value in args.items() if raw not in values and index in frame.index}
    known = {spec.raw_name: spec for spec in [*AVAILABLE_ARGS.values(), *config.args] if spec.raw_name in values}
    others = [config.make_attribute_spec(raw, value) for raw, value in values.items() if raw not in known]
    return [*known.values(), *others]


def _first(recorded: pl.DataFrame, shown: pl.Series) -> object | None:
    of_frame = recorded.filter(pl.col("event_index").is_in(shown))
    return of_frame["value"][0] if of_frame.height else None
