"""Tests of the SQL view of collectives that were matched across ranks."""

from __future__ import annotations

import holotrace
from holotrace.testing.builder import TraceBuilder


def test_a_query_sees_both_ranks_of_a_collective() -> None:
    """Rank 1 enters an all-reduce of 4 KiB 40 µs late, so rank 0 waits for 40 µs; the transfer takes 10 µs."""
    builder = TraceBuilder().header(host_name="a").collective(start_us=0, duration_us=50)
    trace = builder.rank(1).header(host_name="a").collective(start_us=40, duration_us=10).build()
    query = """
        SELECT rank, instance, matched_by, message_bytes, lateness_ns, wait_ns, transfer_ns, is_last, bus_bytes_per_s
        FROM matched_collectives ORDER BY rank
    """

    rows = holotrace.sql(trace, query).rows()

    assert rows == [
        (0, 0, "sequence", 4096, 0, 40_000, 10_000, False, 409_600_000.0),
        (1, 0, "sequence", 4096, 40_000, 0, 10_000, True, 409_600_000.0),
    ]


def test_a_job_without_communication_has_an_empty_view() -> None:
    """For a rank without collectives, the view has all its columns but no rows."""
    trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build()

    assert holotrace.sql(trace, "SELECT instance, wait_ns FROM matched_collectives").rows() == []
