"""Tests of `wait_causes(...).jitter`: why a rank waits longer in a step than in a typical step."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.analyses.wait_causes.compute import wait_causes
from holotrace.analyses.wait_causes.jitter import jitter
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import FIRST_STEP, Cause, PlantedOptions

MS = 1_000_000


def costs(*rows):
    """Return a `per_cause` table with these rows (step, cause_rank, waiting_rank, name, cost_ns)."""
    schema = {
        "step": pl.Int64,
        "cause_rank": pl.Int32,
        "waiting_rank": pl.Int32,
        "name": pl.String,
        "cost_ns": pl.Int64,
    }
    table = pl.DataFrame(rows, schema, orient="row")
    nothing = pl.lit(None, pl.String)
    return table.with_columns(pl.lit("computation").alias("cause"), nothing.alias("module"), nothing.alias("frame"))


def test_the_cause_that_grew_most_is_named():
    """In step 3, rank 0 waits 30 ns longer for a gemm and 50 ns longer for a sort, so the row names the sort."""
    always = [(step, 1, 0, "gemm", 100 + 30 * (step == 3)) for step in (1, 2, 3)]
    table = jitter(costs(*always, (3, 2, 0, "sort", 50)), {0: [1, 2, 3]})
    assert table["wait_ns"].to_list() == [100, 100, 180]
    assert table["typical_wait_ns"].to_list() == [100, 100, 100]
    assert table["wait_excess_ns"].to_list() == [0, 0, 80]
    assert table.select("cause_rank", "name", "cost_excess_ns").rows() == [(None, None, None)] * 2 + [(2, "sort", 50)]


def test_steps_without_waits_count():
    """Rank 0 waits in only one of three steps, so its typical wait is 0."""
    table = jitter(costs((2, 1, 0, "gemm", 70)), {0: [1, 2, 3], 1: [1, 2, 3]})
    assert table.select("rank", "step", "wait_ns", "typical_wait_ns", "cost_excess_ns").rows()[:3] == [
        (0, 1, 0, 0, None),
        (0, 2, 70, 0, 70),
        (0, 3, 0, 0, None),
    ]
    assert table.filter(rank=1)["wait_ns"].to_list() == [0, 0, 0]


def test_without_waits_there_are_rows_without_causes():
    """Without waits, every rank and step still has a row, with a null cause."""
    assert jitter(costs(), {0: [1]}).select("rank", "step", "wait_ns", "cause").rows() == [(0, 1, 0, None)]


@pytest.mark.parametrize(
    ("kind", "cause"), [("garbage_collection", "garbage_collection"), ("slow_kernel", "computation")]
)
def test_a_delay_in_one_step_is_the_reason_of_this_step(kind, cause, tmp_path):
    """Rank 2 is delayed by 5 ms in one step; in this step, all other ranks wait 5 ms longer because of the delay."""
    step = FIRST_STEP + 2
    options = PlantedOptions(data=4, steps=5, layers=1, causes=(Cause(kind, 2, 5 * MS, step=step),))
    trace = holotrace.open_trace(PlantedJob(options).write(tmp_path), cache=False)
    table = wait_causes(trace).jitter.filter(pl.col("step") == step, pl.col("rank") != 2)
    assert table["wait_excess_ns"].to_list() == pytest.approx([5 * MS] * 3, rel=0.02)
    assert table["cost_excess_ns"].to_list() == pytest.approx([5 * MS] * 3, rel=0.02)
    assert set(table.select("cause_rank", "cause").rows()) == {(2, cause)}
