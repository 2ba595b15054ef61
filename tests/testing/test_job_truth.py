"""The ground truth of a simulated job matches a brute-force computation on sets of nanoseconds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.testing.job_truth import ShownWork, idle_split, state_lengths
from oracles import covered, holes
from oracles import state_lengths as state_lengths_by_moment

KINDS = ("computation", "communication", "memory")


@st.composite
def works(draw):
    """Draw device work of a few nanoseconds, sorted by start; each is launched before it starts."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        start_ns, length_ns = draw(st.integers(0, 60)), draw(st.integers(1, 15))
        launch_start_ns = start_ns - draw(st.integers(0, 20))
        rows.append(ShownWork(draw(st.sampled_from(KINDS)), 7, launch_start_ns, start_ns, start_ns + length_ns))
    return sorted(rows, key=lambda work: (work.start_ns, work.end_ns))


def pairs(chosen):
    """Return the intervals of device work."""
    return [(work.start_ns, work.end_ns) for work in chosen]


@settings(deadline=None)
@given(works())
def test_state_lengths_count_every_nanosecond_once(chosen):
    """The length of each combination of kinds is the number of nanoseconds in which exactly these kinds run."""
    by_kind = [pairs(work for work in chosen if work.kind == kind) for kind in KINDS]
    expected = {
        frozenset(kind for bit, kind in enumerate(KINDS) if key >> bit & 1): count
        for key, count in state_lengths_by_moment(by_kind).items()
        if count
    }

    assert {kinds: length for kinds, length in state_lengths(chosen).items() if length} == expected


@settings(deadline=None)
@given(works())
def test_idle_split_adds_up_to_the_idle_time(chosen):
    """The times per cause add up to the idle time; `other` is 0, because no idle gap is long enough for it."""
    split = idle_split(chosen)

    assert sum(split.values()) == len(holes(pairs(chosen)))
    assert split["other"] == 0


@settings(deadline=None)
@given(works())
def test_time_before_the_launch_is_host_wait(chosen):
    """Idle time before the launch of the next work is `host_wait`."""
    idle = holes(pairs(chosen))
    waiting = {
        moment for moment in idle if moment < next(work for work in chosen if work.start_ns > moment).launch_start_ns
    }

    assert idle_split(chosen)["host_wait"] == len(waiting)
    assert covered(pairs(chosen)).isdisjoint(waiting)


def test_a_long_wait_after_the_launch_is_other():
    """An idle gap after the launch of the next work is `other` if it lasts 30 µs, and `kernel_wait` if 29.999 µs."""

    def gap_of(length_ns):
        return [ShownWork("memory", 7, 0, 0, 10), ShownWork("memory", 7, 5, 10 + length_ns, 40_000)]

    assert idle_split(gap_of(30_000)) == {"host_wait": 0, "kernel_wait": 0, "other": 30_000}
    assert idle_split(gap_of(29_999)) == {"host_wait": 0, "kernel_wait": 29_999, "other": 0}
