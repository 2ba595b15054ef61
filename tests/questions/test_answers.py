"""Answers state only what the trace shows."""

from __future__ import annotations

import holotrace
from holotrace.testing.builder import TraceBuilder


def test_a_rank_alone_shows_nobody_waiting() -> None:
    """If only one rank was recorded, the answer says that the waiting time is unknown, not 0 %."""
    trace = TraceBuilder().step(0, 0, 1000).collective(start_us=100, duration_us=400).build()

    assert holotrace.distributed(trace).answer == (
        "400 µs over all ranks goes into collectives; the waiting time is unknown, because no call was recorded on more than one rank."
    )


def test_copies_of_unknown_size_have_no_bandwidth() -> None:
    """If sizes are missing, the answer says that the bandwidth is unknown, not 0 B/s."""
    trace = TraceBuilder().copy(start_us=0, duration_us=5, args={"bytes": None}).build()

    assert holotrace.memory_bandwidth(trace).answer == (
        "Copies take 5 µs; their bandwidth is unknown, because their sizes were not recorded."
    )


def test_kernels_that_start_within_their_launch_have_no_delay() -> None:
    """A kernel that starts 4 µs after the beginning of its launch call of 10 µs does not start late."""
    trace = TraceBuilder().runtime("cudaLaunchKernel", start_us=0, duration_us=10, args={"correlation": 1})
    trace = trace.kernel("gemm", start_us=4, duration_us=20, args={"correlation": 1})

    assert holotrace.launch_statistics(trace.build()).answer == (
        "0 of 1 kernels start late; most kernels start before their launch call returns."
    )


def test_the_path_of_a_rank_alone_is_not_said_to_be_on_this_rank() -> None:
    """With `across_ranks=True` and one rank, the answer names the largest part of the path, not the rank."""
    trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=90).build()

    assert holotrace.critical_path(trace).answer.endswith(
        "of the whole recording on rank 0 (90 µs) is operators on the host."
    )
    assert holotrace.critical_path(trace, across_ranks=True).answer == (
        "The largest part of the critical path (whole recording, 90 µs) is aten::mm, 90 µs in 1 segment."
    )


def test_a_recording_without_steps_has_no_mean_step() -> None:
    """Without steps, the answer gives the time of the whole recording."""
    trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=90).build()

    assert holotrace.step_time(trace).answer == "The recording takes 90 µs; its largest part is operators (100.0 %)."
