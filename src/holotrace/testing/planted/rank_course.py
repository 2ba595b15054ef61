"""Record one rank of a simulated job: the rows of its trace, and its operations with other ranks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holotrace.testing.planted.course import Activity, Course
from holotrace.testing.planted.options import PlantedOptions

MAIN, BACKWARD, WORKERS = 0, 1, (2, 3)
"""Threads of a process: the main thread, the thread of the backward pass, and two worker threads of gloo."""

COMPUTE, TENSOR, DATA, RECEIVE_NEXT, RECEIVE_PREVIOUS, SEND_NEXT, SEND_PREVIOUS = 7, 20, 24, 28, 32, 36, 40
"""Streams of a device."""

_OPERATOR_NS = 4_000
_CALL_NS = 3_000
_LAUNCH_LATENCY_NS = 4_500
_STREAM_GAP_NS = 1_100
_WAKE_UP_NS = 6_000
_HAND_OVER_NS = 40_000
_LARGEST_LATENESS_NS = 3_000


_LAUNCH: Activity = ("launch", "", "")


class Row(NamedTuple):
    """An event between two points of the simulation, `start` and `end`; `stream` is -1 on the host."""

    category: str
    name: str
    thread: int
    stream: int
    start: int
    end: int
    args: dict[str, Any]


class Group(NamedTuple):
    """A process group."""

    name: str
    description: str
    ranks: tuple[int, ...]


class PlannedCall(NamedTuple):
    """One rank's call of an operation: when it starts, when all ranks have arrived, and when it ends.

    key      identifies the operation; all its ranks use the same key
    members  the ranks of the operation
    arrived  equal to `start` if the rank waits for no other rank
    """

    key: tuple[object, ...]
    members: tuple[int, ...]
    rank: int
    start: int
    arrived: int
    end: int


@dataclass
class Meetings:
    """For each operation of a job, identified by a key, the point where all ranks have arrived."""

    course: Course
    arrived: dict[tuple[object, ...], int] = field(default_factory=dict)

    def arrive(self, key: tuple[object, ...], start: int) -> int:
        """Record that a rank arrives at operation `key` at point `start`; return the point where all have arrived."""
        point = self.arrived.setdefault(key, -1)
        if point < 0:
            point = self.arrived[key] = self.course.point((start, 0))
        else:
            self.course.also_after(point, start)
        return point


class RankCourse:
    """The events of one rank, added in the order in which its host makes the calls."""

    def __init__(self, rank: int, options: PlantedOptions, meetings: Meetings) -> None:
        self.rank, self.options = rank, options
        self.rows: list[Row] = []
        self.calls: list[PlannedCall] = []
        self.thread = MAIN
        self.host_delay: tuple[int, int] | None = None
        self._meetings, self._course = meetings, meetings.course
        self._dice = random.Random(f"{options.seed} rank {rank}")  # noqa: S311 -- not a secret
        self.host = self._course.point((0, round(self._dice.random() * 20_000)))
        self._streams: dict[int, int] = {}
        self._waits: dict[int, list[int]] = {}
        self._correlations = iter(range(1, 1 << 40))
        self._python_ids = iter(range(1, 1 << 40))
        self._sequences: Counter[object] = Counter()
        self._around: list[tuple[str, str]] = []

    def about(self, duration_ns: float) -> int:
        """Return this duration, varied at random by the job's jitter."""
        return max(1, round(duration_ns * (1 + self._dice.uniform(-1, 1) * self.options.jitter)))

    def delay(self, cause: int, delay_ns: int) -> None:
        """Delay the host because of a planted cause."""
        self.host = self._course.delayed(self.host, cause, delay_ns, self._host_activity())

    @contextmanager
    def within(self, category: str, name: str, **args: object) -> Iterator[None]:
        """Record a host range around the `with` block."""
        self._pass(1_000)
        start, place = self.host, len(self.rows)
        self._around.append((category, name))
        yield
        self._pass(500)
        self._around.pop()
        self.rows.insert(place, Row(category, name, self.thread, -1, start, self.host, args))

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """Record a Python function around the `with` block if stacks are recorded."""
        if not self.options.has_stacks:
            yield
            return
        with self.within("python_function", name, **{"Python id": next(self._python_ids)}):
            yield

    def operator(self, name: str, duration_ns: int = _OPERATOR_NS, delays: Sequence[tuple[int, int]] = ()) -> None:
        """Make the host spend this time, and the planted delays, in an operator."""
        with self.within("cpu_op", name):
            self._pass(self.about(duration_ns))
            for cause, delay_ns in delays:
                self.delay(cause, delay_ns)

    def kernel(  # noqa: PLR0913 -- one option per property of the kernel
        self,
        operator: str,
        name: str,
        duration_ns: int,
        *,
        stream: int = COMPUTE,
        delays: Sequence[tuple[int, int]] = (),
        late: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Launch a kernel from an operator; `delays` lengthen the kernel, and `late` postpones its start."""
        with self.within("cpu_op", operator):
            start, args = self._launched("cudaLaunchKernel", stream, late)
            activity = ("kernel", name, self._module())
            end = self._course.point((start, self.about(duration_ns)), activity=activity)
            for cause, delay_ns in delays:
                end = self._course.delayed(end, cause, delay_ns, activity)
            self._ran(name, stream, start, end, args)

    def wait(self, stream: int, source: int) -> None:
        """Make the next work on `stream` wait for the latest work on the stream `source`."""
        if source not in self._streams:
            return
        self._waits.setdefault(stream, []).append(self._streams[source])
        if self.options.has_waits:
            record, wait = next(self._correlations), next(self._correlations)
            self._call("cudaEventRecord", correlation=record)
            self._call("cudaStreamWaitEvent", correlation=wait)
            args = {
                "cuda_sync_kind": "Stream Wait Event",
                "stream": stream,
                "correlation": wait,
                "device": self.device,
                "context": 1,
                "wait_on_stream": source,
                "wait_on_cuda_event_record_corr_id": record,
            }
            self.rows.append(Row("cuda_sync", "Stream Wait Event", MAIN, stream, self.host, self.host, args))

    def communicate(  # noqa: PLR0913 -- one option per property of the operation
        self,
        collective: str,
        group: Group,
        *,
        stream: int,
        transfer_ns: int,
        elements: int,
        ends: tuple[int, int] | None = None,
    ) -> None:
        """Launch an NCCL kernel; for a send or receive, `ends` are the ranks of the sender and the receiver."""
        key, sequence = self._key(group, ends)
        with self.within("user_annotation", f"nccl:{collective}"):
            start, args = self._launched("cudaLaunchKernelExC", stream)
        arrived = self._meetings.arrive(key, start)
        end = self._course.point((arrived, self._transfer(transfer_ns)))
        self.calls.append(PlannedCall(key, ends or group.ranks, self.rank, start, arrived, end))
        known = {
            **args,
            "Collective name": collective,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": len(group.ranks),
            "dtype": "BFloat16",
            "Process Group Name": group.name,
            "Process Group Description": group.description,
            "Process Group Ranks": _ranks_text(group.ranks),
            **({"Seq": sequence} if ends is None else {"Src Rank": ends[0], "Dst Rank": ends[1]}),
        }
        self._ran(_NCCL_KERNELS[collective], stream, start, end, known)

    def synchronise(self) -> None:
        """Make the host wait for the compute stream."""
        correlation, start = next(self._correlations), self.host
        self._pass(_CALL_NS)
        self.host = self._course.point((self.host, 0), (self._streams.get(COMPUTE, 0), _WAKE_UP_NS))
        args = {"cbid": 131, "correlation": correlation}
        self.rows.append(Row("cuda_runtime", "cudaStreamSynchronize", self.thread, -1, start, self.host, args))

    def all_reduce_on_host(self, group: Group, worker: int, elements: int, transfer_ns: int) -> int:
        """Start an all-reduce that one of gloo's worker threads performs; return its end."""
        key, _ = self._key(group, None)
        dims = {
            "Input type": ["TensorList", "", "", "", "Scalar", "Scalar"],
            "Input Dims": [[[elements]], [], [], [], [], []],
        }
        with self.within("cpu_op", "c10d::allreduce_", **dims):
            self._pass(8_000)
        start = self._course.point((self.host, _HAND_OVER_NS), (self._streams.get(-worker, 0), 5_000))
        arrived = self._meetings.arrive(key, start)
        end = self._streams[-worker] = self._course.point((arrived, self._transfer(transfer_ns)))
        self.calls.append(PlannedCall(key, group.ranks, self.rank, start, arrived, end))
        args = {"Input type": ["float"], "Input Dims": [[elements]]}
        self.rows.append(Row("user_annotation", "gloo:all_reduce", worker, -1, start, end, args))
        return end

    def wait_on_host(self, ends: Sequence[int]) -> None:
        """Make the main thread wait for all points in `ends`."""
        with self.function("torch/distributed/distributed_c10d.py(2964): wait_for"), self.function(_WAIT):
            self.host = self._course.point((self.host, 0), *((end, 8_000) for end in ends))

    def send_on_host(self, peer: int, tag: int, elements: int, transfer_ns: int) -> None:
        """Send with gloo, which does not wait for the receiver."""
        start, end = self._point_to_point("send", "c10d::send", peer, tag, elements)
        key = self._pair_key(self.rank, peer, tag)
        self._meetings.arrive(key, start)
        self._course.also_after(end, start, self._transfer(transfer_ns))
        self.calls.append(PlannedCall(key, (self.rank, peer), self.rank, start, start, end))

    def receive_on_host(self, peer: int, tag: int, elements: int, transfer_ns: int) -> None:
        """Receive with gloo; the main thread waits until the data has arrived."""
        start, end = self._point_to_point("recv", "c10d::recv_", peer, tag, elements)
        key = self._pair_key(peer, self.rank, tag)
        arrived = self._meetings.arrive(key, start)
        self._course.also_after(end, arrived, self._transfer(transfer_ns))
        self.calls.append(PlannedCall(key, (peer, self.rank), self.rank, start, arrived, end))
        self.wait_on_host([end])

    @property
    def device(self) -> int:
        """The ordinal of the rank's device."""
        return self.rank % self.options.ranks_per_host

    def _point_to_point(self, family: str, operator: str, peer: int, tag: int, elements: int) -> tuple[int, int]:
        args = {
            "Concrete Inputs": ["", "", str(peer), str(tag)],
            "Input type": ["TensorList", "", "Scalar", "Scalar"],
            "Input Dims": [[[elements]], [], [], []],
        }
        with self.within("cpu_op", operator, **args):
            self._pass(10_000)
            start = self.host
            self._pass(10_000)
        end = self._course.point((self.host, 1_000))
        described = {"Concrete Inputs": [""], "Input type": ["float"], "Input Dims": [[elements]]}
        self.rows.append(Row("user_annotation", f"gloo:{family}", self.thread, -1, start, end, described))
        return start, end

    def _key(self, group: Group, ends: tuple[int, int] | None) -> tuple[tuple[object, ...], int]:
        counted = (group.ranks, ends)
        self._sequences[counted] += 1
        return (*counted, self._sequences[counted]), self._sequences[counted]

    def _pair_key(self, source: int, destination: int, tag: int) -> tuple[object, ...]:
        counted = (source, destination, tag)
        self._sequences[counted] += 1
        return (*counted, self._sequences[counted])

    def _transfer(self, transfer_ns: int) -> int:
        """Return how long a transfer takes on this rank; the duration differs slightly between ranks."""
        return transfer_ns + self._dice.randrange(_LARGEST_LATENESS_NS)

    def _pass(self, duration_ns: int) -> None:
        self.host = self._course.point((self.host, duration_ns), activity=self._host_activity())

    def _host_activity(self) -> Activity:
        return *(self._around[-1] if self._around else ("host", "")), self._module()

    def _module(self) -> str:
        """Return the innermost module that the host is running; empty if there is none."""
        return next((name for _, name in reversed(self._around) if name.startswith("nn.Module: ")), "")

    def _call(self, name: str, *, correlation: int) -> int:
        """Add a runtime call; return its start."""
        self._pass(500)
        if self.host_delay is not None and name == "cudaLaunchKernel":
            self.delay(*self.host_delay)
        start = self.host
        self._pass(_CALL_NS)
        args = {"cbid": 211, "correlation": correlation}
        self.rows.append(Row("cuda_runtime", name, self.thread, -1, start, self.host, args))
        return start

    def _launched(self, call: str, stream: int, late: Sequence[tuple[int, int]] = ()) -> tuple[int, dict[str, object]]:
        """Add a call that launches work; return the point where the work starts, and the args of the work."""
        correlation = next(self._correlations)
        ready = self._course.point((self._call(call, correlation=correlation), _LAUNCH_LATENCY_NS), activity=_LAUNCH)
        for cause, delay_ns in late:
            ready = self._course.delayed(ready, cause, delay_ns, _LAUNCH)
        earlier = (*self._waits.pop(stream, ()), *([self._streams[stream]] if stream in self._streams else ()))
        start = self._course.point((ready, 0), *((point, _STREAM_GAP_NS) for point in earlier))
        return start, {"correlation": correlation, "device": self.device, "context": 1, "stream": stream}

    def _ran(self, name: str, stream: int, start: int, end: int, args: dict[str, Any]) -> None:
        self._streams[stream] = end
        self.rows.append(Row("kernel", name, MAIN, stream, start, end, args))


_WAIT = "<built-in method wait of PyCapsule object at 0x7fcba68869f0>"
_NCCL_KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "send": "ncclDevKernel_SendRecv",
    "recv": "ncclDevKernel_SendRecv",
}
_MOST_RANKS_WRITTEN = 30


def _ranks_text(ranks: Sequence[int]) -> str:
    """Return the ranks of a group as text; like the profiler, list at most 30 ranks."""
    shown = ", ".join(map(str, ranks[:_MOST_RANKS_WRITTEN]))
    return f"[{shown}, ...]" if len(ranks) > _MOST_RANKS_WRITTEN else f"[{shown}]"
