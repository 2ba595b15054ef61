"""Tests of the simulated communication calls of a job."""

from __future__ import annotations

import polars as pl

from holotrace.testing.job_calls import CallsOptions, simulated_calls

EXACT = CallsOptions(hosts=4, operations=40, clock_offset_ns=0, clock_drift_ppb=0)


def test_the_same_options_give_the_same_calls() -> None:
    """All random values depend only on the seed."""
    assert simulated_calls(EXACT).calls.equals(simulated_calls(EXACT).calls)


def test_nobody_leaves_an_all_reduce_before_all_have_entered() -> None:
    """In true time, the first rank leaves an all-reduce at least `shortest_ns` after the last rank enters it."""
    job = simulated_calls(EXACT)
    lengths = (
        job.calls.filter(pl.col("family").is_in(["all_reduce", "reduce_scatter"]))
        .group_by("instance")
        .agg((pl.col("end_ns").min() - pl.col("start_ns").max()).alias("length"), pl.len().alias("ranks"))
        .filter(pl.col("ranks") > 1)
    )

    assert lengths["length"].to_numpy().min() >= job.shortest_ns


def test_the_root_of_a_broadcast_does_not_wait() -> None:
    """Some broadcasts end on the root before another rank enters them."""
    broadcasts = simulated_calls(EXACT).calls.filter(family="broadcast").group_by("instance")
    ends = broadcasts.agg((pl.col("end_ns").min() - pl.col("start_ns").max()).alias("length"))

    assert (ends["length"] < 0).any()


def test_the_true_correction_maps_one_clock_to_another() -> None:
    """A time on one clock plus the true correction is the time on the other clock, except for rounding."""
    job = simulated_calls(CallsOptions(hosts=2, operations=20, seed=4))
    true_ns = 1_795_209_480_000_000_000
    shown, other = (job.clocks[host].shows(true_ns) for host in ("host1", "host0"))

    assert abs(shown + job.true_correction_ns("host1", shown, "host0") - other) < 3


def test_a_late_host_and_missing_calls() -> None:
    """The late host's recording begins later, so it has about two thirds as many calls as the other recording."""
    options = CallsOptions(hosts=2, ranks_per_host=1, operations=300, late_host=1, missing_fraction=0.1)
    counts = simulated_calls(options).calls["rank"].value_counts(sort=True)["count"].to_list()

    assert 0.55 < counts[1] / counts[0] < 0.75
