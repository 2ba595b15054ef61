"""`plan_job` schedules the work of a simulated job in true time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from holotrace.errors import InvalidOptionError
from holotrace.testing.job_plan import (
    BEGIN_NS,
    LAUNCH_LATENCY_NS,
    STREAM_GAP_NS,
    HostClock,
    JobOptions,
    plan_job,
)

OPTIONS = JobOptions(
    ranks=4,
    steps=2,
    layers=2,
    straggler_rank=1,
    straggler_delay_ns=2_000_000,
    ranks_per_host=2,
    clock_offset_ns=100_000,
    clock_drift_ppb=20_000,
    seed=3,
)


@pytest.fixture(scope="module")
def plan():
    """Plan a small job on two hosts."""
    return plan_job(OPTIONS)


def by_stream(rank_plan):
    """Return the device work of a rank by stream, sorted by start."""
    streams = {}
    for planned in rank_plan.works:
        streams.setdefault(planned.work.stream, []).append(planned)
    return {stream: sorted(works, key=lambda planned: planned.start_ns) for stream, works in streams.items()}


def test_work_starts_after_its_launch(plan):
    """Work on the device starts at least the launch latency after its launch call starts."""
    assert all(
        planned.start_ns >= planned.launch_start_ns + LAUNCH_LATENCY_NS
        for rank_plan in plan.ranks
        for planned in rank_plan.works
    )


def test_work_on_one_stream_does_not_overlap(plan):
    """On a stream, the next kernel or copy starts at least STREAM_GAP_NS after the previous one ends."""
    for rank_plan in plan.ranks:
        for works in by_stream(rank_plan).values():
            assert all(later.start_ns - earlier.end_ns >= STREAM_GAP_NS for earlier, later in pairwise(works))


def test_operators_are_nested_and_contain_their_launches(plan):
    """Inner operators are inside their outer operators, and launches inside the innermost operators."""
    for call in plan.ranks[0].calls:
        assert all(a[0] < b[0] and b[1] < a[1] for a, b in pairwise(call.spans))
        first_ns, last_ns = call.spans[-1]
        assert all(first_ns < work.launch_start_ns < work.launch_end_ns < last_ns for work in call.works)


def test_calls_of_a_thread_do_not_overlap(plan):
    """Each call on rank 2 ends before the next call begins."""
    spans = [call.spans[0] for call in plan.ranks[2].calls]

    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


def test_collectives_end_on_all_ranks_at_once(plan):
    """A collective ends on all members at the same true time: one transfer time after the last member arrives."""
    for collective in plan.collectives:
        parts = [
            planned
            for rank in collective.members
            for planned in plan.ranks[rank].works
            if planned.work.collective.group == collective.group and planned.sequence == collective.sequence
        ]
        assert len(parts) == len(collective.members)
        assert {part.end_ns for part in parts} == {collective.end_ns}
        assert max(part.start_ns for part in parts) + parts[0].work.duration_ns == collective.end_ns


def test_every_rank_waits_for_the_straggler(plan):
    """In all collectives, the straggler arrives last and never waits."""
    of_all = [collective for collective in plan.collectives if len(collective.members) == OPTIONS.ranks]

    assert {collective.last_to_arrive for collective in of_all} == {1}
    assert all(collective.waited_ns[1] == 0 for collective in of_all)


def test_the_straggler_computes_longer_by_the_delay():
    """In each step, the straggler computes 2 ms longer than in the same job without a straggler."""
    slow, even = plan_job(OPTIONS), plan_job(replace(OPTIONS, straggler_rank=None))

    def computation_ns(plan):
        return sum(work.end_ns - work.start_ns for work in plan.ranks[1].works if work.work.kind == "computation")

    assert computation_ns(slow) - computation_ns(even) == pytest.approx(OPTIONS.steps * 2_000_000, abs=1_000)


def test_host_groups_contain_the_ranks_of_a_host():
    """Five ranks, two per host, form the groups 0-1, 2-3 and 4."""
    options = replace(OPTIONS, ranks=5)

    assert [list(options.group_of("1", rank)) for rank in range(5)] == [[0, 1], [0, 1], [2, 3], [2, 3], [4]]
    assert list(options.group_of("0", 3)) == [0, 1, 2, 3, 4]


def test_ranks_of_a_host_share_its_clock_and_the_first_clock_is_right(plan):
    """The first host has an exact clock; the ranks of the second host share an offset and a drift."""
    clocks = [rank_plan.clock for rank_plan in plan.ranks]

    assert clocks[0] == clocks[1] == HostClock()
    assert clocks[2] == clocks[3] != HostClock()
    assert 0 < abs(clocks[2].offset_ns) <= 100_000
    assert 0 < abs(clocks[2].drift_ppb) <= 20_000


def test_a_clock_shows_offset_and_drift():
    """After a second, a clock with offset -7 ns and drift 1,000 ppb is 993 ns ahead."""
    clock = HostClock(offset_ns=-7, drift_ppb=1_000)

    assert clock.shows(BEGIN_NS) == BEGIN_NS - 7
    assert clock.shows(BEGIN_NS + 1_000_000_000) == BEGIN_NS + 1_000_000_993


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": 0}, "ranks=0: must be at least 1; give a larger number"),
        ({"steps": 0}, "steps=0: must be at least 1; give a larger number"),
        ({"layers": -1}, "layers=-1: must be at least 1; give a larger number"),
        ({"ranks_per_host": 0}, "ranks_per_host=0: must be at least 1; give a larger number"),
        ({"straggler_rank": 4}, "straggler_rank=4: the ranks are 0 to 3"),
    ],
)
def test_invalid_options_are_rejected(change, message):
    """Zero ranks, steps or layers, or an unknown straggler rank, raise an error that names the option."""
    with pytest.raises(InvalidOptionError, match=message):
        replace(OPTIONS, **change)
