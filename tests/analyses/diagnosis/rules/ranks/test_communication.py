"""Tests of the rules about exposed communication and pipeline bubbles."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from device_jobs import EXAMPLES
from holotrace.testing.builder import TraceBuilder

TRACES = Path(__file__).parents[5] / "tests" / "reference" / "traces"


def reducing_job(*, ranks: int, hidden: bool, members: int = 0) -> holotrace.Trace:
    """Return three steps of 100 µs; each rank reduces gradients for 40 µs. If `hidden`, a kernel runs in parallel.

    The process group has `members` ranks, or all ranks of the job if `members` is 0.
    """
    trace = TraceBuilder()
    for rank in range(ranks):
        trace.rank(rank)
        for number in range(3):
            begin = 100 * number
            trace.step(number, begin, 100)
            trace.kernel("gemm", start_us=begin + 1, duration_us=98 if hidden else 58)
            start = begin + (30 if hidden else 59)
            trace.collective(
                "allreduce", start_us=start, duration_us=40, elements=1 << 20, group_ranks=range(members or ranks)
            )
    return trace.build()


def stakes(trace: holotrace.Trace) -> dict[str, int | None]:
    """Return the stake (ns) of each rule with a finding."""
    return dict(holotrace.diagnosis(trace).per_finding.select("rule", "stake_ns").iter_rows())


def test_communication_that_nothing_hides_costs_its_transfer() -> None:
    """Both ranks arrive at the same time, so all 40 µs count as transfer and are reported."""
    assert stakes(reducing_job(ranks=2, hidden=False))["exposed_communication"] == pytest.approx(40_000, rel=0.01)


def test_broadcasts_beside_the_gradients_are_named() -> None:
    """Reductions and broadcasts are exposed; the finding names both, and the advice is to broadcast only once."""
    trace = TraceBuilder()
    for rank in range(2):
        trace.rank(rank)
        for number in range(3):
            begin = 100 * number
            trace.step(number, begin, 100).kernel("gemm", start_us=begin + 1, duration_us=20)
            for collective, start_us, duration_us in (("allreduce", 22, 40), ("broadcast", 65, 30)):
                times = {"start_us": begin + start_us, "duration_us": duration_us}
                trace.collective(collective, **times, elements=1 << 20, args={"Process Group Description": "mesh_dp"})
    found = holotrace.diagnosis(trace.build()).per_finding
    row = found.row(by_predicate=pl.col("rule") == "exposed_communication", named=True)

    assert row["finding"].endswith("on the axis dp moves data while nothing computes (all_reduce and broadcast)")
    assert "broadcast them only once" in row["advice"]


def test_hidden_communication_costs_nothing() -> None:
    """A kernel runs during the whole collective, so the collective is not reported."""
    assert "exposed_communication" not in stakes(reducing_job(ranks=2, hidden=True))


def test_communication_with_ranks_that_were_not_opened_may_be_waiting() -> None:
    """A collective has three ranks, but only the files of two were opened; these two may wait for the third rank."""
    found = holotrace.diagnosis(reducing_job(ranks=2, hidden=False, members=3)).per_finding
    row = found.row(by_predicate=pl.col("rule") == "exposed_communication", named=True)

    assert row["finding"].endswith("or waits for ranks whose files were not opened")
    assert row["confidence"] == "low"
    assert "all ranks" in row["advice"]


def test_the_headline_names_no_waiting_if_no_call_was_matched() -> None:
    """Only one of two ranks was opened, so the waiting is unknown (null), not 0."""
    assert holotrace.diagnosis(alone()).headline["waiting_fraction"].to_list() == [None]


def test_one_rank_alone_cannot_say_how_much_is_waiting() -> None:
    """If only one of two ranks was opened, the confidence is low, and the advice is to open all ranks."""
    found = holotrace.diagnosis(alone())
    row = found.per_finding.row(by_predicate=pl.col("rule") == "exposed_on_one_rank", named=True)

    assert row["confidence"] == "low"
    assert "all ranks" in row["advice"]


def alone() -> holotrace.Trace:
    """Return a trace with only rank 0 of a job of two ranks."""
    trace = TraceBuilder().rank(0)
    for number in range(3):
        begin = 100 * number
        trace.step(number, begin, 100).kernel("gemm", start_us=begin + 1, duration_us=58)
        trace.collective("allreduce", start_us=begin + 59, duration_us=40, group_ranks=(0, 1))
    return trace.build()


@pytest.mark.slow
def test_the_bubble_of_a_pipeline_comes_with_what_its_schedule_explains() -> None:
    """With two stages and four microbatches, the schedule explains 20 % of the step."""
    found = holotrace.diagnosis(holotrace.open_trace(TRACES / "pipeline_gloo_4rank", cache=False)).per_finding
    row = found.row(by_predicate=pl.col("rule") == "pipeline_bubble", named=True)

    assert "with 2 stages and 4 microbatches, the schedule explains 20.0 %" in row["finding"]


def test_balanced_stages_that_wait_have_a_bad_order_of_microbatches() -> None:
    """Both stages compute for only 1.9 of 18 ms; the advice is to change the order of the microbatches."""
    trace = holotrace.open_trace(EXAMPLES / "two_ranks-pipeline", cache=False)
    row = holotrace.diagnosis(trace).per_finding.row(by_predicate=pl.col("rule") == "pipeline_bubble", named=True)

    assert "order of microbatches" in row["advice"]
