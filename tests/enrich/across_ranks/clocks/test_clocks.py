"""Tests of host clocks with small tables of calls, simulated jobs with known clocks, and recorded jobs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from clock_truth import compared, with_truth
from holotrace.enrich.across_ranks.clocks.clocks import Clocks, clocks
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.matching.matching import match
from holotrace.testing.job_calls import CALL_SCHEMA, CallsOptions, simulated_calls
from recordings import opened

TWO_HOSTS = {0: "a", 1: "b"}


def calls_of(*rows):
    """Return a table of calls; each row is (rank, instance, family, start_ns, end_ns)."""
    schema = dict(list(CALL_SCHEMA.items())[:5])
    return pl.DataFrame(rows, schema=schema, orient="row")


def every_10_us(count, shift, *, family="all_reduce", first=0):
    """Return calls that ranks 0 and 1 enter together and leave together; rank 1's clock is `shift` ahead."""
    return [
        (rank, number, family, 10_000 * number + rank * shift, 10_000 * number + 1_000 + rank * shift)
        for number in range(first, first + count)
        for rank in (0, 1)
    ]


def shifted_from(job, host, begin, by_ns):
    """Return the job with a host's clock set forward; `begin` is the fraction of the host's calls before the jump."""
    is_on_host = pl.col("rank").replace_strict(job.hosts) == host
    times = job.calls.filter(is_on_host)["start_ns"].sort()
    is_late = [is_on_host & (pl.col(name) >= times[int(begin * len(times))]) for name in ("start_ns", "end_ns")]
    columns = [
        pl.when(late).then(pl.col(name) + by_ns).otherwise(name).alias(name)
        for late, name in zip(is_late, ("start_ns", "end_ns"), strict=True)
    ]
    return job._replace(calls=job.calls.with_columns(columns).sort("rank", "start_ns"))


@pytest.mark.parametrize("seed", range(16))
def test_the_truth_is_inside_the_interval(seed) -> None:
    """Every interval contains the true offset, despite drifting clocks, slow hosts and missing calls."""
    assert compared(CallsOptions.drawn(seed)).outside == []


@pytest.mark.slow
def test_the_truth_is_inside_the_interval_for_many_jobs() -> None:
    """Every interval contains the true offset in 80 more jobs; `benchmarks/clocks.py` checks 1,000."""
    assert [compared(CallsOptions.drawn(seed)).outside for seed in range(16, 96)] == [[]] * 80


def test_two_hosts_that_enter_and_leave_together() -> None:
    """Clock b is 7 s ahead; the error is at most 1 µs (the length of a call) plus 2 µs (rounding to whole µs)."""
    found = clocks(calls_of(*every_10_us(20, 7_000_000_000)), TWO_HOSTS)

    reference, other = found.per_host.iter_rows(named=True)
    assert (reference["host"], reference["offset_ns"], reference["half_width_ns"]) == ("a", 0, 0)
    assert other["offset_ns"] == -7_000_000_000
    assert 1_000 <= other["half_width_ns"] <= 3_100
    assert other["instance_count"] == 20
    assert abs(other["drift_ppb"]) <= other["drift_half_width_ppb"]
    assert (found.closure_error_ns, found.dropped_count, found.findings) == (None, 0, ())
    aligned = found.aligned(
        calls_of((0, 0, "all_reduce", 500, 600), (1, 0, "all_reduce", 7_000_000_500, 7_000_000_600))
    )
    assert aligned["aligned_start_ns"].to_list() == [500, 500]
    assert aligned["half_width_ns"][0] == 0


def test_one_host_has_offset_0_by_construction() -> None:
    """With a single host, no clocks are compared."""
    found = clocks(calls_of(*every_10_us(20, 0)), {0: "a", 1: "a"})

    assert found.per_host.select("host", "rank", "rank_count", "offset_ns", "half_width_ns").rows() == [
        ("a", None, 2, 0, 0)
    ]
    assert found.findings == ()


