"""HTA's columns for event args: name, key in the file, type and default value of each column."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"

DEFAULT_TRACE_DIR = "/tmp/trace"  # noqa: S108 -- HTA's default


class ValueType(Enum):
    """The type of a column's values; `Object` allows any values, such as lists."""

    Int = 1
    Float = 2
    String = 3
    Object = 4


class YamlVersion(NamedTuple):
    """The version of HTA's list of args."""

    major: int
    minor: int
    patch: int

    def get_version_str(self) -> str:
        """Return the version as text, such as `1.0.0`."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @staticmethod
    def from_string(version_str: str) -> YamlVersion:
        """Parse a version such as `1.0.0`."""
        major, minor, patch = map(int, version_str.split("."))
        return YamlVersion(major, minor, patch)


v1_0_0 = YamlVersion(1, 0, 0)


class AttributeSpec(NamedTuple):
    """A frame column that contains an arg.

    name                   the column's name
    raw_name               the arg's name in the file
    value_type             the type of its values
    default_value          the value for events without the arg
    min_supported_version  the first version of HTA's list that includes the arg
    """

    name: str
    raw_name: str
    value_type: ValueType
    default_value: Any
    min_supported_version: YamlVersion = v1_0_0


_KNOWN: tuple[tuple[str, str, str, ValueType, Any], ...] = (
    ("index::ev_idx", "ev_idx", "Ev Idx", ValueType.Int, -1),
    ("index::external_id", "external_id", "External id", ValueType.Int, -1),
    ("index::python_id", "python_id", "Python id", ValueType.Int, -1),
    ("index::python_parent_id", "python_parent_id", "Python parent id", ValueType.Int, -1),
    ("cpu_op::concrete_inputs", "concrete_inputs", "Concrete Inputs", ValueType.Object, "[]"),
    ("cpu_op::fwd_thread", "fwd_thread_id", "Fwd thread id", ValueType.Int, -1),
    ("cpu_op::input_dims", "input_dims", "Input Dims", ValueType.Object, "-1"),
    ("cpu_op::input_type", "input_type", "Input type", ValueType.Object, "-1"),
    ("cpu_op::input_strides", "input_strides", "Input Strides", ValueType.Object, "-1"),
    ("cpu_op::sequence_number", "sequence", "Sequence number", ValueType.Int, -1),
    ("cpu_op::kernel_backend", "kernel_backend", "kernel_backend", ValueType.String, ""),
    ("cpu_op::kernel_hash", "kernel_hash", "kernel_hash", ValueType.String, ""),
    ("correlation::cbid", "cbid", "cbid", ValueType.Int, -1),
    ("correlation::cpu_gpu", "correlation", "correlation", ValueType.Int, -1),
    ("sm::blocks", "blocks_per_sm", "blocks per SM", ValueType.Object, "[]"),
    ("sm::occupancy", "est_occupancy", "est. achieved occupancy %", ValueType.Int, -1),
    ("sm::warps", "warps_per_sm", "warps per SM", ValueType.Float, 0.0),
    ("data::bytes", "bytes", "bytes", ValueType.Int, -1),
    ("data::bandwidth", "memory_bw_gbps", "memory bandwidth (GB/s)", ValueType.Float, 0.0),
    ("cuda::context", "context", "context", ValueType.Int, -1),
    ("cuda::device", "device", "device", ValueType.Int, -1),
    ("cuda::stream", "stream", "stream", ValueType.Int, -1),
    ("kernel::queued", "queued", "queued", ValueType.Int, -1),
    ("kernel::shared_memory", "shared_memory", "shared memory", ValueType.Int, -1),
    ("threads::block", "block", "block", ValueType.Object, "[]"),
    ("threads::grid", "grid", "grid", ValueType.Object, "[]"),
    ("threads::registers", "registers_per_thread", "registers per thread", ValueType.Int, -1),
    ("cuda_sync::stream", "wait_on_stream", "wait_on_stream", ValueType.Int, -1),
    ("cuda_sync::event", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_record_corr_id", ValueType.Int, -1),
    ("info::finished", "finished", "finished", ValueType.String, ""),
    ("info::labels", "labels", "labels", ValueType.String, ""),
    ("info::name", "name", "name", ValueType.Int, -1),
    ("info::op_count", "op_count", "Op count", ValueType.Int, -1),
    ("info::sort_index", "sort_index", "sort_index", ValueType.Int, -1),
    ("nccl::collective_name", "collective_name", "Collective name", ValueType.String, ""),
    ("nccl::in_msg_nelems", "in_msg_nelems", "In msg nelems", ValueType.Int, 0),
    ("nccl::out_msg_nelems", "out_msg_nelems", "Out msg nelems", ValueType.Int, 0),
    ("nccl::in_msg_size", "in_msg_size", "In msg size", ValueType.Int, 0),
    ("nccl::out_msg_size", "out_msg_size", "Out msg size", ValueType.Int, 0),
    ("nccl::group_size", "group_size", "Group size", ValueType.Int, 0),
    ("nccl::dtype", "msg_dtype", "dtype", ValueType.String, ""),
    ("nccl::in_split_size", "in_split_size", "In split size", ValueType.Object, "[]"),
    ("nccl::out_split_size", "out_split_size", "Out split size", ValueType.Object, "[]"),
    ("nccl::input_tensors_start", "input_tensors_start", "Input Tensors start", ValueType.Object, "[]"),
    ("nccl::output_tensors_start", "output_tensors_start", "Output Tensors start", ValueType.Object, "[]"),
    ("nccl::process_group_name", "process_group_name", "Process Group Name", ValueType.String, ""),
    ("nccl::process_group_desc", "process_group_desc", "Process Group Description", ValueType.String, ""),
    ("nccl::process_group_ranks", "process_group_ranks", "Process Group Ranks", ValueType.Object, "[]"),
    ("nccl::rank", "process_rank", "Rank", ValueType.Int, -1),
    ("nccl::seq", "seq_num", "Seq", ValueType.Int, -1),
    ("inference::batch_size", "batch_size", "batchSize", ValueType.Int, -1),
    ("inference::batch_id", "batch_id", "batchId", ValueType.String, ""),
)
_LATER = {
    "cpu_op::kernel_hash": YamlVersion(1, 1, 0),
    "nccl::input_tensors_start": YamlVersion(1, 2, 0),
    "nccl::output_tensors_start": YamlVersion(1, 2, 0),
}
_OUTSIDE_EVENTS = ("info",)
"""Groups of args that do not describe single events, but processes, threads or the end of a recording."""

AVAILABLE_ARGS: Mapping[str, AttributeSpec] = {
    key: AttributeSpec(name, raw_name, value_type, default, _LATER.get(key, v1_0_0))
    for key, name, raw_name, value_type, default in _KNOWN
}
"""{HTA's key: column} for every arg that has a column in HTA, such as `cpu_op::kernel_hash`."""


def _specs(*keys: str) -> list[AttributeSpec]:
    return [AVAILABLE_ARGS[key] for key in keys]


class EventArgs(NamedTuple):
    """HTA's lists of args."""

    AVAILABLE_ARGS: Mapping[str, AttributeSpec]
    ARGS_INPUT_SHAPE: list[AttributeSpec]
    ARGS_BANDWIDTH: list[AttributeSpec]
    ARGS_SYNC: list[AttributeSpec]
    ARGS_MINIMUM: list[AttributeSpec]
    ARGS_COMPLETE: list[AttributeSpec]
    ARGS_INFO: list[AttributeSpec]
    ARGS_COMMUNICATION: list[AttributeSpec]
    ARGS_TRITON_KERNELS: list[AttributeSpec]
    ARGS_DEFAULT: list[AttributeSpec]


_INDEX = _specs("index::external_id", "index::python_id", "index::python_parent_id")
_MINIMUM = _specs("cuda::stream", "correlation::cpu_gpu")
_BANDWIDTH = _specs("data::bytes", "data::bandwidth")
_SYNC = _specs("cuda_sync::stream", "cuda_sync::event")
_INPUT_SHAPE = _specs("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides")
_COMMUNICATION = _specs(
    "nccl::collective_name",
    "nccl::in_msg_nelems",
    "nccl::out_msg_nelems",
    "nccl::dtype",
    "nccl::group_size",
    "nccl::rank",
    "nccl::in_split_size",
    "nccl::out_split_size",
)

EVENT_ARGS = EventArgs(
    AVAILABLE_ARGS=AVAILABLE_ARGS,
    ARGS_INPUT_SHAPE=_INPUT_SHAPE,
    ARGS_BANDWIDTH=_BANDWIDTH,
    ARGS_SYNC=_SYNC,
    ARGS_MINIMUM=_MINIMUM,
    ARGS_COMPLETE=[spec for key, spec in AVAILABLE_ARGS.items() if not key.startswith(_OUTSIDE_EVENTS)],
    ARGS_INFO=_specs("info::labels", "info::name", "info::sort_index"),
    ARGS_COMMUNICATION=_COMMUNICATION,
    ARGS_TRITON_KERNELS=_specs("cpu_op::kernel_backend", "cpu_op::kernel_hash"),
    ARGS_DEFAULT=[*_MINIMUM, *_BANDWIDTH, *_SYNC, *_INPUT_SHAPE, *_INDEX, *_COMMUNICATION],
)
