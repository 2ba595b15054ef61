"""The tables of queue length for people."""

from __future__ import annotations

from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_bandwidth.tables import bandwidth_per_kind
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.queue_length.tables import queues_per_stream
from jobs import gpu_job


def test_queues_and_copies_have_a_row_each() -> None:
    """The kernel launched at 80 waits until 100; nothing is copied."""
    assert queues_per_stream(queue_length(gpu_job().build())).row(0) == (0, 7, 1.0, 1.0, 1, 1, 0, 2, 1)
    assert bandwidth_per_kind(memory_bandwidth(gpu_job().build())).is_empty()
