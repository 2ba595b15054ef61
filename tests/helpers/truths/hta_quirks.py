"""Made-up traces that show quirks of HTA (traceinsight 0.6.1, pandas 2.3.3), with HTA's answers from a manual run.

Each quirk includes a call that runs unchanged in HTA and in holotrace.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


class Writes(Protocol):
    """An object that writes trace files."""

    def write(self, folder: Path) -> object:
        """Write the files to a folder."""


class Quirk(NamedTuple):
    """A trace, a call, and HTA's answer to the call."""

    theirs: str
    builder: Writes
    call: Callable[[TraceAnalysis], str]

    def ours(self, folder: Path) -> str:
        """Write the trace to an empty folder; return holotrace's answer."""
        self.builder.write(folder)
        return self.call(TraceAnalysis(trace_dir=str(folder)))


def job(name: str, **options: object) -> TraceBuilder:
    """Return a trace with one operator and its kernel of 10 µs."""
    return TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).kernel(
        name, start_us=10, duration_us=10, launch_us=1, **options
    )  # fmt: skip


def time_of(kind: str) -> Callable[[TraceAnalysis], str]:
    """Return a function that gets the total GPU time of one kernel type."""

    def call(facade: TraceAnalysis) -> str:
        kinds = facade.get_gpu_kernel_breakdown(visualize=False)[0]
        return f"{kinds.loc[kinds['kernel_type'] == kind, 'sum'].sum():,.0f} µs"

    return call


def ranks(facade: TraceAnalysis) -> str:
    """Return the ranks of the opened trace."""
    return str(facade.t.get_ranks())


def operators(facade: TraceAnalysis) -> str:
    """Return the operators that launch kernels."""
    return ", ".join(facade.get_aten_op_kernels_and_delay([0])[0]["aten_op_name"])


def annotations(facade: TraceAnalysis) -> str:
    """Return the annotation of each kernel."""
    names = facade.get_gpu_kernels_with_user_annotations(0)["s_user_annotation"]
    return ", ".join(name or "none" for name in names)


class CompactFiles:
    """Three files, for ranks 0 to 2, in JSON without spaces."""

    def write(self, folder: Path) -> None:
        """Write the files to a folder."""
        for rank in range(3):
            kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
            content = {"distributedInfo": {"rank": rank}, "traceEvents": [kernel | {"args": {"stream": 7}}]}
            (folder / f"{rank}.json").write_text(json.dumps(content, separators=(",", ":")))


def without_ranks() -> TraceBuilder:
    """Return two ranks whose files do not state a rank."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(distributedInfo=None).kernel("gemm", start_us=10, duration_us=5, launch_us=1)
    return builder


def three_steps() -> TraceBuilder:
    """Return three steps; kernels and GPU annotations end after the step in which they begin."""
    builder = TraceBuilder()
    for step in (1, 2, 3):
        builder.step(step, 100 * step, 100)
        builder.kernel("gemm", start_us=100 * step + 95, duration_us=20, launch_us=100 * step + 10)
        builder.gpu_annotation(f"ProfilerStep#{step}", start_us=100 * step + 95, duration_us=20)
    return builder


def two_threads() -> TraceBuilder:
    """Return a kernel that an operator on the backward thread launches.

    During the launch, an operator that began later runs on the main thread.
    """
    return (
        TraceBuilder()
        .operator("aten::mm_backward", start_us=0, duration_us=40, thread=2)
        .operator("aten::relu", start_us=5, duration_us=30, thread=1)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=10, thread=2)
    )


def two_depths() -> TraceBuilder:
    """Return two calls of `aten::linear`, one of them within another operator."""
    return (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=10)
        .kernel("gemm", start_us=20, duration_us=5, launch_us=1)
        .operator("model::block", start_us=30, duration_us=20)
        .operator("aten::linear", start_us=31, duration_us=10)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=32)
    )


def two_streams() -> TraceBuilder:
    """Return two kernels that run during a GPU annotation, but only one of them on the annotation's stream."""
    return (
        TraceBuilder()
        .gpu_annotation("forward", start_us=20, duration_us=10, stream=7)
        .kernel("gemm", start_us=20, duration_us=10, launch_us=1, stream=7)
        .kernel("copy_kernel", start_us=20, duration_us=10, launch_us=5, stream=8)
    )


def border() -> TraceBuilder:
    """Return a kernel within a long annotation; a shorter annotation begins just before the kernel ends."""
    return (
        TraceBuilder()
        .gpu_annotation("forward", start_us=20, duration_us=20)
        .gpu_annotation("optimizer", start_us=28, duration_us=5)
        .kernel("gemm", start_us=21, duration_us=8, launch_us=1)
    )


