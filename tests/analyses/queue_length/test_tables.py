"""Tests of the printed tables of queue_length and memory_bandwidth."""

from __future__ import annotations

from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_bandwidth.tables import bandwidth_per_kind
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.queue_length.tables import queues_per_stream
from jobs import gpu_job


def test_a_queue_has_a_row_and_a_job_without_copies_has_none() -> None:
    """Each stream has a row with its queue; the job has no copies, so its table of copies is empty."""
    assert queues_per_stream(queue_length(gpu_job().build())).row(0) == (0, 7, 1.0, 1.0, 1, 1, 0, 2, 1)
    assert bandwidth_per_kind(memory_bandwidth(gpu_job().build())).is_empty()
