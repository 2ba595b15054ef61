"""Define the SQL views: the columns with type, unit and meaning, and the functions or queries that produce the rows.

Each table of `holotrace.schema.TABLES` is also available as the view `stored.<table>`, with the same columns as in a
store. Every view begins with the column `rank` (int32). docs/reference/schema.md shows the views; a test compares it
with this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from holotrace.execution.executor import Executor
from holotrace.schema import Column
from holotrace.sql_queries.rows import (
    annotation_rows,
    collective_rows,
    device_work_rows,
    doubt_rows,
    inference_step_rows,
    kernel_rows,
    launch_rows,
    matched_collective_rows,
    memory_rows,
    operator_rows,
    rank_rows,
    source_line_rows,
    step_rows,
)
from holotrace.store.tables.arrow_tables import polars_type
from holotrace.store.trace import RankTrace, Trace


@dataclass(frozen=True)
class SqlView:
    """A view: the meaning of a row, the columns except `rank`, and the source of the rows.

    The source is one of the following:

    rows    a function that returns the rows of a rank
    of_job  a function that returns the rows of all ranks, with a column `rank`
    select  a query over stored tables, whose names are in `needs`
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    rows: Callable[[RankTrace], pl.DataFrame] | None = None
    select: str = ""
    needs: tuple[str, ...] = ()
    of_job: Callable[[Trace, Executor], pl.DataFrame] | None = None

    @property
    def types(self) -> pl.Schema:
        """The Polars type of every column, in order."""
        return pl.Schema({column.name: polars_type(column.type) for column in self.columns})


_EPOCH = "ns since the Unix epoch"
_EVENT = Column("event_index", "uint32", "number of the event in its file, from 0; the same in all views of the rank")
_START = Column("start_ns", "int64", "start of the event", _EPOCH)
_END = Column("end_ns", "int64", "end of the event", _EPOCH)
_DURATION = Column("duration_ns", "int64", "end_ns - start_ns", "ns")
_RANGE = (_START, _END, _DURATION)
_DEVICE = Column("device", "int32", "device ordinal; -1 if not recorded")
_STREAM = Column("stream", "int64", "stream or queue; -1 if not recorded")
_THREAD = Column("thread", "text", "host thread, as written in the file")
_STEP = Column(
    "step",
    "int64",
    "N of the ProfilerStep#N in which the host event began or the device work was launched; null outside steps",
)
_WORK = (
    _EVENT,
    *_RANGE,
    Column("name", "text", "as written in the file"),
    Column("kernel_kind", "text", "computation, communication, memory or other"),
    Column("event_kind", "text", "kernel, gpu_memcpy, gpu_memset, collective_comm or accelerator"),
    _DEVICE,
    _STREAM,
    Column("correlation", "int64", "links the work to its launch; -1 if the file has none"),
    Column("launch_index", "uint32", "event_index of the call that launched the work; null if unknown"),
    Column("launch_start_ns", "int64", "start of the launch call", _EPOCH),
    Column("launch_end_ns", "int64", "end of the launch call", _EPOCH),
    Column(
        "launch_delay_ns",
        "int64",
        "time from the end of the launch call to the start of the work; negative if the work starts earlier",
        "ns",
    ),
    Column("operator_index", "uint32", "event_index of the innermost operator around the launch"),
    Column("operator", "text", "its name"),
    Column("top_operator_index", "uint32", "event_index of the outermost operator around the launch"),
    Column("top_operator", "text", "its name"),
    _STEP,
    Column("annotation", "text", "innermost user annotation on the stream of the work or around its launch"),
)

