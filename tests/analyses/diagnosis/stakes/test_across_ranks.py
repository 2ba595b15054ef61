"""Tests of the stake of a late rank: the time saved if all ranks are replayed without its delay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder
from matrices import slow_except

PLANTED = Path(__file__).parents[3] / "reference" / "traces" / "planted_causes"


def late_rank_of(trace: holotrace.Trace) -> dict[str, Any]:
    """Return the finding about the late rank."""
    return holotrace.diagnosis(trace).per_finding.row(by_predicate=pl.col("rule") == "late_rank", named=True)


def reducing_job(delays_us: list[int]) -> holotrace.Trace:
    """Return steps of three ranks that compute for 300 µs (rank 2 for `delays_us` longer), then reduce for 50 µs."""
    trace = TraceBuilder()
    for rank in range(3):
        trace.rank(rank)
        begin = 0
        for number, delay_us in enumerate(delays_us):
            computing, ends = 300 + (delay_us if rank == 2 else 0), begin + 310 + delay_us
            trace.step(number, begin, 360 + delay_us)
            trace.operator("aten::mm", start_us=begin + 2, duration_us=6)
            trace.kernel("gemm", start_us=begin + 10, duration_us=computing, launch_us=begin + 5)
            start = begin + 10 + computing
            trace.collective(
                start_us=start,
                duration_us=ends + 50 - start,
                launch_us=begin + 9,
                group_ranks=range(3),
                sequence=number,
            )
            trace.runtime("cudaDeviceSynchronize", start_us=begin + 12, duration_us=ends + 45 - begin)
            begin += 360 + delay_us
    return trace.build()


@pytest.mark.slow
def test_replays_save_the_delay() -> None:
    """Rank 2 is 240 µs late in each step, so replays without this delay are 240 µs shorter."""
    found = late_rank_of(reducing_job([240] * 4))

    assert found["basis"] == "what-if"
    assert found["stake_ns"] == pytest.approx(240_000, rel=0.05)
    assert found["stake_error_ns"] <= 10_000


@pytest.mark.slow
def test_a_rank_that_is_late_in_some_steps_says_in_how_many() -> None:
    """Rank 2 is 300 µs late in two of four steps; the finding says so, and the stake per step is 150 µs."""
    found = late_rank_of(reducing_job([300, 0, 300, 0]))

    assert "in 2 of 4 steps" in found["finding"]
    assert found["confidence"] == "medium"
    assert found["stake_ns"] == pytest.approx(150_000, rel=0.1)
    assert found["stake_error_ns"] > 100_000


@pytest.mark.parametrize(
    "name",
    slow_except(
        ["ddp_data_loading", "ddp_slow_backward", "fsdp_slow_rank", "pipeline_dp_rank1"], ["ddp_slow_backward"]
    ),
)
def test_the_stake_is_about_what_was_planted(name: str) -> None:
    """The stake is within 15 % of the delay per step that was added to the job on purpose."""
    truth = json.loads((PLANTED / name / "truth.json").read_text())
    planted_ns = sum(row["duration_ns"] for row in truth["planted"]) / len(truth["recorded_steps"])
    found = late_rank_of(holotrace.open_trace(PLANTED / name, cache=False))

    assert found["basis"] == "what-if"
    assert found["stake_ns"] == pytest.approx(planted_ns, rel=0.15)
