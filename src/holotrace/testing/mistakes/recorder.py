"""Record what one rank of a simulated job does: host ranges, launches, and work on streams."""

from __future__ import annotations

import itertools
import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from holotrace.testing.kineto_json import Event, microseconds
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.planted.rank_course import Meetings

MAIN, BACKWARD, _PROFILER, _GLOO = 0, 1, 2, 3
"""Threads: for training, autograd, the profiler, and communication on the host."""

COMPUTE, COPY, SIDE, TENSOR, DATA, EXPERTS, _HOST_DATA = 7, 13, 17, 20, 24, 28, 32
"""Streams: two for computation, one for copies, one per process group, and one for copies around host collectives."""

_NEXT_DEVICE = 100
"""Difference between the stream numbers of a rank's second and first device."""

_LAUNCH_NS = 4_500
_LATENCY_NS = 2_000
_STREAM_GAP_NS = 900
_WAKE_UP_NS = 7_000
_CPU_FACTOR = 30
"""For small operators, a CPU takes about this many times as long as a GPU."""
_QUEUE_LENGTH = 1_000
"""If this many launches are queued, the host waits: https://docs.nvidia.com/cuda/cuda-c-programming-guide"""

_EVERY = 25
"""With the mistake `late_starts`, every 25th kernel or copy starts late, as if another process used the device."""

_HAND_OVER_NS = 15_000
"""Time that a host thread needs to hand over work to another host thread."""

_PROFILED_RANGE_NS, _PROFILED_FUNCTION_NS = 2_500, 1_300
"""Times that the recording of Python functions adds: to each operator or runtime call, and to each function."""

_MOST_LATE_NS = 2_000
"""Largest difference between the end times of a collective on different ranks."""

_CALLS = {"cudaLaunchKernel": 211, "cuLaunchKernelEx": 652, "cudaLaunchKernelExC": 430, "cudaMemcpyAsync": 41}


class Row(NamedTuple):
    """An event from the point `start` to the point `end` of the `Course`; `stream` is None for events on the host."""

    category: str
    name: str
    thread: int
    stream: int | None
    start: int
    end: int
    args: dict[str, Any]


class Work(NamedTuple):
    """Work on a stream."""

    category: str
    name: str
    stream: int
    args: dict[str, Any]


class Kernel(NamedTuple):
    """A kernel to launch."""

    name: str
    duration_ns: float
    grid: int = 1024
    block: int = 128
    registers: int = 32
    shared_memory: int = 0
    call: str = "cudaLaunchKernel"