def test_ranks_of_one_host_that_contradict_each_other_have_their_own_clocks() -> None:
    """In every call, rank 1 leaves 4 µs before rank 0 enters, so the device clocks differ by at least 4 µs."""
    found = clocks(calls_of(*every_10_us(20, -5_001)), {0: "a", 1: "a"})

    assert found.per_host.select("host", "rank", "offset_ns").rows() == [("a", 0, 0), ("a", 1, 5_001)]
    assert "leave collectives up to 4 µs before others enter" in found.findings[0]


def test_hosts_that_share_no_call_are_unknown() -> None:
    """Host c shares no call with another host, so its offset is null and a finding names it."""
    found = clocks(calls_of(*every_10_us(20, 300), (2, 99, "all_reduce", 0, 10)), {**TWO_HOSTS, 2: "c"})

    assert found.per_host.filter(host="c").select("offset_ns", "half_width_ns", "drift_ppb").row(0) == (
        None,
        None,
        None,
    )
    (finding,) = found.findings
    assert finding == (
        "Clocks whose offset to a is unknown: c. "
        "Their ranks share no synchronising collective with the reference, directly or through other hosts."
    )
    assert found.aligned(calls_of((2, 99, "all_reduce", 0, 10)))["aligned_start_ns"].to_list() == [None]


@pytest.mark.parametrize("family", ["broadcast", "reduce", "gather", "scatter", "unknown", "all_to_all"])
def test_kinds_that_need_not_wait_do_not_bound_clocks(family) -> None:
    """Calls of these kinds, and all-to-alls of unknown size, may not synchronise ranks, so they cannot align clocks."""
    found = clocks(calls_of(*every_10_us(20, 300, family=family)), TWO_HOSTS)

    assert found.per_host["offset_ns"].to_list() == [0, None]


def test_sends_bound_a_clock_on_one_side_and_answers_on_the_other() -> None:
    """A send starts before its receive ends, so only messages in both directions bound the offset on both sides."""
    there = [
        row
        for number in range(10)
        for row in (
            (0, number, "send", 10_000 * number, 10_000 * number + 10),
            (1, number, "recv", 10_000 * number, 10_000 * number + 900),
        )
    ]
    back = [
        row
        for number in range(10)
        for row in (
            (1, 100 + number, "send", 10_000 * number + 5_000, 10_000 * number + 5_010),
            (0, 100 + number, "recv", 10_000 * number + 5_000, 10_000 * number + 5_800),
        )
    ]

    one_way, both_ways = (
        clocks(calls_of(*rows), TWO_HOSTS).per_host.row(1, named=True) for rows in (there, there + back)
    )
    assert one_way["offset_ns"] is None
    assert abs(both_ways["offset_ns"]) <= both_ways["half_width_ns"] <= 2_000


def test_even_all_to_alls_count() -> None:
    """Without recorded splits, an all-to-all with equal total sizes is used, unless it is recorded as uneven."""
    even = calls_of(*every_10_us(20, 300, family="all_to_all")).with_columns(in_bytes=pl.lit(64), out_bytes=pl.lit(64))

    assert clocks(even, TWO_HOSTS).per_host["instance_count"].to_list() == [20, 20]
    split = even.with_columns(is_even=pl.lit(value=False))
    assert clocks(split, TWO_HOSTS).per_host["instance_count"].to_list() == [0, 0]


@pytest.mark.parametrize(("splits", "count"), [([1, 7], 20), ([8, 0], 0)])
def test_an_uneven_all_to_all_counts_if_every_rank_sends_to_every_rank(splits, count) -> None:
    """A rank waits for every rank that sends it at least one row of the tensor, but not for ranks that send nothing."""
    uneven = calls_of(*every_10_us(20, 300, family="all_to_all")).with_columns(
        is_even=pl.lit(value=False), in_splits=pl.lit(splits)
    )

    assert clocks(uneven, TWO_HOSTS).per_host["instance_count"].to_list() == [count, count]


def test_an_all_to_all_recorded_as_even_counts_without_sizes() -> None:
    """If the trace says that the split is even, the sizes need not be known."""
    even = calls_of(*every_10_us(20, 300, family="all_to_all")).with_columns(is_even=pl.lit(value=True))

    assert clocks(even, TWO_HOSTS).per_host["instance_count"].to_list() == [20, 20]


