"""Which rank the others wait for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import holotrace
from holotrace import open_trace
from holotrace.analyses.stragglers.compute import stragglers
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def two_ranks(**rank_one: object) -> TraceBuilder:
    """Rank 0 is in an all-reduce for 50 µs and in another for 30; rank 1 for 10 and for 40, on a clock far off."""
    builder = TraceBuilder()
    builder.collective(start_us=100, duration_us=50).collective(start_us=200, duration_us=30)
    return (
        builder.rank(1)
        .collective(start_us=9_140, duration_us=10, **rank_one)
        .collective(start_us=9_190, duration_us=40, **rank_one)
    )


def test_who_is_inside_for_the_shortest_time_came_last() -> None:
    """Rank 0 waits 40 µs in the first, rank 1 waits 10 µs in the second; what each waited was for the other."""
    result = stragglers(two_ranks().build())

    assert result.per_rank.to_dicts() == [
        {
            "rank": 0,
            "collective_count": 2,
            "wait_ns": 40_000,
            "mean_wait_ns": 20_000.0,
            "mean_skew_ns": 5_000.0,
            "last_count": 1,
            "last_fraction": 0.5,
            "caused_wait_ns": 10_000,
            "caused_fraction": 0.2,
            "is_straggler": False,
            "uncompared_ns": 0,
            "is_cause": False,
        },
        {
            "rank": 1,
            "collective_count": 2,
            "wait_ns": 10_000,
            "mean_wait_ns": 5_000.0,
            "mean_skew_ns": 20_000.0,
            "last_count": 1,
            "last_fraction": 0.5,
            "caused_wait_ns": 40_000,
            "caused_fraction": 0.8,
            "is_straggler": True,
            "uncompared_ns": 0,
            "is_cause": True,
        },
    ]
    assert result.findings == (
        (
            "rank 1 is late: the others waited 40 µs for it (80.0 % of all waiting in its collectives); "
            "it came last in 1 of 2 collectives"
        ),
    )
    assert result.candidates(2) == [1, 0]


def test_streams_and_kernel_names_need_not_agree() -> None:
    """Group and sequence number identify the operation; streams differ between ranks."""
    assert stragglers(two_ranks(stream=33).build()).per_rank.equals(stragglers(two_ranks().build()).per_rank)


def test_ranks_that_caused_no_waiting_are_not_candidates() -> None:
    """Rank 1 is last both times, so asking for two ranks gives one."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)
    assert stragglers(builder.build()).candidates(2) == [1]


def test_equal_durations_blame_nobody() -> None:
    """No rank comes last alone, and no rank waits."""
    builder = TraceBuilder().collective(start_us=0, duration_us=9).rank(1).collective(start_us=0, duration_us=9)
    table = stragglers(builder.build()).per_rank
    assert table.select("wait_ns", "last_count", "caused_fraction", "is_straggler").rows() == [(0, 0, None, False)] * 2


def test_a_rank_that_waited_before_it_was_late_is_not_the_straggler() -> None:
    """Rank 1 is late; rank 0 waits for it in their pair, and so comes late to its pair with rank 2."""
    pair, other = {"group_ranks": (0, 1), "group": "1"}, {"group_ranks": (0, 2), "group": "2"}
    builder = TraceBuilder().collective(start_us=0, duration_us=100, **pair)
    builder.collective(start_us=100, duration_us=5, **other)
    builder.rank(1).collective(start_us=95, duration_us=5, **pair)
    builder.rank(2).collective(start_us=0, duration_us=105, **other)
    result = stragglers(builder.build())
    assert result.candidates(3) == [1, 0]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [1]


