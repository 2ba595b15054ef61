"""Golden test of the critical path of a synthetic job."""

from __future__ import annotations

from holotrace import critical_path, open_trace
from holotrace.testing.synthetic import write_job


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables of a synthetic job of three ranks and two steps equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=2, layers=2, seed=1)

    result = critical_path(open_trace(tmp_path, cache=False))

    golden.check(result.per_rank, "critical_path/synthetic_job.per_rank")
    golden.check(result.per_class, "critical_path/synthetic_job.per_class")
    golden.check(result.per_name, "critical_path/synthetic_job.per_name")