class Recorder:
    """Records the events of one rank, in the order in which its host makes the calls."""

    def __init__(self, rank: int, options: JobOptions, meetings: Meetings) -> None:
        self.rank, self.options, self.gpu = rank, options, options.gpu
        self.rows: list[Row] = []
        self.instants: list[tuple[int, int, dict[str, Any]]] = []
        self.arrows: list[tuple[int, int, int, int, int]] = []
        self.step_ends: list[int] = []
        self.thread = MAIN
        self.load = 1.0
        self.replica = 0
        self.dice = random.Random(f"{options.seed} rank {rank}")
        self._course, self._meetings = meetings.course, meetings
        self.host = self._course.point((0, self.dice.randrange(20_000)))
        backlog_ns = round(self.amount("host_falls_behind") * options.steps)
        self._last = {COMPUTE: self._course.point((0, backlog_ns))} if backlog_ns else {}
        self._waits: dict[int, list[int]] = {}
        self._gloo = self.host
        self._loaded: set[str] = set()
        self._queued: deque[int] = deque()
        self._run_count = 0
        self._correlations, self._external, self._python = (itertools.count(first) for first in (3_000, 1, 1))
        self._around: list[int] = [0]
        self._functions: list[int] = []
        self._sequences: Counter[tuple[int, ...]] = Counter()
        self._reserved = self._allocated = options.memory_before

    def amount(self, mistake: str) -> float:
        """Return how large a mistake is on this rank; 0 if the rank does not make the mistake."""
        return self.options.mistakes.get(mistake, 0) if self.options.mistake_rank in (None, self.rank) else 0

    def about(self, duration_ns: float) -> int:
        """Return this duration, slightly varied."""
        return max(1, round(duration_ns * (1 + self.dice.uniform(-1, 1) * self.options.jitter)))

    def spend(self, duration_ns: float) -> None:
        """Make the host run code that takes this time on a processor of normal speed."""
        self.pause(duration_ns * self.options.host_factor)

    def pause(self, duration_ns: float) -> None:
        """Make the host spend exactly this time, apart from the jitter, however slow the processor is."""
        self.host = self._course.point((self.host, self.about(duration_ns)))

    def _profiled(self, duration_ns: float) -> None:
        """Delay the host by this time if the profiler records Python functions."""
        if self.options.stacks:
            self.pause(duration_ns)

    @contextmanager
    def on_replica(self, number: int) -> Iterator[None]:
        """Launch the kernels of the `with` block on the device that runs this replica of the model."""
        before, self.replica = self.replica, number
        yield
        self.replica = before

    @contextmanager
    def range(self, category: str, name: str, **args: object) -> Iterator[None]:
        """Record a host range around the `with` block."""
        self.spend(500)
        self._profiled(_PROFILED_RANGE_NS)
        start, place = self.host, len(self.rows)
        self._around.append(next(self._external))
        known = {"External id": self._around[-1], "Record function id": 0, **args}
        yield
        self.spend(300)
        self._around.pop()
        self.rows.insert(place, Row(category, name, self.thread, None, start, self.host, known))

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """Record the `with` block as a call of a Python function or module.

        Without the option `stacks`, record nothing; the call still takes host time.
        """
        self.spend(1_200 + self.amount("python_overhead"))
        self._profiled(_PROFILED_FUNCTION_NS)
        if not self.options.stacks:
            yield
            return
        start, place, number = self.host, len(self.rows), next(self._python)
        parent = self._functions[-1] if self._functions else None
        module = {"Python module id": number % 7} if name.startswith("nn.Module") else {}
        self._functions.append(number)
        yield
        self.spend(800)
        self._functions.pop()
        args = {"Python parent id": parent, "Python id": number, **module}
        self.rows.insert(place, Row("python_function", name, self.thread, None, start, self.host, args))

    def launch(self, kernel: Kernel, stream: int = COMPUTE) -> None:
        """Launch a kernel; in jobs without a GPU, make the host compute instead."""
        if self.options.on_cpu:
            self.pause(_CPU_FACTOR * kernel.duration_ns)
            return
        work = Work("kernel", kernel.name, stream + _NEXT_DEVICE * self.replica, self._kernel_args(kernel, {}))
        self._work(work, kernel.call, kernel.duration_ns * self.load)

    def copy(self, kind: str, size: int, *, stream: int = COMPUTE) -> None:
        """Copy memory asynchronously; a copy of pageable memory blocks the host. Without a GPU, nothing is copied."""
        if self.options.on_cpu:
            return
        pageable = "Pageable" in kind
        duration_ns = self.gpu.copy_ns(size, pageable=pageable)
        args = {"bytes": size, "memory bandwidth (GB/s)": size / duration_ns}
        place = len(self.rows)
        end = self._work(Work("gpu_memcpy", f"Memcpy {kind}", stream, args), "cudaMemcpyAsync", duration_ns)
        if pageable:
            self.host = self._course.point((self.host, 0), (end, _WAKE_UP_NS))
            self.rows[place] = self.rows[place]._replace(end=self.host)

    def replay(self, kernels: Sequence[Kernel]) -> None:
        """Launch a CUDA graph whose kernels run one after another."""
        correlation, start, ready = self._call(40_000)
        external = self._around[-1]
        for kernel in kernels:
            args = {"External id": external, "correlation": correlation, "graph node id": len(self.rows)}
            work = Work("kernel", kernel.name, COMPUTE, self._kernel_args(kernel, args))
            self._run(work, ready, kernel.duration_ns)
        self._called("cudaGraphLaunch", start, correlation)

    def profile(self, duration_ns: float) -> None:
        """Record that the profiler requests another buffer, which delays the host."""
        start = self.host
        self.pause(duration_ns)
        self.rows.append(Row("overhead", "Activity Buffer Request", _PROFILER, None, start, self.host, {}))

    def runtime(self, name: str, duration_ns: float) -> None:
        """Make a runtime call that launches nothing."""
        correlation, start, _ = self._call(duration_ns)
        self._called(name, start, correlation)

    def synchronise(self, call: str, streams: Sequence[int] = (COMPUTE,)) -> None:
        """Make the host wait for these streams, if there is a GPU."""
        if self.options.on_cpu:
            return
        correlation, start, _ = self._call(2_500)
        ends = [(self._last[stream], _WAKE_UP_NS) for stream in streams if stream in self._last]
        self.host = self._course.point((self.host, 0), *ends)
        self._called(call, start, correlation)

    def wait(self, stream: int, source: int) -> None:
        """Make the next work on `stream` wait for the latest work on the stream `source`."""
        if source not in self._last:
            return
        self._waits.setdefault(stream, []).append(self._last[source])
        record, start, _ = self._call(2_000)
        self._called("cudaEventRecord", start, record)
        correlation, start, _ = self._call(2_000)
        self._called("cudaStreamWaitEvent", start, correlation)
        if self.options.sync_events:
            known = {
                "cuda_sync_kind": "Stream Wait Event",
                "stream": stream,
                "correlation": correlation,
                "device": self.rank,
                "context": 1,
                "wait_on_stream": source,
                "wait_on_cuda_event_record_corr_id": record,
            }
            self.rows.append(Row("cuda_sync", "Stream Wait Event", MAIN, stream, self.host, self.host, known))

    def communicate(
        self,
        collective: str,
        group: tuple[str, tuple[int, ...]],
        elements: int,
        duration_ns: float,
        stream: int,
        **args: object,
    ) -> None:
        """Launch a collective that waits for all computation launched so far, and for the other ranks of the group."""
        name, members = group
        self._sequences[members] += 1
        number = self._sequences[members]
        self.wait(stream, COMPUTE)
        described = {
            "Collective name": collective,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": len(members),
            "dtype": "BFloat16",
            "Process Group Name": str(members[0]),
            "Process Group Description": name,
            "Process Group Ranks": f"[{', '.join(map(str, members))}]",
            "Seq": number,
            **args,
        }
        with self.range("cpu_op", _OPERATORS[collective]), self.range("cpu_op", "record_param_comms", **described):
            self.spend(12_000)
            correlation, call_start, ready = self._call(_LAUNCH_NS)
            self._called("cudaLaunchKernelExC", call_start, correlation)
        start = self._started(stream, ready)
        arrived = self._meetings.arrive((members, number), start)
        end = self._course.point((arrived, round(duration_ns) + self.dice.randrange(_MOST_LATE_NS)))
        known = {"correlation": correlation, "External id": self._around[-1], **described}
        kernel = Kernel(_NCCL[collective], 0, grid=24, block=512, registers=96, shared_memory=82_976)
        self._ran(Work("kernel", kernel.name, stream, self._kernel_args(kernel, known)), start, end)

    def communicate_on_host(self, group: tuple[str, tuple[int, ...]], size: int, duration_ns: float) -> None:
        """Make a host thread copy gradients from the device, reduce them with the other ranks, and copy them back."""
        members = group[1]
        self._sequences[members] += 1
        with self.range("cpu_op", _OPERATORS["allreduce"]):
            self.wait(_HOST_DATA, COMPUTE)
            self.copy("DtoH (Device -> Pinned)", size, stream=_HOST_DATA)
        caller, thread = self.host, self.thread
        self.host, self.thread = self._course.point((caller, _HAND_OVER_NS), (self._gloo, 0)), _GLOO
        with self.range("user_annotation", "gloo:all_reduce"):
            self.synchronise("cudaStreamSynchronize", (_HOST_DATA,))
            arrived = self._meetings.arrive((members, self._sequences[members]), self.host)
            self.host = self._course.point((arrived, round(duration_ns) + self.dice.randrange(_MOST_LATE_NS)))
            self.copy("HtoD (Pinned -> Device)", size, stream=_HOST_DATA)
        self._gloo, self.host, self.thread = self.host, caller, thread

    def wait_for_host_collectives(self) -> None:
        """Make the host wait for its own collectives, and the compute stream wait for the copies of their results."""
        self.host = self._course.point((self.host, 0), (self._gloo, _HAND_OVER_NS))
        self.wait(COMPUTE, _HOST_DATA)

    def allocate(self, size: int) -> None:
        """Record an allocation by the caching allocator or, if the size is negative, a release."""
        self._allocated += size
        self._reserved = max(self._reserved, self._allocated + self.options.unused_reserved)
        if self.options.memory:
            known = {
                "Total Reserved": self._reserved,
                "Total Allocated": self._allocated,
                "Bytes": size,
                "Device Id": self.rank,
                "Device Type": 1,
                "Addr": 140_490_997_497_856 + abs(size),
            }
            self.instants.append((self.host, self.thread, known))

    def arrow(self, start: int, start_thread: int) -> None:
        """Record the flow from a forward operator to the backward operator that begins now."""
        self.arrows.append((len(self.arrows) + 1, start, start_thread, self.host, self.thread))

    def end_step(self) -> None:
        """End the step when the device has finished all work launched so far."""
        self._run_count = 0
        self.step_ends.append(self._course.point((self.host, 0), *((end, 0) for end in self._last.values())))

    def _work(self, work: Work, call: str, duration_ns: float) -> int:
        correlation, start, ready = self._call(_LAUNCH_NS, self._loading_ns(work))
        kind = "cuda_driver" if call.startswith("cu") and not call.startswith("cuda") else "cuda_runtime"
        self._called(call, start, correlation, kind)
        ids = {"External id": self._around[-1], "correlation": correlation}
        return self._run(work._replace(args={**ids, **work.args}), ready, duration_ns)

    def _called(self, name: str, start: int, correlation: int, category: str = "cuda_runtime") -> None:
        """Record a call that started at `start` and returns now."""
        args = {"External id": self._around[-1], "cbid": _CALLS.get(name, 131), "correlation": correlation}
        self.rows.append(Row(category, name, self.thread, None, start, self.host, args))

    def _loading_ns(self, work: Work) -> float:
        """Return how long the driver takes to load a kernel before its first run; 0 if the kernel has run before."""
        if work.category != "kernel" or work.name in self._loaded:
            return 0.0
        self._loaded.add(work.name)
        return self.amount("first_calls")

    def _call(self, duration_ns: float, loading_ns: float = 0.0) -> tuple[int, int, int]:
        """Make a call; return its correlation ID, its start, and the earliest start of the work that it launches."""
        self.spend(400)
        start = self.host
        self._profiled(_PROFILED_RANGE_NS)
        self.spend(duration_ns)
        if loading_ns:
            self.pause(loading_ns)
        if len(self._queued) >= _QUEUE_LENGTH:
            self.host = self._course.point((self.host, 0), (self._queued.popleft(), 0))
        return next(self._correlations), start, self._course.point((self.host, _LATENCY_NS))

    def _run(self, work: Work, ready: int, duration_ns: float) -> int:
        start = self._started(work.stream, ready)
        late_ns = self.amount("late_starts")
        self._run_count += 1
        if late_ns and work.stream == COMPUTE and self._run_count % _EVERY == 0:
            start = self._course.point((start, self.about(late_ns)))
        self._queued.append(start)
        end = self._course.point((start, self.about(duration_ns)))
        self._ran(work, start, end)
        return end

    def _started(self, stream: int, ready: int) -> int:
        earlier = (*self._waits.pop(stream, ()), *([self._last[stream]] if stream in self._last else ()))
        return self._course.point((ready, 0), *((point, _STREAM_GAP_NS) for point in earlier))

    def _ran(self, work: Work, start: int, end: int) -> None:
        self._last[work.stream] = end
        device, stream = divmod(work.stream, _NEXT_DEVICE)
        known = {"queued": 0, "device": self.rank + device, "context": 1, "stream": stream, **work.args}
        self.rows.append(Row(work.category, work.name, MAIN, work.stream, start, end, known))

    def _kernel_args(self, kernel: Kernel, args: dict[str, Any]) -> dict[str, Any]:
        per_sm = kernel.grid / self.gpu.sm_count
        return {
            **args,
            "registers per thread": kernel.registers,
            "shared memory": kernel.shared_memory,
            "blocks per SM": round(per_sm, 6),
            "warps per SM": round(per_sm * kernel.block / 32, 6),
            "grid": [kernel.grid, 1, 1],
            "block": [kernel.block, 1, 1],
            "est. achieved occupancy %": min(100, round(per_sm * kernel.block / 20.48)),
        }


