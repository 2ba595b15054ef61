"""Build a trace in a few lines of a test, so that the test itself shows everything that it depends on."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace
from holotrace.testing.kineto_json import document

Time: TypeAlias = int | float | Decimal
"""Microseconds with at most three decimals; a float means exactly the decimal number that `print` shows for it."""

Args: TypeAlias = Mapping[str, Any]
"""Args of one event: they add to or replace the args that the builder sets; the value None removes an arg."""

FIRST_AUTOMATIC_CORRELATION = 100_001
"""The first correlation number that the builder assigns to rows that have `launch_us` but no `correlation`."""

COLLECTIVE_KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
    "broadcast": "ncclDevKernel_Broadcast_RING_LL",
    "reduce": "ncclDevKernel_Reduce_Sum_f32_RING_LL",
    "all_to_all": "ncclDevKernel_SendRecv",
    "all_to_allv": "ncclDevKernel_SendRecv",
    "send": "ncclDevKernel_SendRecv",
    "recv": "ncclDevKernel_SendRecv",
}
"""The NCCL kernel of each collective."""


@dataclass
class _RankEvents:
    header: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)
    flows: list[dict[str, Any]] = field(default_factory=list)
    sequences: Counter[str] = field(default_factory=Counter)
    next_correlation: int = FIRST_AUTOMATIC_CORRELATION


class TraceBuilder:
    """Builds the traces of a job event by event; every method returns the builder.

    >>> from holotrace.testing import TraceBuilder
    >>> trace = (
    ...     TraceBuilder()
    ...     .operator("aten::mm", start_us=0, duration_us=5)
    ...     .kernel("gemm", start_us=10, duration_us=20, launch_us=2)
    ...     .rank(1)
    ...     .kernel("gemm", start_us=12, duration_us=20)
    ...     .build()
    ... )
    >>> {rank: len(rank_trace.table("events")) for rank, rank_trace in trace.ranks.items()}
    {0: 3, 1: 1}

    Events are written, and numbered by `event_index`, in the order of the calls. The builder itself adds only launches
    (directly before the launched work) and flows (after all other events). The pid of host rows of rank r is 1000 + r;
    the pid of a device row is the number of its device.
    """

    def __init__(self, *, base_time_ns: int = 0) -> None:
        """Start a job whose current rank is 0; the files contain `base_time_ns`, which readers add to every time."""
        self._base_time_ns = base_time_ns
        self._ranks: dict[int, _RankEvents] = {}
        self._rank = 0

    def rank(self, number: int) -> TraceBuilder:
        """Add this rank and make it the current rank: later calls without the option `rank` add their events to it.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=5)
        >>> builder = builder.rank(1).kernel("gemm", start_us=3, duration_us=5)
        >>> list(builder.build().ranks)
        [0, 1]
        """
        self._rank = number
        self._events_of(None)
        return self

    def header(self, **keys: object) -> TraceBuilder:
        """Set top-level keys in the file of the current rank; None removes a key.

        >>> from holotrace.testing import TraceBuilder
        >>> TraceBuilder().header(host_name="node7").build().ranks[0].header.host_name
        'node7'
        """
        self._events_of(None).header.update(keys)
        return self

    def event(self, *, rank: int | None = None, **raw: object) -> TraceBuilder:
        """Add an event with exactly these keys of the file format, such as `ph` and `ts`; times are in microseconds.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().event(ph="i", cat="cpu_instant_event", name="marker", s="t", pid=1000, tid=1, ts=2.5)
        >>> builder.build().ranks[0].table("events")["start_ns"].to_list()
        [2500]
        """
        self._events_of(rank).events.append({key: _exact(value) for key, value in raw.items()})
        return self

    def kernel(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        launch_us: Time | None = None,
        launch_duration_us: Time = 1,
        launch_name: str = "cudaLaunchKernel",
        thread: int = 1,
        rank: int | None = None,
        args: Args | None = None,
        category: str = "kernel",
    ) -> TraceBuilder:
        """Add a kernel and, if `launch_us` is given, the call that launches it at this time and the flow between them.

        Without `launch_us` and `correlation`, the kernel has no correlation and no launch.

        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().kernel("gemm", start_us=10, duration_us=20, launch_us=2)
        >>> builder.build().ranks[0].table("events")["start_ns"].to_list()  # the launch, then the kernel
        [2000, 10000]
        """
        if launch_us is not None:
            correlation = self._free_correlation(rank) if correlation is None else correlation
            self.runtime(
                launch_name,
                start_us=launch_us,
                duration_us=launch_duration_us,
                correlation=correlation,
                thread=thread,
                rank=rank,
            )
            self._flow("s", correlation, (self._process_id(rank), thread), time_us=launch_us, rank=rank)
            self._flow("f", correlation, (device, stream), time_us=start_us, rank=rank)
        known = {"device": device, "context": 1, "stream": stream, "correlation": correlation}
        return self._row(
            category,
            name,
            (device, stream),
            start_us=start_us,
            duration_us=duration_us,
            args={**known, **(args or {})},
            rank=rank,
        )

    def copy(
        self,
        name: str = "Memcpy HtoD (Pinned -> Device)",
        *,
        byte_count: int = 4096,
        launch_name: str = "cudaMemcpyAsync",
        args: Args | None = None,
        **placement: Any,  # noqa: ANN401 -- the options of `kernel`
    ) -> TraceBuilder:
        """Add a copy; `placement` accepts the stream, times and other options of `kernel`.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().copy(start_us=0, duration_us=2, byte_count=48_000).build()
        >>> holotrace.memory_bandwidth(trace).answer
        'Memcpy HtoD moves 46.9 KiB, more than any other kind of copy, at 24 GB/s on average.'
        """
        known = {"bytes": byte_count, **(args or {})}
        return self.kernel(name, launch_name=launch_name, args=known, category="gpu_memcpy", **placement)

    def memset(
        self,
        name: str = "Memset (Device)",
        *,
        byte_count: int = 4096,
        launch_name: str = "cudaMemsetAsync",
        args: Args | None = None,
        **placement: Any,  # noqa: ANN401 -- the options of `kernel`
    ) -> TraceBuilder:
        """Add a memset; `placement` accepts the stream, times and other options of `kernel`.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().memset(start_us=0, duration_us=2, byte_count=48_000).build()
        >>> holotrace.memory_bandwidth(trace).answer
        'Memset moves 46.9 KiB, more than any other kind of copy, at 24 GB/s on average.'
        """
        known = {"bytes": byte_count, **(args or {})}
        return self.kernel(name, launch_name=launch_name, args=known, category="gpu_memset", **placement)

    def collective(  # noqa: PLR0913 -- one option per arg of NCCL kernels
        self,
        collective: str = "allreduce",
        *,
        elements: int = 1024,
        dtype: str = "Float",
        group: str = "0",
        group_ranks: Sequence[int] = (0, 1),
        sequence: int | None = None,
        stream: int = 20,
        rank: int | None = None,
        args: Args | None = None,
        **placement: Any,  # noqa: ANN401 -- the options of `kernel`
    ) -> TraceBuilder:
        """Add an NCCL kernel with its args; `placement` accepts the times and other options of `kernel`.

        By default, `sequence` counts from 1 for each rank and group.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().collective(start_us=0, duration_us=5)
        >>> trace = builder.rank(1).collective(start_us=2, duration_us=3).build()
        >>> holotrace.stragglers(trace).answer
        'The other ranks wait 2 µs for rank 1, which is late.'
        """
        known = {
            "Collective name": collective,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": len(group_ranks),
            "dtype": dtype,
            "Process Group Name": group,
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(group_ranks)),
            "Seq": self._next_sequence(rank, group) if sequence is None else sequence,
        }
        name = COLLECTIVE_KERNELS.get(collective, "ncclDevKernel_Generic")
        return self.kernel(name, stream=stream, rank=rank, args={**known, **(args or {})}, **placement)

    def operator(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        thread: int = 1,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add an operator on the host.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build()
        >>> holotrace.operators(trace).answer
        '100.0 % of the host self time (5 µs) goes into aten::mm, more than into any other operator.'
        """
        return self._row(
            "cpu_op",
            name,
            (self._process_id(rank), thread),
            start_us=start_us,
            duration_us=duration_us,
            args=args or {},
            rank=rank,
        )

    def python(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        thread: int = 1,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add a Python function with a name like `train.py(3): main`, `<built-in function sleep>` or `nn.Module: Linear_0`.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().python("train.py(3): main", start_us=0, duration_us=5).build()
        >>> holotrace.source_lines(trace).answer
        '100.0 % of the host time (5 µs) comes from train.py(3): main, more than from any other line.'
        """
        return self._row(
            "python_function",
            name,
            (self._process_id(rank), thread),
            start_us=start_us,
            duration_us=duration_us,
            args=args or {},
            rank=rank,
        )

    def annotation(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        thread: int = 1,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add a user annotation on the host.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().annotation("forward", start_us=0, duration_us=5).build()
        >>> holotrace.user_annotations(trace).answer
        '5 µs of host time on rank 0 goes into forward, the costliest annotation, in 1 call.'
        """
        track = (self._process_id(rank), thread)
        return self._row(
            "user_annotation", name, track, start_us=start_us, duration_us=duration_us, args=args or {}, rank=rank
        )

    def step(
        self, number: int, start_us: Time, duration_us: Time, *, thread: int = 1, rank: int | None = None
    ) -> TraceBuilder:
        """Add the annotation that the profiler uses to mark a training step.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> builder = TraceBuilder().step(1, 0, 100).kernel("gemm", start_us=10, duration_us=60)
        >>> trace = builder.step(2, 100, 100).kernel("gemm", start_us=110, duration_us=60).build()
        >>> holotrace.step_time(trace).answer
        'A step takes 100 µs on average; its largest part is kernels (60.0 %).'
        """
        name = f"ProfilerStep#{number}"
        return self.annotation(name, start_us=start_us, duration_us=duration_us, thread=thread, rank=rank)

    def gpu_annotation(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        stream: int = 7,
        device: int = 0,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add a user annotation that the profiler projected onto a stream.

        >>> import holotrace
        >>> from holotrace.testing import TraceBuilder
        >>> trace = TraceBuilder().gpu_annotation("forward", start_us=3, duration_us=9).build()
        >>> holotrace.user_annotations(trace).answer
        '9 µs of device time on rank 0 goes into forward, the costliest annotation, in 1 call.'
        """
        known = {"device": device, "stream": stream, **(args or {})}
        return self._row(
            "gpu_user_annotation",
            name,
            (device, stream),
            start_us=start_us,
            duration_us=duration_us,
            args=known,
            rank=rank,
        )

    def runtime(  # noqa: PLR0913 -- one option per property of the row
        self,
        name: str,
        *,
        start_us: Time,
        duration_us: Time,
        correlation: int | None = None,
        thread: int = 1,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add a call to the CUDA or HIP runtime or, if its name is like `cuLaunchKernelEx`, to the driver.

        >>> from holotrace.testing import TraceBuilder
        >>> TraceBuilder().runtime("cudaMalloc", start_us=0, duration_us=5).build().ranks[0].event_counts()
        {<EventKind.RUNTIME: 7>: 1}
        """
        category = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
        known = {"correlation": correlation, **(args or {})}
        return self._row(
            category,
            name,
            (self._process_id(rank), thread),
            start_us=start_us,
            duration_us=duration_us,
            args=known,
            rank=rank,
        )

    def sync(  # noqa: PLR0913 -- one option per property of the row
        self,
        kind: str = "Stream Sync",
        *,
        start_us: Time,
        duration_us: Time,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        rank: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Add a `cuda_sync` row: the time that the host waits for a stream, an event or (with stream -1) the device.

        >>> from holotrace.testing import TraceBuilder
        >>> TraceBuilder().sync(start_us=0, duration_us=5).build().ranks[0].event_counts()
        {<EventKind.SYNCHRONISATION: 13>: 1}
        """
        known = {
            "cuda_sync_kind": kind,
            "stream": stream,
            "correlation": correlation,
            "device": device,
            "context": 1,
            **(args or {}),
        }
        return self._row(
            "cuda_sync", kind, (device, stream), start_us=start_us, duration_us=duration_us, args=known, rank=rank
        )

    def json(self, rank: int = 0) -> bytes:
        """Return the trace file of a rank.

        Raises:
            UnknownRankError: nothing was added for the rank.

        >>> from holotrace.testing import TraceBuilder
        >>> import json
        >>> json.loads(TraceBuilder().rank(2).json(rank=2))["traceName"]
        'rank2.pt.trace.json'
        """
        self._exists_at_all()
        if rank not in self._ranks:
            raise UnknownRankError.from_available(rank, self._ranks)
        chosen = self._ranks[rank]
        header = {**self._default_header(rank), **chosen.header}
        keys = {key: value for key, value in header.items() if value is not None}
        return document(keys, chosen.events + chosen.flows, {"traceName": f"rank{rank}.pt.trace.json"})

    def write(self, folder: str | Path) -> list[Path]:
        """Write `rank<n>.pt.trace.json` for every rank into the folder, creating it if necessary; return the paths.

        >>> from holotrace.testing import TraceBuilder
        >>> from tempfile import mkdtemp
        >>> [path.name for path in TraceBuilder().rank(1).write(mkdtemp())]
        ['rank1.pt.trace.json']
        """
        return list(self._write_ranks(Path(folder)).values())

    def build(self) -> Trace:
        """Write the job to a temporary folder and open it; the files stay until the process ends.

        >>> from holotrace.testing import TraceBuilder
        >>> TraceBuilder().kernel("gemm", start_us=0, duration_us=5).build().ranks[0].event_counts()
        {<EventKind.KERNEL: 6>: 1}
        """
        folder = Path(tempfile.mkdtemp(dir=_scratch_folder()))
        return open_trace(self._write_ranks(folder), cache=False)

    def _write_ranks(self, folder: Path) -> dict[int, Path]:
        self._exists_at_all()
        folder.mkdir(parents=True, exist_ok=True)
        paths = {rank: folder / f"rank{rank}.pt.trace.json" for rank in sorted(self._ranks)}
        for rank, path in paths.items():
            path.write_bytes(self.json(rank))
        return paths

    def _exists_at_all(self) -> None:
        """Add an empty rank 0 if the builder has no ranks."""
        if not self._ranks:
            self._events_of(None)

    def _default_header(self, rank: int) -> dict[str, Any]:
        return {
            "schemaVersion": 1,
            "deviceProperties": [],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": len(self._ranks)},
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self._base_time_ns,
        }

    def _events_of(self, rank: int | None) -> _RankEvents:
        return self._ranks.setdefault(self._number(rank), _RankEvents(header={}))

    def _number(self, rank: int | None) -> int:
        return self._rank if rank is None else rank

    def _process_id(self, rank: int | None) -> int:
        return 1000 + self._number(rank)

    def _free_correlation(self, rank: int | None) -> int:
        events = self._events_of(rank)
        events.next_correlation += 1
        return events.next_correlation - 1

    def _next_sequence(self, rank: int | None, group: str) -> int:
        sequences = self._events_of(rank).sequences
        sequences[group] += 1
        return sequences[group]

    def _row(  # noqa: PLR0913 -- the columns of a row
        self,
        category: str,
        name: str,
        track: tuple[int, int],
        *,
        start_us: Time,
        duration_us: Time,
        args: Args,
        rank: int | None,
    ) -> TraceBuilder:
        process, thread = track
        place = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread}
        times = {"ts": _exact_microseconds(start_us), "dur": _exact_microseconds(duration_us)}
        written = {key: value for key, value in args.items() if value is not None}
        self._events_of(rank).events.append({**place, **times, "args": written})
        return self

    def _flow(
        self,
        phase: str,
        correlation: int,
        track: tuple[int, int],
        *,
        time_us: Time,
        rank: int | None,
    ) -> None:
        place = {"ph": phase, "id": correlation, "pid": track[0], "tid": track[1], "ts": _exact_microseconds(time_us)}
        ending = {"bp": "e"} if phase == "f" else {}
        self._events_of(rank).flows.append({**place, "cat": "ac2g", "name": "ac2g", **ending})


@functools.cache
def _scratch_folder() -> str:
    """Return the folder for the files of all `build` calls; it stays until the process ends, because reads are lazy."""
    folder = tempfile.mkdtemp(prefix="holotrace-testing-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _exact(value: object) -> object:
    """Convert floats to the decimal numbers that `print` shows, without exponents."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _exact_microseconds(time_us: Time) -> Decimal:
    exact = Decimal(str(time_us))
    rounded = exact.quantize(Decimal("0.001"))
    if rounded != exact:
        message = f"{time_us} µs is not a whole number of nanoseconds; give at most three decimals"
        raise InvalidOptionError(message)
    return rounded
