"""Tests of the SQL view that lists doubts about recordings."""

from __future__ import annotations

import holotrace
from holotrace.testing.builder import TraceBuilder


def test_a_query_sees_the_doubts_of_each_rank() -> None:
    """On rank 1, a kernel begins 2 µs before its launch, so the view lists a doubt; for rank 0 it lists none."""
    builder = TraceBuilder().kernel("gemm", start_us=10, duration_us=5, launch_us=0)
    builder.rank(1).kernel("gemm", start_us=8, duration_us=5, launch_us=10)

    rows = holotrace.sql(builder.build(), "SELECT rank, rule, stream, start_ns, doubtful_ns FROM doubts").rows()

    assert rows == [(1, "starts_before_launch", 7, 8_000, 2_000)]