def lost_range() -> TraceBuilder:
    """Return two launches, and performance counters for the kernel of only one launch."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=50)
    for correlation, start in ((1, 2), (2, 5)):
        builder.runtime("cudaLaunchKernel", start_us=start, duration_us=1, correlation=correlation)
    counters = {"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": 0, "ts": 10, "dur": 2}
    return builder.event(**counters, args={"smsp__cycles.sum": 5})


def hexadecimal() -> TraceBuilder:
    """Return kernels on two streams, one of which has a hexadecimal id."""
    builder = TraceBuilder()
    for start, stream in ((10, "0x7f1c"), (20, 7)):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": 5}
        builder.event(**kernel, args={"stream": stream, "correlation": start})
    return builder


QUIRKS: dict[str, Quirk] = {
    'files of ranks 0 to 2, written by `json.dumps(…, separators=(",", ":"))`': Quirk("[0]", CompactFiles(), ranks),
    "two files without a rank": Quirk("[0]", without_ranks(), ranks),
    "steps 1 to 3, annotated on the GPU as well: `get_profiler_steps()`": Quirk(
        "[1, 2, 3]", three_steps(), lambda facade: str([int(step) for step in facade.get_profiler_steps()])
    ),
    "kernels from 10 to 15 µs on stream 0x7f1c and from 20 to 25 µs on stream 7: time from first to last work": Quirk(
        "5 µs",
        hexadecimal(),
        lambda facade: f"{facade.get_temporal_breakdown(visualize=False)['kernel_time(us)'].sum():,.0f} µs",
    ),
    "10 µs of `vllm::cross_device_reduce_1stage`: communication": Quirk(
        "0 µs", job("void vllm::cross_device_reduce_1stage<float, 8>(float*)"), time_of("COMMUNICATION")
    ),
    "10 µs of `hipblaslt_gemm`: communication": Quirk("10 µs", job("hipblaslt_gemm"), time_of("COMMUNICATION")),
    "10 µs of `fused_kernel<MemcpyPolicy>`: computation": Quirk(
        "0 µs", job("void fused_kernel<MemcpyPolicy>(float*)"), time_of("COMPUTATION")
    ),
    "10 µs of ROCm's `CopyHostToDevice`: memory": Quirk(
        "0 µs",
        TraceBuilder().copy("CopyHostToDevice", start_us=10, duration_us=10, launch_us=1),
        time_of("MEMORY"),
    ),
    "one `cudaLaunchCooperativeKernel`: `get_cuda_kernel_launch_stats()`": Quirk(
        "0 rows",
        job("gemm", launch_name="cudaLaunchCooperativeKernel"),
        lambda facade: f"{len(facade.get_cuda_kernel_launch_stats([0], visualize=False)[0])} row",
    ),
    "operator of a launch in `aten::mm_backward`, while `aten::relu` runs on another thread": Quirk(
        "aten::relu", two_threads(), operators
    ),
    "operator of a kernel launched by `mylib::fused`": Quirk(
        "`KeyError`",
        TraceBuilder()
        .operator("mylib::fused", start_us=0, duration_us=5)
        .kernel("fused", start_us=10, duration_us=2, launch_us=1),
        operators,
    ),
    "`aten::linear` by itself and within another operator: calls found": Quirk(
        "1",
        two_depths(),
        lambda facade: str(
            facade.get_frequent_cuda_kernel_sequences("aten::linear", facade.t.trace_path, 1)["count"].sum()
        ),
    ),
    "shortest queue on a stream where a kernel begins before its launch": Quirk(
        "-1",
        TraceBuilder().kernel("gemm", start_us=5, duration_us=3, launch_us=10),
        lambda facade: str(facade.get_queue_length_time_series([0])[0]["queue_length"].min()),
    ),
    "a kernel from 21 to 29 µs, `forward` from 20 to 40, `optimizer` from 28 to 33": Quirk(
        "optimizer", border(), annotations
    ),
    "two kernels at the same time, but `forward` only on the first kernel's stream": Quirk(
        "forward, forward", two_streams(), annotations
    ),
    "two launches, and hardware counters for the kernel of only one launch": Quirk(
        "0 rows",
        lost_range(),
        lambda facade: f"{sum(map(len, facade.get_cupti_counter_data_with_operators([0])))} row",
    ),
}
"""{example on the page: quirk}."""