def test_calls_matched_by_their_times_do_not_count() -> None:
    """Matching by time assumes aligned clocks, so these matches cannot be used to align clocks."""
    guessed = calls_of(*every_10_us(20, 300)).with_columns(matched_by=pl.lit("time"))

    assert clocks(guessed, TWO_HOSTS).per_host["offset_ns"].to_list() == [0, None]


def test_a_host_that_sends_by_itself_starts_when_it_is_asked() -> None:
    """Gloo records a send only after sending, so a receive may end before the recorded start of its send."""
    rows = [
        row
        for number in range(10)
        for row in (
            (0, number, "send", 10_000 * number + 901, 10_000 * number + 950),
            (1, number, "recv", 10_000 * number + 1, 10_000 * number + 501),
        )
    ]
    calls = calls_of(*rows).with_columns(asked_ns=pl.col("start_ns") - 700, stream=pl.lit(None, pl.Int64))

    assert clocks(calls, {0: "a", 1: "a"}).findings == ()
    on_device = calls.with_columns(stream=pl.lit(7))
    assert "(10 times)" in clocks(on_device, {0: "a", 1: "a"}).findings[1]


@pytest.mark.slow
@pytest.mark.parametrize("job", ["dlrm_8rank", "ddp_gloo_4rank", "pipeline_gloo_4rank"])
def test_ranks_of_one_real_host_taken_for_several_hosts(job, real_traces) -> None:
    """The ranks share one clock, so every interval must contain 0, and the calls must not contradict each other."""
    trace = opened(real_traces / job)
    matching = match({rank: of_rank(rank_trace) for rank, rank_trace in trace.ranks.items()})
    found = clocks(matching.calls, {rank: f"host{rank}" for rank in trace.ranks})

    assert found.per_host["offset_ns"].null_count() == 0
    assert found.per_host.filter(pl.col("offset_ns").abs() > pl.col("half_width_ns")).is_empty()
    assert (found.dropped_count, found.findings) == (0, ())
    assert clocks(matching.calls, dict.fromkeys(trace.ranks, "host")).findings == ()


def test_whole_microseconds_widen_the_interval() -> None:
    """Older traces round start and duration to microseconds, so the true end may be up to 2 µs later than recorded."""
    rounded = calls_of(*every_10_us(20, 0))

    exact = rounded.with_columns(pl.col("start_ns", "end_ns") + 1)
    coarse, fine = (clocks(calls, TWO_HOSTS).per_host["half_width_ns"][1] for calls in (rounded, exact))
    assert coarse - fine == pytest.approx(2_000, abs=50)


@pytest.mark.parametrize("by_ns", [3_000_000, -3_000_000, 100_000_000_000])
def test_a_clock_that_jumps_has_one_line_before_and_one_after(by_ns) -> None:
    """A jump of a clock is reported with its size, and calls before and after the jump are aligned."""
    job = simulated_calls(
        CallsOptions(hosts=4, operations=120, clock_offset_ns=1_000_000, clock_drift_ppb=20_000, seed=5)
    )
    jumped = shifted_from(job, "host2", 0.5, by_ns)
    found = clocks(jumped.calls, jumped.hosts)

    assert found.jumps["host"].to_list() == ["host2"]
    assert found.jumps["forward_ns"][0] == pytest.approx(by_ns, abs=500_000)
    assert "The clock of host2 jumped" in found.findings[0]
    lines = found.per_host.filter(host="host2")
    assert len(lines) == 2
    true_before = job.true_correction_ns("host2", lines["offset_at_ns"][0], found.reference)
    true_after = job.true_correction_ns("host2", lines["offset_at_ns"][1] - by_ns, found.reference) - by_ns
    for row, truth in zip(lines.iter_rows(named=True), (true_before, true_after), strict=True):
        assert abs(row["offset_ns"] - truth) <= row["half_width_ns"]
    assert with_truth(job, found).unknown_count == 0


