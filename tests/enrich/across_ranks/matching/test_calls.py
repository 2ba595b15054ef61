"""Tests of the communication calls of a rank, the input of matching across ranks."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl

from holotrace.enrich.across_ranks.matching.calls import COLUMNS, OfRank, RankFacts, calls, of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.testing.builder import TraceBuilder

_FACTS = RankFacts("node-1", 64, (process_group(range(0, 64, 8), "mesh_dp"),))


def _only_rank(builder: TraceBuilder):
    return builder.build().ranks[0]


def test_a_kernel_with_args_gives_every_column() -> None:
    """Bytes are the element count times the element size; the window is the step of the kernel's launch."""
    rank_trace = _only_rank(
        TraceBuilder()
        .annotation("ProfilerStep#7", start_us=0, duration_us=10)
        .collective(
            "_allgather_base",
            elements=100,
            start_us=20,
            duration_us=5,
            launch_us=2,
            sequence=9,
            args={"Out msg nelems": 200, "Comms Id": "77", "Is asynchronized op": True},
        )
    )

    (row,) = calls(rank_trace).drop("content").to_dicts()

    assert row == {
        "event_index": 2,
        "family": "all_gather",
        "dtype": "float32",
        "start_ns": 20_000,
        "end_ns": 25_000,
        "asked_ns": 2_000,
        "window": 7,
        "group": process_group([0, 1], "default_pg").number,
        "sequence": 9,
        "communication_id": 77,
        "in_bytes": 400,
        "out_bytes": 800,
        "is_even": None,
        "in_splits": None,
        "partners": None,
        "sent_bytes": None,
        "peer": None,
        "group_peer": None,
        "tag": None,
        "stream": 20,
        "is_asynchronous": True,
    }


def test_the_facts_name_the_host_and_all_groups() -> None:
    """Groups come from the header and from the calls; if a trace names no host, its file path is used instead."""
    builder = TraceBuilder().collective(group_ranks=(0, 4), start_us=1, duration_us=1)
    groups = [{"pg_desc": "mesh_dp", "pg_size": 2, "ranks": [0, 1]}]
    info = {"rank": 0, "world_size": 8, "pg_config": groups}
    named = builder.header(host_name="node-3", distributedInfo=info).build().ranks[0]
    unnamed = _only_rank(TraceBuilder().kernel("gemm", start_us=0, duration_us=1))

    facts = of_rank(named).facts

    assert (facts.host, facts.world_size) == ("node-3", 8)
    assert facts.groups == (process_group([0, 1], "mesh_dp"), process_group([0, 4], "default_pg"))
    assert of_rank(unnamed).facts.host == unnamed.source
    assert of_rank(unnamed).calls.schema == of_rank(named).calls.schema == pl.Schema(COLUMNS)


def test_content_contains_the_size_only_where_all_ranks_must_agree_on_it() -> None:
    """For calls of two sizes, all-reduce and all-gather have two values of `content`, but all-to-all has one."""
    builder = TraceBuilder()
    for collective in ("allreduce", "_allgather_base", "all_to_allv"):
        for elements in (8, 16):
            builder.collective(collective, elements=elements, start_us=elements, duration_us=1)
    distinct = calls(_only_rank(builder)).group_by("family").agg(content_count=pl.col("content").n_unique())

    assert dict(distinct.iter_rows()) == {"all_reduce": 2, "all_gather": 2, "all_to_all": 1}


def test_an_uneven_all_to_all_sends_what_its_split_gives_to_others() -> None:
    """The second rank of the group keeps 2 of its 8 rows and sends 6 to the first rank."""
    rank_trace = (
        TraceBuilder()
        .rank(4)
        .collective(
            "all_to_allv",
            elements=80,
            group_ranks=(0, 4),
            start_us=1,
            duration_us=1,
            args={"In split size": "[6, 2]", "Out split size": "[1, 2]"},
        )
        .collective("all_to_allv", group_ranks=(0, 4), start_us=5, duration_us=1, args={"In split size": "[]"})
        .collective("all_to_allv", group_ranks=(0, 4), start_us=9, duration_us=1, args={"In split size": "[1, 2, ...]"})
        .build()
        .ranks[4]
    )

    assert calls(rank_trace)["sent_bytes"].to_list() == [80 * 4 * 6 // 8, None, None]


def test_sends_and_receives_know_their_peer() -> None:
    """The args name the destination of a send and the source of a receive, as ranks of the job."""
    rank_trace = _only_rank(
        TraceBuilder()
        .collective("send", start_us=0, duration_us=1, args={"Dst Rank": 4})
        .collective("recv", start_us=2, duration_us=1, args={"Src Rank": 5})
        .collective("recv", start_us=4, duration_us=1)
    )

    assert calls(rank_trace).select("family", "peer").rows() == [("send", 4), ("recv", 5), ("recv", None)]


def test_thirty_thousand_calls_travel_in_one_megabyte() -> None:
    """30,000 calls with random times, durations and ids pickle to less than 1 MB and unpickle unchanged."""
    dice, count = np.random.default_rng(0), 30_000
    starts = np.cumsum(dice.exponential(200_000, count).astype(np.int64) + 20_000) + 1_700_000_000_000_000_000
    sizes = dice.choice([4_096, 98_304, 1 << 20, 1 << 22], count)
    known = {
        "event_index": np.cumsum(dice.integers(1, 60, count)),
        "family": np.array(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])[dice.integers(0, 4, count)],
        "dtype": np.array(["bfloat16", "float32"])[dice.integers(0, 2, count)],
        "start_ns": starts,
        "end_ns": starts + dice.exponential(100_000, count).astype(np.int64),
        "asked_ns": starts - dice.exponential(400_000, count).astype(np.int64),
        "window": np.arange(count) // 300,
        "group": dice.choice([2**63 + 5, 2**62 + 7, 2**61 + 9], count),
        "sequence": np.arange(count) // 3,
        "communication_id": dice.integers(1, 2**62, count),
        "content": sizes * 987_654_321,
        "in_bytes": sizes,
        "out_bytes": sizes,
        "in_splits": [list(dice.integers(1_500, 2_600, 8)) if number % 4 == 0 else None for number in range(count)],
        "stream": dice.choice([20, 24], count),
    }
    missing = [pl.lit(None).alias(name) for name in COLUMNS.keys() - known.keys()]
    sent = OfRank(
        pl.DataFrame(known).with_columns(missing).select(pl.col(name).cast(kind) for name, kind in COLUMNS.items()),
        _FACTS,
    )

    content = pickle.dumps(sent)

    assert len(content) < 1_000_000
    back = pickle.loads(content)  # noqa: S301 -- ours
    assert back.calls.equals(sent.calls)
    assert back.facts == _FACTS