def test_a_rank_that_waits_where_it_cannot_be_compared_may_not_be_the_cause() -> None:
    """Rank 1 receives for 45 µs before it comes to the all-reduce 45 µs late: the sender may be the slow one."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50)
    builder.rank(1).collective("recv", start_us=0, duration_us=45, group="1").collective(start_us=45, duration_us=5)

    result = stragglers(builder.build())

    columns = ("rank", "is_straggler", "uncompared_ns", "is_cause")
    assert result.per_rank.select(columns).rows() == [(0, False, 0, False), (1, True, 45_000, False)]
    assert result.findings == (
        (
            "rank 1 arrives last: the others waited 45 µs for it (100.0 % of all waiting in its collectives); it came "
            "last in 1 of 1 collectives; it also waits itself, 0 ns in these and up to 45 µs in other communication, so "
            "another rank may be the cause"
        ),
    )


def test_the_slow_ranks_of_real_jobs(real_traces) -> None:
    """Rank 3 of the DDP job sleeps; rank 0 of the pipeline waits for gradients of rank 2, which sleeps."""
    known = stragglers(open_trace(real_traces / "ddp_gloo_4rank", cache=False)).per_rank
    assert known.filter("is_cause")["rank"].to_list() == [3]
    unknown = stragglers(open_trace(real_traces / "pipeline_gloo_4rank", cache=False))
    assert not unknown.per_rank["is_cause"].any()
    assert unknown.findings[0].startswith("rank 0 arrives last: ")


def test_groups_of_the_same_name_are_distinguished_by_their_ranks() -> None:
    """Ranks 0 and 1 call different groups "1"; nothing of them is compared."""
    builder = TraceBuilder().collective(start_us=0, duration_us=5, group="1", group_ranks=(0, 2))
    builder.rank(1).collective(start_us=0, duration_us=50, group="1", group_ranks=(1, 3))
    result = stragglers(builder.build())
    assert result.per_rank.is_empty()
    assert result.findings == ("no collective was recorded on more than one rank (2 of 2 ranks have some)",)


def test_sends_and_receives_are_left_out() -> None:
    """Two ranks exchange something; the others of their group take no part."""
    builder = TraceBuilder().collective("send", start_us=0, duration_us=5)
    builder.rank(1).collective("send", start_us=0, duration_us=50)
    assert stragglers(builder.build()).per_rank.is_empty()


@pytest.mark.parametrize(
    "name", ["ncclKernel_AllReduce_RING_LL_Sum_float(int)", "ncclDevKernel_Generic_4(int)", "hcom_allReduce__042_1_1"]
)
def test_kernels_without_numbers_are_matched_by_order(name) -> None:
    """NCCL before 2.20, RCCL and HCCL: the n-th of a kind in a step is the same operation on all ranks."""
    category = {"category": "collective_comm"} if name.startswith("hcom") else {}
    builder = TraceBuilder()
    for rank, durations in enumerate([(50, 50), (10, 20)]):
        builder.rank(rank).step(0, 0, 1_000)
        for place, duration in enumerate(durations):
            builder.kernel(name, start_us=100 + 100 * place, duration_us=duration, stream=0, **category)
    result = stragglers(builder.build())
    assert result.per_rank["wait_ns"].to_list() == [70_000, 0]
    assert result.per_rank["is_straggler"].to_list() == [False, True]
    assert result.findings[1:] == ("4 of 4 collectives were matched by kind and order: they have no sequence number",)


def test_communication_ids_are_better_than_order() -> None:
    """Rank 1 has missed the first operation; the ids show that its only one is the second of rank 0."""
    args = {"Seq": None, "Process Group Ranks": None}
    builder = TraceBuilder().collective(start_us=0, duration_us=5, args={**args, "Comms Id": 11})
    builder.collective(start_us=50, duration_us=30, args={**args, "Comms Id": 12})
    builder.rank(1).collective(start_us=60, duration_us=10, args={**args, "Comms Id": 12})
    table = stragglers(builder.build()).per_rank
    assert table.select("rank", "collective_count", "wait_ns").rows() == [(0, 1, 20_000), (1, 1, 0)]


def test_kinds_of_which_ranks_have_different_numbers_are_left_out() -> None:
    """Two all-reduces without numbers on rank 0, one on rank 1: the match is unknown."""
    name = "ncclKernel_AllReduce_RING_LL_Sum_float(int)"
    builder = TraceBuilder().kernel(name, start_us=0, duration_us=5).kernel(name, start_us=10, duration_us=5)
    builder.rank(1).kernel(name, start_us=0, duration_us=5)
    assert stragglers(builder.build()).per_rank.is_empty()


def test_one_rank_has_nobody_to_wait_for() -> None:
    """An empty result that says why."""
    result = stragglers(TraceBuilder().collective(start_us=0, duration_us=5).build())
    assert (result.per_rank.height, result.per_step.height) == (0, 0)
    assert result.findings == ("only rank 0 was recorded: open all ranks of the job to compare their waiting",)


def test_a_job_without_collectives_says_so() -> None:
    """Two ranks that only compute."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).rank(1).kernel("gemm", start_us=0, duration_us=1)
    assert stragglers(builder.build()).findings == ("no rank has collectives, so no rank waits in one",)


