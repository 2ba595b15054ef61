"""Tests of the collectives analysis: waiting, transfer time, bandwidth and verdict."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.collectives.compute import Collectives, collectives
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened

TRACES = Path(__file__).parents[2] / "reference" / "traces"
MIB = 1 << 20
ELEMENTS = MIB // 4


def one_host(count: int = 3, *, late_us: float = 300, transfer_us: float = 100, ranks: int = 2) -> TraceBuilder:
    """Return a job with a 1 MiB all-reduce every millisecond; the last rank arrives `late_us` after the others."""
    builder = TraceBuilder()
    for rank in range(ranks):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 1_000 * count)
        late = late_us if rank == ranks - 1 else 0
        for number in range(count):
            builder.collective(
                elements=ELEMENTS,
                group_ranks=range(ranks),
                start_us=1_000 * number + late,
                duration_us=late_us - late + transfer_us,
                launch_us=1_000 * number,
            )
    return builder


def test_bandwidths_are_those_of_nccl_tests() -> None:
    """1 MiB in 100 µs is 10.49 GB/s; for an all-reduce on 4 ranks, the bus bandwidth is 1.5 times as high."""
    row = collectives(one_host(ranks=4).build()).per_collective.row(0, named=True)

    assert (row["message_bytes"], row["median_transfer_ns"]) == (MIB, 100_000)
    assert row["algorithm_bytes_per_s"] == pytest.approx(MIB / 100e-6)
    assert row["bus_bytes_per_s"] == pytest.approx(1.5 * MIB / 100e-6)


def test_a_late_rank_makes_collectives_skew_bound() -> None:
    """Rank 0 waits 900 µs for rank 1, then both transfer for 100 µs, so 900 of 1,100 µs are waiting time."""
    row = collectives(one_host(late_us=900).build()).per_collective.row(0, named=True)

    assert (row["instance_count"], row["wait_ns"], row["collective_ns"]) == (3, 3 * 900_000, 3 * 1_100_000)
    assert row["wait_fraction"] == pytest.approx(900 / 1_100)
    assert (row["verdict"], row["late_rank"], row["late_fraction"]) == ("skew-bound", 1, 1.0)


@pytest.mark.parametrize(
    ("late_us", "count", "verdict"),
    [(10, 3, "transfer-bound"), (300, 3, "mixed"), (900, 3, "skew-bound"), (900, 2, "inconclusive")],
)
def test_the_share_of_waiting_gives_the_verdict(late_us: float, count: int, verdict: str) -> None:
    """The verdict changes at 25 % and at 75 % of waiting time; two collectives are too few for a verdict."""
    assert collectives(one_host(count, late_us=late_us).build()).per_collective["verdict"].to_list() == [verdict]


def test_each_call_has_its_lateness_and_wait() -> None:
    """Rank 1 arrives 300 µs late at each of two collectives, so rank 0 waits 300 µs in each."""
    calls = collectives(one_host(2).build()).per_call

    chosen = calls.select(
        "instance", "step", "rank", "lateness_ns", "wait_ns", "is_last", "transfer_ns", "transfer_basis"
    )
    assert chosen.rows() == [
        (0, 1, 0, 0, 300_000, False, 100_000, "one clock"),
        (0, 1, 1, 300_000, 0, True, 100_000, "one clock"),
        (1, 1, 0, 0, 300_000, False, 100_000, "one clock"),
        (1, 1, 1, 300_000, 0, True, 100_000, "one clock"),
    ]


def test_each_rank_has_what_it_waits_and_what_others_wait_for_it() -> None:
    """In three collectives, ranks 0 and 1 each wait 900 µs in total for rank 2; a transfer has 4/3 MiB of bus bytes."""
    result = collectives(one_host(ranks=3).build())

    chosen = result.per_rank.select(
        "rank", "host", "wait_ns", "last_count", "caused_wait_ns", "collective_ns", "bus_bytes"
    )
    size = 3 * round(MIB * 4 / 3)
    assert chosen.rows() == [
        (0, "node-1", 900_000, 0, 0, 1_200_000, size),
        (1, "node-1", 900_000, 0, 0, 1_200_000, size),
        (2, "node-1", 0, 3, 1_800_000, 300_000, size),
    ]
    assert result.per_rank["bus_bytes_per_s"].to_list() == pytest.approx([size / 300e-6] * 3)


def test_overlapping_collectives_share_their_time() -> None:
    """Two 100 µs transfers run at the same time on two streams, which doubles the bus bandwidth of the rank."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1")
        for stream in (20, 21):
            builder.collective(
                elements=ELEMENTS, group=str(stream), stream=stream, start_us=0, duration_us=100, sequence=stream
            )

    ranks = collectives(builder.build()).per_rank

    assert ranks["collective_ns"].to_list() == [100_000, 100_000]
    assert ranks["bus_bytes_per_s"].to_list() == pytest.approx([2 * MIB / 100e-6] * 2)