VIEWS: dict[str, SqlView] = {
    view.name: view
    for view in (
        SqlView(
            "ranks",
            "a rank: its host and devices, the profiler options, and the health of its file",
            (
                Column("source", "text", "the trace file: a path or a URL"),
                Column("host_name", "text", "as written in the file"),
                Column("world_size", "int64", "number of ranks in the job"),
                Column("backend", "text", "nccl, gloo, …"),
                Column("device_name", "text", "name of the first device"),
                Column("device_count", "int64", "number of devices that the rank saw"),
                Column("start_ns", "int64", "start of the first event with a duration", _EPOCH),
                Column("end_ns", "int64", "end of the last event with a duration", _EPOCH),
                _DURATION,
                Column("event_count", "int64", "rows of events"),
                Column("device_work_count", "int64", "rows of device_work"),
                *(
                    Column(option, "bool", "whether this profiler option was on")
                    for option in ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
                ),
                Column("is_clean", "bool", "whether the file was read without repairing or dropping data"),
            ),
            rank_rows,
        ),
        SqlView(
            "events",
            "an event in the file: anything with a start and a duration, or an instant",
            (
                _EVENT,
                *_RANGE,
                Column("kind", "text", "`holotrace.EventKind` in lower case: cpu_op, kernel, runtime, …"),
                Column("category", "text", "the category as written in the file"),
                Column("name", "text", "as written in the file"),
                Column("device", "int32", "device ordinal; null on the host"),
                Column("stream", "int64", "stream or queue; -1 is the whole device; null on the host"),
                Column("correlation", "int64", "links a host call to its device rows"),
                Column("external_id", "int64", "links runtime and device rows to their operator"),
                Column("track_id", "uint32", "number of the process and thread within the rank"),
                Column("process", "text", "process, as written in the file"),
                _THREAD,
            ),
            select=(
                "SELECT rank, event_index, start_ns, start_ns + greatest(duration_ns, 0) AS end_ns, "
                "greatest(duration_ns, 0) AS duration_ns, kind, category, name, device, stream, correlation, "
                "external_id, track_id, coalesce(process_text, process_id::VARCHAR) AS process, "
                "coalesce(thread_text, thread_id::VARCHAR) AS thread "
                "FROM stored.events LEFT JOIN stored.tracks USING (rank, track_id)"
            ),
            needs=("events", "tracks"),
        ),
        SqlView(
            "device_work",
            "a kernel, copy or memset, but not a wait or a marker",
            (*_WORK, Column("bytes", "int64", "bytes copied or set; null for kernels", "bytes")),
            device_work_rows,
        ),
        SqlView(
            "kernels",
            "a kernel, with its launch shape",
            (
                *_WORK,
                *(Column(f"grid_{axis}", "int64", "blocks of the launch") for axis in "xyz"),
                *(Column(f"block_{axis}", "int64", "threads per block") for axis in "xyz"),
                Column("registers_per_thread", "int64", "registers per thread"),
                Column("shared_memory_bytes", "int64", "shared memory per block", "bytes"),
                Column("blocks_per_sm", "float64", "blocks divided by the SM count"),
                Column("occupancy_fraction", "float64", "estimated achieved occupancy", "0..1"),
                Column(
                    "uses_tensor_cores",
                    "bool",
                    "whether the kernel runs on tensor cores; null if its name does not show this",
                ),
            ),
            kernel_rows,
        ),
        SqlView(
            "launches",
            "a runtime or driver call that launched work; a CUDA graph launch is one row",
            (
                Column("event_index", "uint32", "event_index of the call, equal to launch_index of the launched work"),
                *_RANGE,
                Column("name", "text", "the function called"),
                _THREAD,
                Column("work_count", "int64", "number of kernels, copies and memsets that the call launched"),
                Column("work_ns", "int64", "summed duration of the launched work", "ns"),
                Column("first_start_ns", "int64", "start of the first kernel, copy or memset", _EPOCH),
                Column("launch_delay_ns", "int64", "first_start_ns - end_ns", "ns"),
                Column("operator_index", "uint32", "event_index of the innermost operator around the call"),
                Column("operator", "text", "its name"),
            ),
            launch_rows,
        ),
        SqlView(
            "operators",
            "a call of a PyTorch operator on the host",
            (
                _EVENT,
                *_RANGE,
                Column("name", "text", "the operator"),
                Column("host_self_ns", "int64", "self time: duration without nested operators and runtime calls", "ns"),
                Column("device_total_ns", "int64", "summed duration of the device work launched within the call", "ns"),
                Column(
                    "device_self_ns", "int64", "device_total_ns without the work launched inside nested operators", "ns"
                ),
                Column("parent_index", "uint32", "event_index of the enclosing operator; null if there is none"),
                Column("depth", "int32", "number of enclosing operators, annotations and modules"),
                _THREAD,
                _STEP,
                Column("input_dims", "text", "JSON: shape of each argument; null if not recorded"),
                Column("input_types", "text", "JSON: type of each argument"),
                Column(
                    "is_tensor_core_eligible",
                    "bool",
                    "whether tensor or matrix cores could do some of the operator's work",
                ),
            ),
            operator_rows,
        ),
        SqlView(
            "source_lines",
            "an event for which the line of the user's code is known: "
            "device work, an operator, a call or a Python function",
            (
                _EVENT,
                *_RANGE,
                Column("kind", "text", "`holotrace.EventKind` in lower case: cpu_op, kernel, runtime, …"),
                Column("name", "text", "as written in the file"),
                Column(
                    "source_line",
                    "text",
                    "the user's innermost Python function that ran or launched the event, "
                    "such as `training.py(51): step`",
                ),
                Column("file", "text", "path of the function's file, relative to the file's folder in `sys.path`"),
                Column("line", "int64", "first line of the function; for a generator, the line at which it resumed"),
                Column("function", "text", "its name"),
                Column(
                    "callee",
                    "text",
                    "operator or function that `function` called directly; null if the event is the function itself",
                ),
                Column(
                    "is_backward",
                    "bool",
                    "whether the event is in the backward pass; if so, source_line is the line of the forward operator",
                ),
                Column("frame_index", "uint32", "event_index of the call to the function"),
            ),
            source_line_rows,
        ),
        SqlView(
            "collectives",
            "a communication operation, such as a collective or a send: its kernel or, if there is none, "
            "its range on the host",
            (
                _EVENT,
                *_RANGE,
                Column(
                    "asked_ns",
                    "int64",
                    "start of the launch on the host; null if the launch was before the recording",
                    _EPOCH,
                ),
                Column("name", "text", "name of the kernel or annotation"),
                Column("collective", "text", "as PyTorch names it: all_reduce, all_gather, …, send, recv, or unknown"),
                Column("recorded_collective", "text", "as written in the file: allreduce, _allgather_base, …, or null"),
                Column("is_point_to_point", "bool", "whether the operation is a send or a receive"),
                Column("dtype", "text", "element type"),
                Column("bytes", "int64", "size of this rank's input; null if unknown", "bytes"),
                Column(
                    "process_group",
                    "text",
                    "text that identifies the group and is the same on all of its ranks; null if unknown",
                ),
                Column("sequence", "int64", "number of the operation within the group; null if not recorded"),
                Column(
                    "communication_id",
                    "uint64",
                    "number that is the same on all ranks of one operation; null if not recorded",
                ),
                _STEP,
            ),
            collective_rows,
        ),
        SqlView(
            "matched_collectives",
            "a rank's call of a collective, matched across ranks, with lateness, waiting time and bandwidth",
            (
                _EVENT,
                *_RANGE,
                Column("instance", "int64", "number of the collective, the same on all its ranks; null if not matched"),
                Column("matched_by", "text", "sequence, communication_id, signature, time, stream_order, send_receive"),
                Column("collective", "text", "as PyTorch names it: all_reduce, all_gather, …, send, recv, or unknown"),
                Column("dtype", "text", "element type"),
                Column("process_group", "text", "description and ranks of the group; null if unknown"),
                Column("group_size", "int64", "number of ranks in the group; 2 for a send or receive"),
                Column(
                    "message_bytes",
                    "int64",
                    "size of the whole array that the collective handles, as in nccl-tests; null if unknown",
                    "bytes",
                ),
                Column("bus_bytes", "int64", "bytes that cross the rank's link; null if unknown", "bytes"),
                Column(
                    "aligned_start_ns", "int64", "start on the clock of the reference host; null if unknown", _EPOCH
                ),
                Column("half_width_ns", "int64", "largest possible error of aligned_start_ns", "ns"),
                Column(
                    "lateness_ns",
                    "int64",
                    "how much later this rank arrived than the first rank; null if the clocks are not exact enough",
                    "ns",
                ),
                Column(
                    "wait_ns",
                    "int64",
                    "time from the arrival of this rank to the arrival of the last rank; "
                    "null if no other rank recorded the collective",
                    "ns",
                ),
                Column("is_last", "bool", "whether the other ranks waited only for this rank"),
                Column("transfer_ns", "int64", "time from the arrival of the last rank to the end of the call", "ns"),
                Column(
                    "transfer_basis",
                    "text",
                    "what transfer_ns is based on: one clock, aligned clocks, "
                    "or the shortest duration (an upper bound)",
                ),
                Column("algorithm_bytes_per_s", "float64", "message_bytes divided by transfer_ns", "bytes/s"),
                Column("bus_bytes_per_s", "float64", "bus_bytes divided by transfer_ns", "bytes/s"),
                _STEP,
            ),
            of_job=matched_collective_rows,
        ),
        SqlView(
            "doubts",
            "a reason to doubt the recording of a rank; "
            "for example, the profiler lost or added events, or timed them wrongly",
            (
                Column("rule", "text", "name of the rule; docs/reference/analyses/trust.md explains it"),
                Column("device", "int32", "device ordinal; null if the doubt is about the host or about all devices"),
                Column("stream", "int64", "stream or queue; null if the doubt is about the host or about all streams"),
                Column("start_ns", "int64", "start of the doubtful period; null if unknown", _EPOCH),
                Column("end_ns", "int64", "end of the doubtful period; null if unknown", _EPOCH),
                Column(
                    "doubtful_ns",
                    "int64",
                    "total length of the periods in which the recording breaks the rule; null if unknown",
                    "ns",
                ),
                Column("case_count", "int64", "number of events or periods that break the rule"),
                Column("event_index", "uint32", "the event to look at first; null if there is none"),
                Column("sentence", "text", "what was found, and what it means"),
            ),
            of_job=doubt_rows,
        ),
        SqlView(
            "memory",
            "an allocation or a release of memory; needs `profile_memory=True`",
            (
                _EVENT,
                Column("time_ns", "int64", "time of the event", _EPOCH),
                Column("device_type", "text", "cpu, cuda (also for HIP), xpu, …"),
                Column("device", "int32", "device ordinal; -1 for the CPU"),
                Column("change_bytes", "int64", "bytes allocated; negative for a release", "bytes"),
                Column("address", "uint64", "address of the block; null if not recorded"),
                Column("allocated_bytes", "int64", "bytes in use after the event", "bytes"),
                Column("reserved_bytes", "int64", "bytes reserved after the event; null if not recorded", "bytes"),
                _THREAD,
                Column("operator_index", "uint32", "event_index of the innermost operator around the event"),
                Column("operator", "text", "its name"),
            ),
            memory_rows,
        ),
        SqlView(
            "steps",
            "a training step that the host marked with the annotation `ProfilerStep#N`",
            (
                Column("step", "int64", "the N"),
                *_RANGE,
                Column(
                    "with_work_start_ns",
                    "int64",
                    "start of the step including its device work, as in `step-time`; "
                    "null if the recording probably ended during the step",
                    _EPOCH,
                ),
                Column("with_work_end_ns", "int64", "end of the step including its device work", _EPOCH),
            ),
            step_rows,
        ),
        SqlView(
            "inference_steps",
            "an inference step, either marked by a range that vLLM, SGLang, … recorded or inferred from forward passes",
            (
                Column(
                    "event_index",
                    "uint32",
                    "event_index of the step's range or module call; null if only an operator marks the step's start",
                ),
                *_RANGE,
                Column("inference_step", "int64", "number of the step on the rank, from 0"),
                Column("kind", "text", "prefill, decode, mixed or denoising; null if unknown"),
                Column(
                    "engine",
                    "text",
                    "inference engine: vllm, sglang, …; annotation for a general step name, such as decode_step; "
                    "pattern if the name matches a pattern of the user; null if unknown",
                ),
                Column(
                    "found_by",
                    "text",
                    "annotation, python function, module, compiled graph, token embedding, or profiler step",
                ),
                Column("step_name", "text", "name of the range that marks the step; null if there is none"),
                Column("is_draft", "bool", "whether the step runs the draft model of speculative decoding"),
                Column("request_count", "int64", "requests in the step; null if unknown"),
                Column("token_count", "int64", "new tokens of all requests; null if unknown"),
                Column("prefill_token_count", "int64", "new tokens of prompts; null if unknown"),
                Column("decode_token_count", "int64", "new tokens in decoding; null if unknown"),
                Column(
                    "padded_token_count",
                    "int64",
                    "tokens that the step computes, including padding; null if unknown or equal to token_count",
                ),
            ),
            inference_step_rows,
        ),
        SqlView(
            "annotations",
            "a user annotation on a host thread or a stream; if none were recorded on streams, "
            "host annotations are projected onto the streams",
            (
                _EVENT,
                *_RANGE,
                Column("name", "text", "as written in the program"),
                Column(
                    "self_ns",
                    "int64",
                    "duration minus the time that shorter annotations cover on the same thread or stream",
                    "ns",
                ),
                Column("is_on_device", "bool", "whether the annotation is on a stream of a device"),
                Column("device", "int32", "device ordinal; null on the host"),
                Column("stream", "int64", "stream or queue; null on the host"),
                Column("thread", "text", "host thread; null on devices"),
            ),
            annotation_rows,
        ),
        SqlView(
            "counters",
            "a recorded value of a counter",
            (
                _EVENT,
                Column("time_ns", "int64", "time of the event", _EPOCH),
                Column("name", "text", "the counter"),
                Column("key", "text", "name of the arg that holds the value; may be empty"),
                Column("value", "float64", "the value"),
            ),
            select="SELECT rank, event_index, start_ns AS time_ns, name, key, value FROM stored.counters",
            needs=("counters",),
        ),
    )
}
"""The views by name."""
