"""Tests of the latency fitted for each group, and of finding small calls that could be merged."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.collectives.latency import mergeable, per_fit

_LATENCY_NS = 10_000
_NS_PER_BYTE = 0.1
_SIZES = (1_000, 1_000_000, 10_000_000)


def _instances(sizes: list[int], *, pause_ns: int) -> pl.DataFrame:
    """Return successive all-reduces with a latency of 10 µs and a bandwidth of 10 GB/s."""
    rows, now = [], 0
    for operation, size in enumerate(sizes):
        transfer = round(_LATENCY_NS + size * _NS_PER_BYTE)
        rows.append((operation, size, transfer, now, now, now + transfer))
        now += transfer + pause_ns
    columns = ["operation", "bus_bytes", "transfer_ns", "first_start_ns", "last_start_ns", "last_end_ns"]
    same = {"process_group": "world", "group_size": 4, "collective": "all_reduce", "dtype": "float32", "step": 1}
    return pl.DataFrame(rows, columns, orient="row").with_columns(
        pl.lit(value, pl.String if isinstance(value, str) else pl.Int64).alias(name) for name, value in same.items()
    )


def test_each_group_has_its_latency_and_bandwidth():
    """The fit to generated calls of three sizes returns their true latency (10 µs) and bandwidth (10 GB/s)."""
    fits = per_fit(_instances([*_SIZES] * 5, pause_ns=0))

    chosen = fits.select("process_group", "instance_count", "size_count", "latency_ns", "bus_bytes_per_s")
    assert [tuple(round(v) if isinstance(v, float) else v for v in row) for row in chosen.rows()] == [
        ("world", 15, 3, _LATENCY_NS, 10_000_000_000)
    ]


def test_small_calls_in_a_row_could_be_one():
    """Of four small calls without pauses, three could be merged into the first, which saves 10 µs per merged call."""
    instances = _instances([*_SIZES, 1_000, 1_000, 1_000, 1_000], pause_ns=0)

    series = mergeable(instances, per_fit(instances))

    assert series["is_mergeable"].to_list() == [False, False, False, False, True, True, True]
    assert series["saved_ns"].to_list() == [0, 0, 0, 0, *[_LATENCY_NS] * 3]


def test_merging_also_saves_the_pauses_between_calls() -> None:
    """With pauses of 900 ns, merging a small call saves its 10 µs of latency and the pause before it."""
    instances = _instances([*_SIZES, 1_000, 1_000, 1_000, 1_000], pause_ns=900)

    assert mergeable(instances, per_fit(instances))["saved_ns"].to_list() == [0, 0, 0, 0, *[_LATENCY_NS + 900] * 3]


def test_calls_with_pauses_longer_than_the_latency_stay_apart():
    """Small calls with pauses of 20 µs are not mergeable."""
    instances = _instances([*_SIZES, 1_000, 1_000], pause_ns=20_000)

    assert not mergeable(instances, per_fit(instances))["is_mergeable"].any()


def test_large_calls_of_one_size_are_not_mergeable():
    """If all calls transfer 1 MB, no latency can be fitted, so the table of mergeable calls is empty."""
    instances = _instances([1_000_000] * 5, pause_ns=0)

    assert mergeable(instances, per_fit(instances)).is_empty()


def test_tiny_calls_of_one_size_could_be_one():
    """All the time of an 8-byte transfer is latency, even without a fit, so merging five calls saves four latencies."""
    instances = _instances([8] * 5, pause_ns=0)

    series = mergeable(instances, per_fit(instances))

    assert series["is_mergeable"].to_list() == [False, True, True, True, True]
    assert series["saved_ns"].sum() == 4 * (_LATENCY_NS + 1)


def test_times_that_do_not_grow_with_the_size_have_no_bandwidth() -> None:
    """If messages of three sizes all take 10 µs, the fitted bandwidth is null, and all the calls are mergeable."""
    instances = _instances([*_SIZES, 1_000], pause_ns=0).with_columns(pl.lit(_LATENCY_NS).alias("transfer_ns"))
    fits = per_fit(instances)

    assert fits.select("latency_ns", "bus_bytes_per_s", "high_bytes_per_s").rows() == [(_LATENCY_NS, None, None)]
    assert mergeable(instances, fits)["is_mergeable"].to_list() == [False, True, True, True]