def test_a_job_without_collectives_is_empty() -> None:
    """If no rank communicates, all tables are empty."""
    result = collectives(TraceBuilder().kernel("gemm", start_us=0, duration_us=5).build())

    assert result.per_collective.is_empty()
    assert result.per_call.is_empty()
    assert result.per_rank.is_empty()


def test_one_rank_alone_has_durations_but_no_waiting() -> None:
    """With one rank, the waiting is unknown, the verdict is inconclusive, and the transfer time is an upper bound."""
    result = collectives(one_host().build().select([0]))

    row = result.per_collective.row(0, named=True)
    assert (row["verdict"], row["wait_ns"], row["median_transfer_ns"]) == ("inconclusive", None, 400_000)
    assert result.per_call["transfer_basis"].unique().to_list() == ["shortest duration"]


def test_steps_choose_collectives() -> None:
    """`steps=[2]` keeps only the collectives of step 2; an unknown step raises an error that lists the known steps."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 100).step(2, 100, 100)
        builder.collective(start_us=10, duration_us=20, launch_us=5).collective(
            start_us=110, duration_us=40, launch_us=105
        )
    trace = builder.build()

    assert collectives(trace, steps=[2]).per_call["duration_ns"].to_list() == [40_000, 40_000]
    with pytest.raises(InvalidOptionError, match="1, 2"):
        collectives(trace, steps=[3])


def test_sends_are_pairs() -> None:
    """Rank 0 sends 1 MiB to rank 1 twice; each time, rank 1 waits 200 µs, then the transfer takes 50 µs."""
    builder = TraceBuilder()
    for number in (1, 2):
        ends = {"Src Rank": 0, "Dst Rank": 1}
        start = 1_000 * number
        builder.rank(0).header(host_name="node-1").collective(
            "send", elements=ELEMENTS, start_us=start + 200, duration_us=50, sequence=number, args=ends
        )
        builder.rank(1).header(host_name="node-1").collective(
            "recv", elements=ELEMENTS, start_us=start, duration_us=250, sequence=number, args=ends
        )

    result = collectives(builder.build())

    pair = result.per_pair.row(0, named=True)
    assert (pair["source_rank"], pair["destination_rank"], pair["instance_count"], pair["bytes"]) == (0, 1, 2, 2 * MIB)
    assert pair["median_bytes_per_s"] == pytest.approx(MIB / 50e-6)
    assert result.per_call.filter(collective="recv")["wait_ns"].to_list() == [200_000, 200_000]


@pytest.fixture(scope="module")
def dlrm() -> Collectives:
    """Return the result for one step of DLRM on 8 GPUs."""
    return collectives(opened(TRACES / "dlrm_8rank"))


def test_the_transfers_of_a_real_job_are_microseconds_and_its_waits_milliseconds(dlrm: Collectives) -> None:
    """In the first collective of DLRM, one rank waits 7.6 ms, but the transfer takes at most 10 µs."""
    first = dlrm.per_call.filter(instance=0)

    assert first.height == 8
    assert first["transfer_ns"].unique().to_list() == [10_000]
    assert first["transfer_basis"].unique().to_list() == ["shortest duration"]
    assert first["wait_ns"].max() == 7_625_000


def test_the_late_rank_of_a_real_job() -> None:
    """In the recorded DDP job, rank 3 sleeps in every step and causes most of the waiting."""
    result = collectives(opened(TRACES / "ddp_gloo_4rank"))

    caused = dict(result.per_rank.select("rank", "caused_wait_ns").iter_rows())
    assert caused[3] / sum(caused.values()) > 0.8
    assert "most of it for rank 3" in result.answer
    assert result.coverage.filter(pl.col("matched_by").is_null()).is_empty()


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables of a synthetic job on two hosts equal their golden copies."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, ranks_per_host=2)
    result = collectives(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_collective, "collectives/synthetic_job.per_collective")
    golden.check(result.per_call, "collectives/synthetic_job.per_call")
    golden.check(result.per_rank, "collectives/synthetic_job.per_rank")
    golden.check(result.per_fit, "collectives/synthetic_job.per_fit")
    golden.check(result.per_host, "collectives/synthetic_job.per_host")
    golden.check(result.coverage, "collectives/synthetic_job.coverage")
