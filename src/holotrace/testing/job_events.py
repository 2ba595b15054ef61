"""Write the trace file of one rank of a simulated job, as Kineto would write it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

from holotrace.testing.job_plan import JobOptions, PlannedCall, PlannedWork, RankPlan, Span, Thread
from holotrace.testing.kineto_json import Event, document, microseconds
from holotrace.testing.training_step import COMPUTE_STREAM, HOST_GROUP, WORLD_GROUP, Collective, shape_args

BASE_NS = 1_790_857_026_000_000_000
"""Value of `baseTimeNanoseconds`: as in Kineto, the wall time rounded down to a multiple of 7,889,238 s."""

_SM_COUNT = 132
_CALLBACK_IDS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
}
_GROUP_DESCRIPTIONS = {WORLD_GROUP: "default_pg", HOST_GROUP: "mesh_host"}
_MOST_RANKS_WRITTEN = 30
_FIRST_DEVICE_SORT_INDEX = 5_000_000

Track = tuple[int, int]


class RankFile:
    """The file of one rank."""

    def __init__(self, options: JobOptions, plan: RankPlan) -> None:
        self._options = options
        self._plan = plan
        self._device = options.device_of(plan.rank)
        self._process_id = 4_001 + 73 * self._device
        self._external_ids = itertools.count(1)
        self._correlations = itertools.count(501)

    @property
    def host(self) -> str:
        """Name of the rank's host."""
        return f"node-{self._options.host_of(self._plan.rank):02}"

    @property
    def name(self) -> str:
        """Name of the file: host, process id and time, as in the files of torch's `tensorboard_trace_handler`."""
        return f"{self.host}_{self._process_id}.{self._shows(self._end_ns)}.pt.trace.json.gz"

    def content(self) -> bytes:
        """Return the file's JSON text."""
        return document(self._header(), self._events(), {"traceName": f"/tmp/tmp{self._plan.rank:06}.json"})  # noqa: S108

    @property
    def _end_ns(self) -> int:
        return self._plan.steps[-1].end_ns

    def _shows(self, true_ns: int) -> int:
        return self._plan.clock.shows(true_ns)

    def _header(self) -> Event:
        dice = random.Random(f"{self._options.seed} trace id {self._plan.rank}")  # noqa: S311 -- not a secret
        return {
            "schemaVersion": 1,
            "deviceProperties": [_h100(device) for device in self._options.group_of(HOST_GROUP, 0)],
            "trace_id": f"{dice.getrandbits(128):032X}",
            "record_shapes": 1,
            "cupti_version": 130001,
            "cuda_runtime_version": 13000,
            "cuda_driver_version": 13000,
            "distributedInfo": self._distributed_info(),
            "host_name": self.host,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }

    def _distributed_info(self) -> dict[str, Any]:
        return {
            "backend": "nccl",
            "rank": self._plan.rank,
            "world_size": self._options.ranks,
            "pg_count": len(_GROUP_DESCRIPTIONS),
            "pg_config": [self._group_config(group) for group in _GROUP_DESCRIPTIONS],
            "nccl_version": "2.28.3",
        }

    def _group_config(self, group: str) -> dict[str, Any]:
        members = self._members(group)
        return {
            "pg_name": group,
            "pg_desc": _GROUP_DESCRIPTIONS[group],
            "backend_config": "cuda:nccl",
            "pg_size": len(members),
            "ranks": list(members),
        }

    def _members(self, group: str) -> range:
        return self._options.group_of(group, self._plan.rank)

    def _events(self) -> Iterator[Event]:
        yield from self._names()
        for span in (*self._plan.steps, *self._plan.annotations):
            yield self._host_row("user_annotation", span.name, span, self._operator_args())
        for call in self._plan.calls:
            yield from self._call_rows(call)
        for span in self._plan.waits:
            yield from self._wait_rows(span)
        yield from self._projected_annotations()
        yield from self._ending()

    def _names(self) -> Iterator[Event]:
        """Write the names of the processes and threads that have rows."""
        device_sort_index = _FIRST_DEVICE_SORT_INDEX + self._device
        yield from self._process_names(self._process_id, "CPU", self._process_id)
        yield from self._process_names(self._device, f"GPU {self._device}", device_sort_index)
        for thread in ("main", "backward"):
            process, number = self._thread(thread)
            name = {"main": "python", "backward": f"pt_autograd_{self._device}"}[thread]
            yield self._name((process, number), "thread_name", {"name": f"thread {number} ({name})"})
        for stream in sorted({planned.work.stream for planned in self._plan.works}):
            yield self._name((self._device, stream), "thread_name", {"name": f"stream {stream} "})

    def _process_names(self, process: int, label: str, sort_index: int) -> Iterator[Event]:
        yield self._name((process, 0), "process_name", {"name": "python"})
        yield self._name((process, 0), "process_labels", {"labels": label})
        yield self._name((process, 0), "process_sort_index", {"sort_index": sort_index})

    def _name(self, track: Track, what: str, args: dict[str, Any]) -> Event:
        place = {"pid": track[0], "tid": track[1]}
        return {"ph": "M", "name": what, "ts": self._time(self._plan.steps[0].start_ns), **place, "args": args}

    def _call_rows(self, call: PlannedCall) -> Iterator[Event]:
        """Write the operators of a call, the device work that they launch, and the runtime calls that launch it."""
        for name, span in zip(call.call.operators, call.spans, strict=True):
            args = self._operator_args()
            category = "user_annotation" if name.startswith("nccl:") else "cpu_op"
            times = self._times(*span)
            yield _row(category, name, self._thread(call.thread), times, {**args, **self._details(name, call)})
        yield from self._autograd_flow(call)
        for planned in call.works:
            yield from self._work_rows(planned, call.thread, args["External id"])
            if planned.work.kind == "communication":
                yield self._projection(name, [planned])

    def _operator_args(self) -> dict[str, Any]:
        number = next(self._external_ids)
        return {"External id": number, "Record function id": 0, "Ev Idx": number - 1}

    def _details(self, operator: str, call: PlannedCall) -> dict[str, Any]:
        """Return the args of an operator of a call; `_operator_args` returns the args that every operator has."""
        if operator == "record_param_comms":
            (planned,) = call.works
            return {**self._collective_args(planned.work.collective, planned.sequence), "Rank": self._plan.rank}
        if operator.startswith("autograd::"):
            return {"Sequence number": _sequence_number(call), "Fwd thread id": 1}
        if call.thread == "main" and call.call.is_autograd:
            return {"Sequence number": _sequence_number(call), "Fwd thread id": 0, **_inputs(call)}
        return _inputs(call)

    def _collective_args(self, collective: Collective, sequence: int) -> dict[str, Any]:
        members = self._members(collective.group)
        return {
            "Collective name": collective.name,
            "In msg nelems": collective.elements,
            "Out msg nelems": collective.elements_out(len(members)),
            "Group size": len(members),
            "dtype": collective.dtype,
            "Process Group Name": collective.group,
            "Process Group Description": _GROUP_DESCRIPTIONS[collective.group],
            "Process Group Ranks": _ranks_text(members),
            "Seq": sequence,
        }

    def _work_rows(self, planned: PlannedWork, thread: Thread, external_id: int) -> Iterator[Event]:
        """Write device work, the call that launched it, and the flow between them."""
        correlation = next(self._correlations)
        ids = {"External id": external_id, "correlation": correlation}
        track = (self._device, planned.work.stream)
        args = {**ids, "device": self._device, "context": 1, "stream": planned.work.stream, **self._work_args(planned)}
        work_times = self._times(planned.start_ns, planned.end_ns)
        yield _row(planned.work.category, planned.work.name, track, work_times, args)
        yield _flow("f", correlation, track, work_times, "ac2g")
        launch = planned.work.launch_name
        launch_times = self._times(planned.launch_start_ns, planned.launch_end_ns)
        launch_args = {**ids, "cbid": _CALLBACK_IDS[launch]}
        yield _row("cuda_runtime", launch, self._thread(thread), launch_times, launch_args)
        yield _flow("s", correlation, self._thread(thread), launch_times, "ac2g")

    def _work_args(self, planned: PlannedWork) -> dict[str, Any]:
        if planned.work.shape is None:
            bandwidth = round(planned.work.byte_count / (planned.end_ns - planned.start_ns), 6)
            return {"bytes": planned.work.byte_count, "memory bandwidth (GB/s)": bandwidth}
        args = {"queued": 0, **shape_args(planned.work.shape, _SM_COUNT)}
        if planned.work.kind == "communication":
            args.update(self._collective_args(planned.work.collective, planned.sequence))
        return args

    def _autograd_flow(self, call: PlannedCall) -> Iterator[Event]:
        """Write one side of an autograd flow: the start for a forward call, or the end for a backward call."""
        if call.call.is_autograd:
            phase = "s" if call.thread == "main" else "f"
            times = self._times(*call.spans[0])
            yield _flow(phase, _sequence_number(call), self._thread(call.thread), times, "fwdbwd")

    def _wait_rows(self, span: Span) -> Iterator[Event]:
        correlation = next(self._correlations)
        yield self._host_row(
            "cuda_runtime", span.name, span, {"cbid": _CALLBACK_IDS[span.name], "correlation": correlation}
        )
        times = self._times(span.start_ns, span.end_ns)
        yield _flow("s", correlation, self._thread("main"), times, "ac2g")

    def _projected_annotations(self) -> Iterator[Event]:
        """Project each annotation onto the compute stream: write a row that spans the work launched inside it."""
        by_step: dict[int, list[PlannedWork]] = {}
        for call in self._plan.calls:
            if call.thread == "main":
                by_step.setdefault(call.step, []).extend(call.works)
        for span in (*self._plan.steps, *self._plan.annotations):
            inside = [
                planned
                for planned in by_step[span.step]
                if span.start_ns <= planned.launch_start_ns < span.end_ns and planned.work.stream == COMPUTE_STREAM
            ]
            if inside:
                yield self._projection(span.name, inside)

    def _projection(self, name: str, works: list[PlannedWork]) -> Event:
        """Write an annotation that, as in Kineto, begins 1 ns before its device work and ends 1 ns after it."""
        first_ns = min(planned.start_ns for planned in works)
        last_ns = max(planned.end_ns for planned in works)
        track = (self._device, works[0].work.stream)
        times = self._times(first_ns - 1, last_ns + 1)
        return _row("gpu_user_annotation", name, track, times, {"device": self._device, "stream": track[1]})

    def _ending(self) -> Iterator[Event]:
        """Write the events that Kineto writes at the end of a recording."""
        begin_ns = self._plan.steps[0].start_ns
        ts = self._time(begin_ns)
        times = self._times(begin_ns, self._end_ns)
        place = {"pid": "Spans", "tid": "PyTorch Profiler"}
        yield {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **place, **times, "args": {"Op count": 0}}
        place = {"pid": "Traces", "tid": "Trace PyTorch Profiler"}
        yield {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", **place, "ts": ts}
        yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": self._time(self._end_ns)}

    def _host_row(self, category: str, name: str, span: Span, args: dict[str, Any]) -> Event:
        return _row(category, name, self._thread("main"), self._times(span.start_ns, span.end_ns), args)

    def _thread(self, thread: Thread) -> Track:
        return self._process_id, self._process_id + (0 if thread == "main" else 61)

    def _times(self, start_ns: int, end_ns: int) -> dict[str, Any]:
        shown_ns = self._shows(start_ns)
        return {"ts": microseconds(shown_ns - BASE_NS), "dur": microseconds(self._shows(end_ns) - shown_ns)}

    def _time(self, true_ns: int) -> Any:  # noqa: ANN401
        return microseconds(self._shows(true_ns) - BASE_NS)


def _row(category: str, name: str, track: Track, times: Event, args: Event) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": track[0], "tid": track[1], **times, "args": args}


def _flow(phase: str, number: int, track: Track, times: Event, category: str) -> Event:
    place = {"ph": phase, "id": number, "pid": track[0], "tid": track[1], "ts": times["ts"]}
    return {**place, "cat": category, "name": category, **({"bp": "e"} if phase == "f" else {})}


def _sequence_number(call: PlannedCall) -> int:
    """Return a call's autograd sequence number; as in PyTorch, the numbers continue to rise from step to step."""
    return 10_000 * call.step + (call.call.sequence or 0)


def _inputs(call: PlannedCall) -> dict[str, Any]:
    dims = list(call.call.input_dims)
    types = ["c10::BFloat16" if shape else "Scalar" for shape in dims]
    return {"Input type": types, "Input Dims": dims} if dims else {}


def _ranks_text(members: Iterable[int]) -> str:
    """Return the ranks of a group as text; like the profiler, list at most 30 ranks."""
    ranks = list(members)
    shown = ", ".join(map(str, ranks[:_MOST_RANKS_WRITTEN]))
    return f"[{shown}, ...]" if len(ranks) > _MOST_RANKS_WRITTEN else f"[{shown}]"


def _h100(device: int) -> dict[str, Any]:
    return {
        "id": device,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85_017_755_648,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": _SM_COUNT,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
    }
