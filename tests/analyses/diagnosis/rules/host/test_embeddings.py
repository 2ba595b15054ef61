"""Tests of the rule about embeddings whose gradient covers all rows although a step reads only a few."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder


def job(*, rows: int, read: int, dense: bool = True, columns: int = 64) -> holotrace.Trace:
    """Return two steps of 1 ms; each looks up `read` of the embedding's `rows` rows and updates it for 400 µs."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000)
        lookup = {"Input Dims": [[rows, 64], [read // 8, 8], [], [], []]}
        trace.operator("aten::embedding", start_us=begin + 1, duration_us=20, args=lookup)
        trace.operator(
            "aten::mm", start_us=begin + 30, duration_us=300, args={"Input Dims": [[read, 64], [64, columns]]}
        )
        backward = {"Input Dims": [[read, 64], [read // 8, 8], [], [], []]}
        name = "aten::embedding_dense_backward" if dense else "aten::embedding_sparse_backward"
        trace.operator(name, start_us=begin + 340, duration_us=100, args=backward)
        trace.operator("aten::zero_", start_us=begin + 342, duration_us=90, args={"Input Dims": [[rows, 64]]})
        update = {"Input Dims": [[rows, 64], [rows, 64], []]}
        trace.operator("aten::addcmul_", start_us=begin + 450, duration_us=400, args=update)
    return trace.build()


def test_work_on_all_rows_costs_its_time() -> None:
    """A step reads only 64 of 10,000 rows, but fills the gradient of all rows (90 µs) and updates all rows (400 µs)."""
    trace = job(rows=10_000, read=64)
    (case,) = cases_of(trace, "dense_embedding_gradients").values()

    assert case.cost_ns == pytest.approx(490_000)
    assert said(trace, "dense_embedding_gradients").what == (
        "a step reads at most 64 of the 10,000 rows of an embedding, but the backward pass and the optimizer process all rows, "
        "which takes 49.0 % of the step, mostly aten::addcmul_"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rows": 512, "read": 64},
        {"rows": 10_000, "read": 64, "dense": False},
        {"rows": 10_000, "read": 64, "columns": 10_000},
    ],
)
def test_other_embeddings_are_silent(options: dict[str, int]) -> None:
    """Not reported: a step that reads 1/8 of the rows, has sparse gradients, or also multiplies by the whole table."""
    assert not cases_of(job(**options), "dense_embedding_gradients")