_OPERATORS = {
    "allreduce": "c10d::allreduce_",
    "all_to_allv": "c10d::alltoall_base_",
    "_allgather_base": "c10d::_allgather_base_",
    "_reduce_scatter_base": "c10d::_reduce_scatter_base_",
}
_NCCL = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_to_allv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}


def events(recorder: Recorder, times_ns: Sequence[int]) -> Iterator[Event]:
    """Yield the events of a rank as the profiler writes them; `times_ns` has the time of each point of the `Course`."""
    process = 4_000 + 73 * recorder.rank
    for row in recorder.rows:
        device, stream = divmod(row.stream or 0, _NEXT_DEVICE)
        track = (process, process + 29 * row.thread) if row.stream is None else (recorder.rank + device, stream)
        start, end = times_ns[row.start], times_ns[row.end]
        yield {
            "ph": "X",
            "cat": row.category,
            "name": row.name,
            "pid": track[0],
            "tid": track[1],
            "ts": microseconds(start),
            "dur": microseconds(end - start),
            "args": row.args,
        }
    for number, start, thread, end, end_thread in recorder.arrows:
        for phase, point, of in (("s", start, thread), ("f", end, end_thread)):
            yield {
                "ph": phase,
                "id": number,
                "pid": process,
                "tid": process + 29 * of,
                "ts": microseconds(times_ns[point]),
                "cat": "fwdbwd",
                "name": "fwdbwd",
                **({"bp": "e"} if phase == "f" else {}),
            }
    for point, thread, args in recorder.instants:
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": process,
            "tid": process + 29 * thread,
            "ts": microseconds(times_ns[point]),
            "args": args,
        }
