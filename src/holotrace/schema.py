"""Every stored column: its table, type, unit and meaning.

The reader (Rust), the cache, the analyses, SQL and export all rely on these tables. Each rank has one set of tables.
`tests/test_schema.py` checks that the Rust reader agrees with this file.

Types: `string` is stored as a uint32 row number in the table `strings`; `json` is a `string` whose text is a JSON
value; `text` is stored in the column itself, not in `strings`. Every column may be null except those declared
`nullable=False`. Times are int64 nanoseconds, counted from the Unix epoch if the file makes this possible; the file's
`baseTimeNanoseconds` is already added.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

ColumnType = Literal["int64", "int32", "uint32", "uint64", "uint8", "float64", "bool", "string", "json", "text"]

READER_VERSION = 5
"""Increase this number when the reader stores different rows for the same bytes; caches of other versions are rebuilt."""


STEP_NAME = r"^ProfilerStep\s*#\s*(\d+)"
"""Matches names of ranges that mark training steps, such as `ProfilerStep#12`, and captures the number of the step."""


class EventKind(IntEnum):
    """The kind of an event; each value stands for all names that Kineto has used for this category since 2020.

    >>> from holotrace import EventKind
    >>> EventKind.KERNEL.name, int(EventKind.KERNEL)
    ('KERNEL', 6)
    """

    OTHER = 0
    CPU_OP = 1
    USER_ANNOTATION = 2
    GPU_USER_ANNOTATION = 3
    GPU_MEMCPY = 4
    GPU_MEMSET = 5
    KERNEL = 6
    RUNTIME = 7
    DRIVER = 8
    INSTANT = 9
    MEMORY = 10
    PYTHON_FUNCTION = 11
    OVERHEAD = 12
    SYNCHRONISATION = 13
    CUDA_EVENT = 14
    PROFILER_RANGE = 15
    COLLECTIVE_COMM = 16
    ACCELERATOR = 17
    TRACE_SPAN = 18


DEVICE_WORK_KINDS = (
    EventKind.GPU_MEMCPY,
    EventKind.GPU_MEMSET,
    EventKind.KERNEL,
    EventKind.COLLECTIVE_COMM,
    EventKind.ACCELERATOR,
)
"""Kinds that occupy a device; waits (SYNCHRONISATION), markers and annotations do not."""

LAUNCH_KINDS = (EventKind.RUNTIME, EventKind.DRIVER)
"""Kinds of host calls that launch device work; `correlation` links a call with its work."""


class KernelKind(IntEnum):
    """The kind of a kernel, copy or memset.

    HTA lists kinds in this order when it names an overlap, such as `COMPUTATION overlapping COMMUNICATION`.

    >>> from holotrace import KernelKind
    >>> [kind.name for kind in KernelKind]
    ['COMPUTATION', 'COMMUNICATION', 'MEMORY', 'OTHER']
    """

    COMPUTATION = 0
    COMMUNICATION = 1
    MEMORY = 2
    OTHER = 3


@dataclass(frozen=True)
class Column:
    """One stored column."""

    name: str
    type: ColumnType
    meaning: str
    unit: str = ""
    nullable: bool = True


def _index(
    meaning: str = "position of the event in `traceEvents`, counted from 0 over events of every phase",
) -> Column:
    return Column("event_index", "uint32", meaning, nullable=False)


TABLES: dict[str, tuple[Column, ...]] = {
    "events": (
        _index(),
        Column("start_ns", "int64", "start of the event", "ns since the Unix epoch", nullable=False),
        Column("duration_ns", "int64", "duration of the event; 0 for instants", "ns", nullable=False),
        Column("kind", "uint8", "EventKind, from the category", nullable=False),
        Column("category", "string", "the category as written in the file"),
        Column("name", "string", "the name as written in the file", nullable=False),
        Column("track_id", "uint32", "row number of its process and thread in `tracks`", nullable=False),
        Column("device", "int32", "the arg `device`; for a device row without this arg, its pid"),
        Column(
            "stream",
            "int64",
            "the arg `stream`; for a device row without this arg, its tid; -1 is the whole device",
        ),
        Column("correlation", "int64", "links a host call to its device rows"),
        Column("external_id", "int64", "links runtime and device rows to the operator that launched them"),
    ),
    "tracks": (
        Column("track_id", "uint32", "equals the row number", nullable=False),
        Column(
            "process_id",
            "int64",
            "the pid, which is the device ordinal on device rows; null if the pid is not a number",
        ),
        Column("process_text", "string", "the pid if it is not a number, such as `Spans` or `CPU functions`"),
        Column("thread_id", "int64", "the tid, which is the stream on device rows; null if the tid is not a number"),
        Column("thread_text", "string", "the tid if it is not a number, such as `stream 7`"),
    ),
    "strings": (
        Column("text", "text", "the text; other tables refer to it by its row number (uint32)", nullable=False),
    ),
    "metadata": (
        _index(),
        Column("track_id", "uint32", "the process and thread that the event describes", nullable=False),
        Column("name", "string", "process_name, process_labels, process_sort_index, thread_name, thread_sort_index"),
        Column("value", "string", "the name or the labels of the process or thread"),
        Column("sort_index", "int64", "the requested position of the process or thread among its siblings"),
    ),
    "flows": (
        _index(),
        Column("start_ns", "int64", "time of the event", "ns since the Unix epoch", nullable=False),
        Column("flow_id", "int64", "identifies the arrow within its category: equal at both ends"),
        Column("is_start", "bool", "true if the arrow starts at this event", nullable=False),
        Column(
            "category",
            "string",
            "ac2g (from a launch to its work), fwdbwd (from a forward to a backward operator), "
            "or an older name of either",
        ),
        Column("name", "string", "the name as written"),
        Column("track_id", "uint32", "row number in `tracks`", nullable=False),
    ),
    "counters": (
        _index(),
        Column("start_ns", "int64", "time of the event", "ns since the Unix epoch", nullable=False),
        Column("name", "string", "the counter's name"),
        Column("track_id", "uint32", "row number in `tracks`", nullable=False),
        Column("key", "string", "name of the arg that holds the value; may be empty"),
        Column("value", "float64", "the value"),
    ),
    "operators": (
        _index(),
        Column("evaluation_index", "int64", "`Ev Idx`: position in PyTorch's event tree"),
        Column("record_function_id", "int64", "equal to `rf_id` in an execution trace"),
        Column("sequence_number", "int64", "equal for a forward operator and its backward operators"),
        Column(
            "forward_thread_id",
            "int64",
            "PyTorch's number for the thread of the forward operator; 0 on forward operators",
        ),
    ),
    "operator_inputs": (
        _index(),
        Column("input_dims", "json", "shape of each argument"),
        Column("input_strides", "json", "strides of each argument"),
        Column("input_types", "json", "dtype of each argument"),
        Column("concrete_inputs", "json", "text of scalar arguments"),
    ),
    "operator_sources": (
        _index(),
        Column("call_stack", "string", "Python frames joined by `;`, innermost first"),
        Column("module_hierarchy", "string", "TorchScript module path"),
        Column("backend", "string", "backend of a delegated operator"),
        Column("called_from", "string", "caller of a delegated operator"),
        Column("finished", "bool", "false if the recording ended before the operator did"),
        Column("scope", "string", "`user_scope` on RecordFunctionFast annotations"),
        Column("recorded_device", "int64", "`Device`, in files from 2021; id of the process that recorded the event"),
        Column("trace_name", "string", "`Trace name`, in files from 2021 and 2022"),
        Column("trace_iteration", "int64", "`Trace iteration`, in files from 2021 and 2022"),
        Column("op_count", "int64", "`Op count` of the event that spans the recording, such as `PyTorch Profiler (0)`"),
        Column("instructions", "int64", "number of retired instructions, if performance events were recorded"),
    ),
    "compiled_kernels": (
        _index(),
        Column("kernel_file", "string", "path of the generated source"),
        Column("kernel_hash", "string", "hash of the generated source"),
        Column("kernel_backend", "string", "`triton`"),
        Column("kernel_name", "string", "name of the kernel launched"),
        Column("kernel_kwargs", "string", "block sizes: `XBLOCK=2,R0_BLOCK=2048`"),
        Column("num_warps", "int64", "warps per block"),
        Column("num_stages", "int64", "pipeline stages"),
        Column("kernel_flop", "float64", "floating-point operations of one launch", "FLOP"),
        Column("kernel_gigabytes", "float64", "bytes moved by one launch", "GB"),
        Column("grid_text", "string", "`grid(100,)`"),
    ),
    "collectives": (
        _index(),
        Column(
            "collective",
            "string",
            "as the file spells it: allreduce, _allgather_base, all_to_allv, send, …; the view `collectives` has PyTorch's name",
        ),
        Column("dtype", "string", "c10 name of the element type"),
        Column("in_elements", "int64", "elements in this rank's input"),
        Column("out_elements", "int64", "elements in this rank's output"),
        Column("in_split_sizes", "string", "elements sent to each rank; the profiler keeps at most 30"),
        Column("out_split_sizes", "string", "elements received from each rank; the profiler keeps at most 30"),
        Column("group_size", "int64", "ranks in the group"),
        Column(
            "group_name",
            "string",
            "process group name; each process numbers its groups independently, "
            "so the name does not identify a group across ranks",
        ),
        Column(
            "group_description", "string", "description of the group, such as its mesh axis: default_pg, mesh_dp, …"
        ),
        Column("group_ranks", "string", "`[0, 1, 2, ...]`; the profiler keeps at most 30 ranks"),
        Column("source_rank", "int64", "point to point: sender"),
        Column("destination_rank", "int64", "point to point: receiver"),
        Column("rank", "int64", "rank that recorded the event"),
        Column("sequence", "int64", "number of the operation within its group"),
        Column("communication_id", "uint64", "`Comms Id`, which is the same on all ranks of one operation"),
        Column("is_asynchronous", "bool", "true if the caller did not wait for the operation"),
        Column("global_rank_start", "int64", "first rank of the group"),
        Column("global_rank_stride", "int64", "distance between consecutive ranks of the group"),
        Column("input_tensors_start", "string", "addresses"),
        Column("output_tensors_start", "string", "addresses"),
        Column("communicator_id", "string", "HCCL, XCCL communicator"),
    ),
    "kernels": (
        _index(),
        Column("context", "string", "device context: a number, or hexadecimal text on XPU"),
        Column("queued_ns", "int64", "time in the queue according to the profiler; 0 in practice", "ns"),
        Column("registers_per_thread", "int64", "registers per thread"),
        Column("shared_memory_bytes", "int64", "shared memory per block", "bytes"),
        Column("blocks_per_sm", "float64", "blocks divided by the SM count; may be infinite"),
        Column("warps_per_sm", "float64", "warps divided by the SM count; may be infinite"),
        Column("grid_x", "int64", "blocks"),
        Column("grid_y", "int64", "blocks"),
        Column("grid_z", "int64", "blocks"),
        Column("block_x", "int64", "threads"),
        Column("block_y", "int64", "threads"),
        Column("block_z", "int64", "threads"),
        Column(
            "occupancy_percent",
            "float64",
            "estimated achieved occupancy; in files from 2020 and 2021, theoretical occupancy",
            "0..100",
        ),
        Column("occupancy", "json", "occupancy and the resource that limits it, in files from 2026"),
        Column("graph_id", "int64", "CUDA graph; 0 outside graphs"),
        Column("graph_node_id", "uint64", "node within the CUDA graph; 0 outside graphs"),
        Column("priority", "int64", "stream priority"),
        Column("channel", "int64", "hardware channel"),
        Column("channel_type", "int64", "hardware channel type"),
        Column("hsa_queue", "string", "ROCm queue"),
        Column("activity_kind", "string", "ROCm `kind`: `Dispatch Kernel`, `HtoD`"),
    ),
    "copies": (
        _index(),
        Column("bytes", "int64", "bytes copied or set", "bytes"),
        Column("bandwidth_gb_per_s", "float64", "bandwidth according to the profiler", "GB/s"),
        Column("from_device", "int64", "device that a peer copy reads from"),
        Column("in_device", "int64", "device that performs a peer copy"),
        Column("to_device", "int64", "device that a peer copy writes to"),
        Column("from_context", "int64", "context that a peer copy reads from"),
        Column("in_context", "int64", "context that performs a peer copy"),
        Column("to_context", "int64", "context that a peer copy writes to"),
        Column("copy_kind", "string", "`copy kind`, in files of PyTorch's CUPTI monitor"),
        Column("source_kind", "string", "`src kind`, in files of PyTorch's CUPTI monitor"),
        Column("destination_kind", "string", "`dst kind`, in files of PyTorch's CUPTI monitor"),
        Column("flags", "int64", "`flags`, in files of PyTorch's CUPTI monitor"),
        Column("value", "int64", "byte value of a memset"),
        Column("memory_kind", "string", "`memory kind`, in files of PyTorch's CUPTI monitor"),
        Column("source", "string", "ROCm source address"),
        Column("destination", "string", "ROCm destination address"),
    ),
    "runtime_calls": (
        _index(),
        Column("callback_id", "int64", "`cbid`, on ROCm `cid`"),
        Column("launched_kernel", "string", "ROCm: name of the kernel launched"),
        Column("pointer", "string", "ROCm: address"),
        Column("external_timestamp_us", "int64", "`external ts`, in files from 2021 and 2022", "µs"),
    ),
    "python_frames": (
        _index(),
        Column("python_id", "int64", "number of the frame"),
        Column("python_parent_id", "int64", "number of the caller's frame"),
        Column("python_module_id", "int64", "number of the nn.Module among the modules of its class"),
        Column("python_thread", "int64", "index of the Python thread, not an OS thread id"),
    ),
    "memory": (
        _index(),
        Column("device_type", "int64", "c10 DeviceType: 0 CPU, 1 CUDA, 6 HIP, 12 XPU, 20 PrivateUse1"),
        Column("device_id", "int64", "device ordinal; -1 on the CPU"),
        Column("address", "uint64", "address of the block"),
        Column("bytes", "int64", "bytes allocated; negative if memory was freed", "bytes"),
        Column("total_allocated", "int64", "bytes in use after the event", "bytes"),
        Column("total_reserved", "int64", "bytes reserved after the event", "bytes"),
    ),
    "synchronisations": (
        _index(),
        Column("sync_kind", "string", "Stream Sync, Event Sync, Stream Wait Event, Context Sync"),
        Column("wait_on_stream", "int64", "awaited stream; -1 if none"),
        Column("wait_on_record_correlation", "int64", "correlation of the awaited cudaEventRecord; -1 if none"),
        Column("wait_on_event_id", "int64", "id of the awaited event"),
        Column("event_id", "int64", "id of the recorded event, on `cuda_event` rows"),
    ),
    "xpu": (
        _index(),
        Column("sycl_queue", "string", "SYCL queue"),
        Column("l0_queue", "string", "Level Zero queue"),
        Column("l0_call", "string", "Level Zero call"),
        Column("appended_ns", "int64", "time at which the work was appended to the command list", "ns"),
        Column("submitted_ns", "int64", "time at which the work was submitted", "ns"),
        Column("sycl_task_begin_ns", "int64", "start of the SYCL task", "ns"),
        Column("sycl_enqueue_begin_ns", "int64", "start of the enqueue call", "ns"),
        Column("appended_after_ns", "int64", "appended_ns minus the start of the work", "ns"),
        Column("submitted_after_ns", "int64", "submitted_ns minus the start of the work", "ns"),
        Column("sycl_task_begin_after_ns", "int64", "sycl_task_begin_ns minus the start of the work", "ns"),
        Column("sycl_enqueue_begin_after_ns", "int64", "sycl_enqueue_begin_ns minus the start of the work", "ns"),
        Column("kernel_id", "int64", "number of the kernel"),
        Column("sycl_node_id", "int64", "number of the SYCL node"),
        Column("sycl_invocation_id", "int64", "number of the SYCL invocation"),
        Column("source_file_name", "string", "source file"),
        Column("source_line_number", "int64", "source line"),
        Column("memory_operation_id", "int64", "`memory opration id`, as the profiler spells it"),
        Column("sync_type", "string", "`Type` of a synchronisation"),
        Column("context_handle", "string", "context synchronised"),
        Column("queue_handle", "string", "queue synchronised"),
        Column("event_handle", "string", "event synchronised"),
        Column("wait_event_count", "int64", "number of awaited events"),
        Column("return_code", "string", "return value of the call"),
        Column("overhead_cost", "string", "cost of this overhead; the text includes the unit"),
        Column("overhead_occupancy", "string", "share of the time that this overhead took; the text includes the unit"),
        Column("overhead_count", "int64", "how often this overhead occurred"),
    ),
    "mtia": (
        _index(),
        Column("direction", "string", "HOST_TO_DEVICE, …"),
        Column("size", "int64", "bytes moved", "bytes"),
        Column("work_pointer", "uint64", "`k_work_ptr`"),
        Column("packet_pointer", "uint64", "`packet_ptr`"),
        Column("submission_queue", "int64", "`sqid`"),
        Column("column", "string", "column of the grid"),
        Column("row", "string", "row of the grid"),
        Column("sequence_number", "int64", "`seq_num`"),
        Column("host_context", "int64", "`host_ctx`"),
        Column("command", "string", "`cmd_name`"),
        Column("stream_id", "int64", "`stream_id`"),
        Column("memory_size", "string", "`mem size`; the text includes the unit"),
        Column("executable_name", "string", "executable"),
    ),
    "extra_args": (
        _index(),
        Column("json", "text", "JSON object of the args that have no column of their own", nullable=False),
    ),
}
"""The tables of one rank. The tables events, tracks, strings and metadata are complete; every other table has rows only
for events that have at least one of its fields."""