def stepping(annotation: str | None = None) -> TraceBuilder:
    """Two parts of 100 µs on two ranks: rank 1 is late in the first, rank 0 in the second."""
    builder = TraceBuilder()
    for rank, durations in enumerate([(30, 5), (10, 45)]):
        builder.rank(rank)
        for part, duration in enumerate(durations):
            if annotation:
                builder.annotation(annotation, start_us=100 * part, duration_us=100)
            else:
                builder.step(part + 7, 100 * part, 100)
            builder.collective(start_us=100 * part + 120, duration_us=duration, launch_us=100 * part + 50)
    return builder


def test_a_collective_belongs_to_the_step_that_asked_for_it() -> None:
    """It runs after the step has ended."""
    table = stragglers(stepping().build()).per_step
    assert table.select("step", "rank", "wait_ns", "last_count").rows() == [
        (7, 0, 20_000, 0),
        (7, 1, 0, 1),
        (8, 0, 0, 1),
        (8, 1, 40_000, 0),
    ]


def test_steps_can_be_chosen() -> None:
    """Step 7 alone blames rank 1, step 8 alone rank 0."""
    trace = stepping().build()
    assert stragglers(trace, steps=[7]).candidates(2) == [1]
    assert stragglers(trace, steps=[8]).candidates(2) == [0]


def test_any_annotation_can_stand_in_for_steps() -> None:
    """Its ranges are numbered from 0."""
    trace = stepping("microbatch").build()
    assert stragglers(trace, annotation="microbatch", steps=[1]).candidates(2) == [0]


def test_without_steps_the_whole_trace_is_one() -> None:
    """Number 0."""
    assert stragglers(two_ranks().build()).per_step["step"].to_list() == [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": [3]}, "there is no step 3 in this trace; its steps are: 7, 8"),
        ({"steps": []}, "no step was given; its steps are: 7, 8"),
        (
            {"annotation": "x"},
            "there is no annotation 'x' in this trace; its annotations are: ProfilerStep#7, ProfilerStep#8",
        ),
    ],
)
def test_an_unknown_value_is_an_error_that_lists_the_known_ones(options, message) -> None:
    """A step or an annotation that no rank has."""
    with pytest.raises(InvalidOptionError, match=message):
        stragglers(stepping().build(), **options)


def test_gloo_on_the_host_is_compared_by_its_annotations() -> None:
    """Four ranks of a recorded CPU job; rank 3 sleeps 20 ms in every step."""
    result = stragglers(open_trace(ROOT / "examples" / "ddp_gloo_4rank", cache=False))
    assert result.candidates(1) == [3]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [3]


def test_the_planted_rank_of_eight_is_found(tmp_path) -> None:
    """Waits equal the truth to the drift of the clocks, and so does who came last."""
    truth = write_job(tmp_path, ranks=8, steps=2, layers=2, straggler_rank=5)
    table = stragglers(open_trace(tmp_path, cache=False)).per_rank
    assert table.filter("is_straggler")["rank"].to_list() == [5]
    assert table["wait_ns"].to_list() == pytest.approx([rank.collective_wait_ns for rank in truth.ranks], abs=200)
    last = Counter(each.last_to_arrive for each in truth.collectives)
    assert table["last_count"].to_list() == [last[rank] for rank in range(8)]


@pytest.mark.slow
def test_the_planted_rank_of_many_is_found(tmp_path) -> None:
    """512 ranks on 128 hosts whose clocks disagree."""
    write_job(tmp_path, ranks=512, steps=1, layers=1, straggler_rank=300)
    result = stragglers(open_trace(tmp_path, cache=False))
    assert result.candidates(1) == [300]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [300]


def test_an_even_job_has_no_straggler(tmp_path) -> None:
    """Small variations make every rank the last one now and then."""
    write_job(tmp_path, ranks=4, steps=3, layers=2, straggler_rank=None)
    assert not stragglers(open_trace(tmp_path, cache=False)).per_rank["is_straggler"].any()


def test_workers_give_the_same_answer(tmp_path) -> None:
    """Keys of operations are the same in every process."""
    write_job(tmp_path, ranks=3, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert stragglers(trace, executor=executor).per_rank.equals(stragglers(trace).per_rank)


def test_real_jobs_have_an_answer(real_traces: Path) -> None:
    """Eight ranks of DLRM, kernels of NCCL before 2.20 without arguments."""
    result = stragglers(open_trace(real_traces / "dlrm_8rank", cache=False))
    assert result.candidates(1) == [7]
    assert result.per_rank["collective_count"].to_list() == [8] * 8


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=2, layers=2, seed=1)
    result = stragglers(open_trace(tmp_path, cache=False))
    golden.check(result.per_rank, "stragglers/synthetic_job.per_rank")
    golden.check(result.per_step, "stragglers/synthetic_job.per_step")
