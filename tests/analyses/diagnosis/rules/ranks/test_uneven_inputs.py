"""Tests of the rule about ranks that get longer sequences than the other ranks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import holotrace
from holotrace.analyses.diagnosis.compute import shown_findings
from holotrace.testing.builder import TraceBuilder

RULES = {"uneven_inputs", "late_rank", "uneven_work"}


def job(tokens: Sequence[Sequence[int]], *, shapes: str = "recorded") -> holotrace.Trace:
    """Return steps of 2 ms: in step s, rank r processes `tokens[s][r]` tokens, 1 µs each, then all ranks reduce.

    `shapes` may be "recorded", "missing", or "equal" (all ranks record the same shape).
    """
    trace = TraceBuilder()
    ranks = range(len(tokens[0]))
    for rank in ranks:
        trace.rank(rank)
        for number, of_ranks in enumerate(tokens):
            begin, count = 2000 * number, of_ranks[rank]
            dims = [[count if shapes == "recorded" else 300, 8], [8, 1]]
            args = {} if shapes == "missing" else {"Input Dims": dims}
            trace.step(number, begin, 2000)
            trace.operator("aten::mm", start_us=begin + 2, duration_us=10, args=args)
            trace.kernel("gemm", start_us=begin + 10, duration_us=count, launch_us=begin + 5)
            start, end = begin + 12 + count, begin + 112 + max(of_ranks)
            trace.collective(
                group_ranks=ranks, sequence=number, start_us=start, duration_us=end - start, launch_us=begin + 15
            )
            trace.runtime("cudaDeviceSynchronize", start_us=begin + 17, duration_us=end - begin - 15)
    return trace.build()


def findings(trace: holotrace.Trace) -> dict[str, str]:
    """For each rule in `RULES` that has a finding, return the text of the finding."""
    return {row["rule"]: row["finding"] for row in shown_findings(holotrace.diagnosis(trace)) if row["rule"] in RULES}


@pytest.mark.slow
def test_a_rank_with_longer_sequences_is_named_with_the_ratio() -> None:
    """Rank 2 gets 900 tokens and the others 300; the inputs (8 · tokens + 8 elements) differ by a factor of 2.995."""
    assert findings(job([[300, 300, 900]] * 4)) == {
        "uneven_inputs": "the other ranks wait for rank 2, whose inputs have 3 times as many elements as the inputs of its peers"
    }


@pytest.mark.slow
def test_the_cost_is_what_the_others_wait() -> None:
    """Two of three ranks wait 600 µs in each step; the stake is these 600 µs, not the mean of 400 µs over all ranks."""
    found = holotrace.diagnosis(job([[300, 300, 900]] * 4)).per_finding.filter(rule="uneven_inputs")

    assert found["stake_ns"].to_list() == [pytest.approx(600_000, rel=0.01)]
    assert found["rank"].to_list() == [2]


@pytest.mark.slow
def test_ranks_that_get_long_sequences_in_turn_are_not_late() -> None:
    """In each step, a different rank gets 900 tokens, so the inputs are uneven but no rank is late."""
    turns = [[900 if rank == step % 3 else 300 for rank in range(3)] for step in range(6)]

    assert findings(job(turns)) == {
        "uneven_inputs": "ranks wait for each other, each time for the rank whose inputs have 3 times as many elements as the inputs of its peers"
    }


@pytest.mark.parametrize("shapes", ["equal", pytest.param("missing", marks=pytest.mark.slow)])
def test_a_rank_that_computes_longer_for_other_reasons_is_late(shapes: str) -> None:
    """Rank 2 computes for 900 instead of 300 µs, but the shapes are equal or unknown, so it is reported as late."""
    assert set(findings(job([[300, 300, 900]] * 4, shapes=shapes))) == {"late_rank"}