def _jumped(seed: int) -> tuple[Clocks, str, int]:
    """Return the estimated clocks of a job, the host whose true clock jumps by 0.2 to 3 ms, and the jump in ns."""
    dice = np.random.default_rng(1_000 + seed)
    job = simulated_calls(
        CallsOptions(
            hosts=int(dice.choice([2, 4, 8])),
            operations=int(dice.choice([80, 150])),
            topology=("world", "grid", "chain")[int(dice.integers(3))],
            clock_offset_ns=1_000_000,
            clock_drift_ppb=int(dice.choice([0, 20_000, 100_000])),
            missing_fraction=float(dice.choice([0, 0.02])),
            seed=seed,
        )
    )
    by_ns = int(dice.choice([200_000, 500_000, 1_000_000, 3_000_000]) * dice.choice([-1, 1]))
    host = f"host{int(dice.integers(1, len(set(job.hosts.values()))))}"
    return clocks(*shifted_from(job, host, float(dice.uniform(0.2, 0.8)), by_ns)[:2]), host, by_ns


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 40))])
def test_small_jumps_are_found_and_no_others(seed) -> None:
    """Only the host whose clock jumps is reported, although other clocks are compared through that host."""
    found, host, by_ns = _jumped(seed)

    assert found.jumps["host"].to_list() == [host]
    assert found.jumps["forward_ns"][0] == pytest.approx(by_ns, abs=120_000)


def test_a_jump_that_the_reference_did_not_record() -> None:
    """The reference host records only after host3's clock jumps, but host3's calls with other hosts show the jump."""
    job = simulated_calls(CallsOptions(hosts=8, operations=150, topology="grid", late_host=0, seed=1))
    found = clocks(*shifted_from(job, "host3", 0.15, 1_000_000_000)[:2])

    assert found.jumps["host"].to_list() == ["host3"]
    assert found.per_host["offset_ns"].null_count() == 0


def test_a_wrong_match_is_left_out() -> None:
    """One of 40 operations is matched with a later call of rank 1; this wrong match is found and dropped."""
    rows = every_10_us(40, 300)
    rows[41] = (1, 20, "all_reduce", 10_000 * 23 + 300, 10_000 * 23 + 1_300)
    found = clocks(calls_of(*rows), TWO_HOSTS)

    assert found.dropped_count == 1
    assert found.per_host["offset_ns"].to_list() == [0, -300]
    assert "One call contradicts what other calls show about the clocks" in found.findings[0]


def test_a_rank_recorded_twice_counts_once() -> None:
    """If an operation has several rows of one rank, they count as one call from the first start to the last end."""
    rows = [*every_10_us(20, 300), (1, 3, "all_reduce", 32_000, 32_100)]

    assert clocks(calls_of(*rows), TWO_HOSTS).dropped_count == 0


def test_no_calls() -> None:
    """Without calls, all clocks except the reference are unknown."""
    found = clocks(calls_of(), TWO_HOSTS)

    assert found.per_host["offset_ns"].to_list() == [0, None]
    assert found.closure_error_ns is None


def test_corrections_are_those_of_calls() -> None:
    """`corrections` returns the nanoseconds that `aligned` adds to the times of the rank's calls."""
    job = simulated_calls(CallsOptions(hosts=2, operations=30))
    found = clocks(job.calls, job.hosts)
    of_rank = job.calls.filter(rank=3)
    aligned = found.aligned(of_rank)

    added = aligned["aligned_start_ns"] - aligned["start_ns"]
    assert found.corrections(3, of_rank["start_ns"].to_numpy())["offset_ns"].to_list() == added.to_list()


def test_cycles_of_hosts_close() -> None:
    """In a grid of hosts, the estimated clock differences around each cycle of hosts add up to less than 50 µs."""
    job = simulated_calls(CallsOptions(hosts=8, operations=150, topology="grid"))

    closure_error_ns = clocks(job.calls, job.hosts).closure_error_ns
    assert closure_error_ns is not None
    assert 0 <= closure_error_ns < 50_000
    assert np.isfinite(closure_error_ns)
