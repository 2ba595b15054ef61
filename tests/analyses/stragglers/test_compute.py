"""Tests of stragglers: which rank the others wait for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import holotrace
from holotrace import open_trace
from holotrace.analyses.stragglers.answer import answer
from holotrace.analyses.stragglers.compute import plan, stragglers
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from pages import ROOT
from recordings import opened

if TYPE_CHECKING:
    from pathlib import Path


def two_ranks(**rank_one: object) -> TraceBuilder:
    """Return two all-reduces: 50 and 30 µs on rank 0, 10 and 40 µs on rank 1, whose clock is 9 ms ahead."""
    builder = TraceBuilder()
    builder.collective(start_us=100, duration_us=50).collective(start_us=200, duration_us=30)
    return (
        builder.rank(1)
        .collective(start_us=9_140, duration_us=10, **rank_one)
        .collective(start_us=9_190, duration_us=40, **rank_one)
    )


def test_the_rank_with_the_shortest_time_in_a_collective_came_last() -> None:
    """Rank 0 waits 40 µs for rank 1 in the first collective; rank 1 waits 10 µs for rank 0 in the second."""
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
            "role": None,
            "cost_ns": None,
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
            "role": "culprit",
            "cost_ns": None,
        },
    ]
    assert result.findings == (
        (
            "rank 1 is late: the other ranks waited 40 µs for it (80.0 % of all waiting in its collectives); "
            "it came last in 1 of 2 collectives"
        ),
    )
    assert result.candidates(2) == [1, 0]


def test_on_one_clock_waiting_ends_with_the_last_arrival() -> None:
    """Rank 0 waits 40 µs, until rank 1 arrives; judged by the durations alone (50 - 20 µs), it waits only 30 µs."""
    builder = TraceBuilder().header(host_name="node-a").collective(start_us=0, duration_us=50)
    builder.rank(1).header(host_name="node-a").collective(start_us=40, duration_us=20)
    trace = builder.build()

    columns = ("wait_ns", "mean_skew_ns", "caused_wait_ns")
    assert stragglers(trace).per_rank.select(columns).rows() == [(40_000, 0.0, 0), (0, 40_000.0, 40_000)]
    by_durations = plan(by_durations=True).run(trace, holotrace.IN_PROCESS)
    assert by_durations.per_rank.select(columns).rows() == [(30_000, 0.0, 0), (0, 30_000.0, 30_000)]


def test_streams_need_not_agree() -> None:
    """Group and sequence number identify a collective, so each rank may run it on a different stream."""
    assert stragglers(two_ranks(stream=33).build()).per_rank.equals(stragglers(two_ranks().build()).per_rank)


def test_ranks_that_caused_no_waiting_are_not_candidates() -> None:
    """Only rank 1 ever comes last, so `candidates(2)` returns one rank."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)
    assert stragglers(builder.build()).candidates(2) == [1]


def test_equal_durations_blame_nobody() -> None:
    """With equal durations, no rank comes last alone and no rank waits."""
    builder = TraceBuilder().collective(start_us=0, duration_us=9).rank(1).collective(start_us=0, duration_us=9)
    table = stragglers(builder.build()).per_rank
    assert table.select("wait_ns", "last_count", "caused_fraction", "is_straggler").rows() == [(0, 0, None, False)] * 2


def test_a_rank_that_waited_before_it_was_late_is_not_the_straggler() -> None:
    """Rank 0 makes rank 2 wait because it waited for rank 1 before, so only rank 1 is a straggler."""
    pair, other = {"group_ranks": (0, 1), "group": "1"}, {"group_ranks": (0, 2), "group": "2"}
    builder = TraceBuilder().collective(start_us=0, duration_us=100, **pair)
    builder.collective(start_us=100, duration_us=5, **other)
    builder.rank(1).collective(start_us=95, duration_us=5, **pair)
    builder.rank(2).collective(start_us=0, duration_us=105, **other)
    result = stragglers(builder.build())
    assert result.candidates(3) == [1, 0]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [1]


def test_a_rank_that_waits_where_it_cannot_be_compared_may_not_be_the_cause() -> None:
    """Rank 1 receives for 45 µs, then comes 45 µs late to the all-reduce: the sender may be the cause."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50)
    builder.rank(1).collective("recv", start_us=0, duration_us=45, group="1").collective(start_us=45, duration_us=5)

    result = stragglers(builder.build())

    columns = ("rank", "is_straggler", "uncompared_ns", "is_cause")
    assert result.per_rank.select(columns).rows() == [(0, False, 0, False), (1, True, 45_000, False)]
    assert result.findings == (
        (
            "rank 1 arrives last: the other ranks waited 45 µs for it (100.0 % of all waiting in its collectives); it came "
            "last in 1 of 1 collective; it also waits itself, 0 ns in these collectives and up to 45 µs in other communication, so "
            "another rank may be the cause"
        ),
    )


def test_the_slow_ranks_of_real_jobs(real_traces) -> None:
    """Rank 3 of a DDP job sleeps; in a pipeline, rank 2 sleeps, and rank 0, which waits for it, arrives last as well."""
    for name, slow, last in (("ddp_gloo_4rank", [3], [3]), ("pipeline_gloo_4rank", [2], [0, 2])):
        ranks = stragglers(opened(real_traces / name)).per_rank
        assert ranks.filter("is_cause")["rank"].to_list() == slow
        assert ranks.filter("is_straggler")["rank"].to_list() == last


def test_a_pipeline_stage_that_waits_for_another_is_a_victim(real_traces) -> None:
    """Rank 2 sleeps and costs the job 646 ms. Rank 0 waits for rank 2, and so arrives last at its all-reduces."""
    result = stragglers(opened(real_traces / "pipeline_gloo_4rank"))
    ranks = result.per_rank.filter("is_straggler").sort("cost_ns")
    assert ranks.select("rank", "role").rows() == [(0, "victim"), (2, "culprit")]
    assert result.answer == "All ranks together wait 646 ms because rank 2 is late."
    assert "<built-in function sleep>" in result.findings[0]
    assert result.findings[1].endswith("it is a victim, because it is late only after waiting for other ranks itself")


def test_groups_of_the_same_name_are_distinguished_by_their_ranks() -> None:
    """Ranks 0 and 1 belong to different groups that are both named "1", so nothing is compared."""
    builder = TraceBuilder().collective(start_us=0, duration_us=5, group="1", group_ranks=(0, 2))
    builder.rank(1).collective(start_us=0, duration_us=50, group="1", group_ranks=(1, 3))
    result = stragglers(builder.build())
    assert result.per_rank.is_empty()
    assert result.findings == (
        "no collective was recorded on more than one rank (2 of 2 ranks have collectives)",
        "2 of 2 calls (2 all_reduce) belong to groups of which the trace has only one rank; add the files of the other ranks",
    )


def test_sends_and_receives_are_left_out() -> None:
    """Sends between two ranks are not compared with each other."""
    builder = TraceBuilder().collective("send", start_us=0, duration_us=5)
    builder.rank(1).collective("send", start_us=0, duration_us=50)
    assert stragglers(builder.build()).per_rank.is_empty()


PLANTED = ROOT / "tests" / "reference" / "traces" / "planted_causes"


@pytest.mark.parametrize(
    ("job", "culprits"), [("1f1b_slow_rank", [1]), ("interleaved_slow_rank", [1]), ("zero_bubble_slow_rank", [0])]
)
def test_the_culprit_of_a_pipeline_without_collectives_is_named(job, culprits) -> None:
    """The ranks only send and receive, so the table of collectives is empty; the causes of the waits name the slow rank."""
    result = stragglers(open_trace(PLANTED / job, cache=False))

    assert result.per_rank.is_empty()
    *late, last = result.findings
    assert [int(finding.split()[1]) for finding in late] == culprits
    assert "is late: all ranks waited" in late[0]
    assert last == "no rank has collectives; wait_causes lists the causes of waiting in sends and receives"
    assert answer(result).startswith(f"Rank {culprits[0]} is late: all ranks waited")


def test_a_healthy_pipeline_has_no_culprit() -> None:
    """The stages of the pipeline wait for each other, but no rank is an outlier."""
    result = stragglers(open_trace(PLANTED / "1f1b_healthy", cache=False))

    assert result.findings == (
        "no rank has collectives; wait_causes lists the causes of waiting in sends and receives",
    )


@pytest.mark.parametrize(
    "name", ["ncclKernel_AllReduce_RING_LL_Sum_float(int)", "ncclDevKernel_Generic_4(int)", "hcom_allReduce__042_1_1"]
)
def test_kernels_without_numbers_are_matched_by_order(name) -> None:
    """Without sequence numbers, the n-th collective of a kind in a step is the same one on all ranks."""
    category = {"category": "collective_comm"} if name.startswith("hcom") else {}
    builder = TraceBuilder()
    for rank, durations in enumerate([(50, 50), (10, 20)]):
        builder.rank(rank).step(0, 0, 1_000)
        for place, duration in enumerate(durations):
            builder.kernel(name, start_us=100 + 100 * place, duration_us=duration, stream=0, **category)
    result = stragglers(builder.build())
    assert result.per_rank["wait_ns"].to_list() == [70_000, 0]
    assert result.per_rank["is_straggler"].to_list() == [False, True]
    assert result.findings[1:] == (
        "4 of 4 collectives were matched by kind and order: no number in the trace identifies them",
    )


def test_communication_ids_have_priority_over_order() -> None:
    """Communication ids show that rank 1's only collective is the second one of rank 0."""
    args = {"Seq": None, "Process Group Ranks": None}
    builder = TraceBuilder().collective(start_us=0, duration_us=5, args={**args, "Comms Id": 11})
    builder.collective(start_us=50, duration_us=30, args={**args, "Comms Id": 12})
    builder.rank(1).collective(start_us=60, duration_us=10, args={**args, "Comms Id": 12})
    table = stragglers(builder.build()).per_rank
    assert table.select("rank", "collective_count", "wait_ns").rows() == [(0, 1, 20_000), (1, 1, 0)]


def test_kinds_with_different_counts_per_rank_are_left_out() -> None:
    """Rank 0 has two all-reduces without numbers and rank 1 has one: they cannot be matched."""
    name = "ncclKernel_AllReduce_RING_LL_Sum_float(int)"
    builder = TraceBuilder().kernel(name, start_us=0, duration_us=5).kernel(name, start_us=10, duration_us=5)
    builder.rank(1).kernel(name, start_us=0, duration_us=5)
    assert stragglers(builder.build()).per_rank.is_empty()


def test_a_missing_collective_does_not_shift_those_after_it() -> None:
    """Rank 1 lacks the second of three equal all-reduces: the first and the last are compared."""
    builder = TraceBuilder()
    for rank, calls in enumerate([[(0, 50), (200, 50), (400, 50)], [(20, 30), (430, 20)]]):
        builder.rank(rank).header(host_name="node-a")
        for start, duration in calls:
            builder.collective(start_us=start, duration_us=duration, args={"Seq": None})
    result = stragglers(builder.build())

    assert result.per_rank.select("rank", "collective_count", "wait_ns").rows() == [(0, 2, 50_000), (1, 2, 0)]
    assert result.findings[1:] == (
        "4 of 5 collectives were matched by kind and order (4 of them also by their times): no number in the trace identifies them",
        "1 of 5 calls (1 all_reduce) have no clear counterpart on the other ranks of their group",
    )


def test_one_rank_has_nobody_to_wait_for() -> None:
    """For a single rank, tables are empty and a finding asks for the traces of all ranks."""
    result = stragglers(TraceBuilder().collective(start_us=0, duration_us=5).build())
    assert (result.per_rank.height, result.per_step.height) == (0, 0)
    assert result.findings == ("only rank 0 was recorded; open all ranks of the job to compare their waiting",)


def test_a_job_without_collectives_says_so() -> None:
    """For two ranks that only compute, a finding says that no collectives were recorded."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).rank(1).kernel("gemm", start_us=0, duration_us=1)
    assert stragglers(builder.build()).findings == (
        "no collectives were recorded, so it is unknown whether ranks wait for each other",
    )


def stepping(annotation: str | None = None) -> TraceBuilder:
    """Return two steps (or annotations) of 100 µs: rank 1 is late in the first, rank 0 in the second."""
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


def test_a_collective_belongs_to_the_step_that_launched_it() -> None:
    """Each collective runs after its step has ended, and still counts toward the step that launched it."""
    table = stragglers(stepping().build()).per_step
    assert table.select("step", "rank", "wait_ns", "last_count").rows() == [
        (7, 0, 20_000, 0),
        (7, 1, 0, 1),
        (8, 0, 0, 1),
        (8, 1, 40_000, 0),
    ]


def test_steps_can_be_chosen() -> None:
    """`steps=[7]` blames rank 1 and `steps=[8]` rank 0."""
    trace = stepping().build()
    assert stragglers(trace, steps=[7]).candidates(2) == [1]
    assert stragglers(trace, steps=[8]).candidates(2) == [0]


def test_any_annotation_can_replace_steps() -> None:
    """Ranges of the annotation are numbered from 0; in range 1, rank 0 is late."""
    trace = stepping("microbatch").build()
    assert stragglers(trace, annotation="microbatch", steps=[1]).candidates(2) == [0]


def test_without_steps_the_whole_trace_is_one() -> None:
    """Without steps, the whole trace counts as step 0."""
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
    """A step or annotation that no rank has raises an error that lists the known ones."""
    with pytest.raises(InvalidOptionError, match=message):
        stragglers(stepping().build(), **options)


def test_gloo_on_the_host_is_compared_by_its_annotations() -> None:
    """In a CPU job of four ranks, rank 3 sleeps 20 ms in every step and is the straggler."""
    result = stragglers(open_trace(ROOT / "examples" / "ddp_gloo_4rank", cache=False))
    assert result.candidates(1) == [3]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [3]


def test_the_planted_rank_of_eight_is_found(tmp_path) -> None:
    """Waiting times equal the plan of the job within 0.2 µs, and each rank comes last as often as planned."""
    truth = write_job(tmp_path, ranks=8, steps=2, layers=2, straggler_rank=5)
    table = stragglers(open_trace(tmp_path, cache=False)).per_rank
    assert table.filter("is_straggler")["rank"].to_list() == [5]
    assert table["wait_ns"].to_list() == pytest.approx([rank.collective_wait_ns for rank in truth.ranks], abs=200)
    last = Counter(collective.last_to_arrive for collective in truth.collectives)
    assert table["last_count"].to_list() == [last[rank] for rank in range(8)]


@pytest.mark.slow
def test_the_planted_rank_of_many_is_found(tmp_path) -> None:
    """Rank 100 of 160, on 40 hosts with different clocks, is the straggler."""
    write_job(tmp_path, ranks=160, steps=1, layers=1, straggler_rank=100)
    result = stragglers(open_trace(tmp_path, cache=False))
    assert result.candidates(1) == [100]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [100]


def test_an_even_job_has_no_straggler(tmp_path) -> None:
    """Four equal ranks, each of which sometimes comes last, have no straggler."""
    write_job(tmp_path, ranks=4, steps=3, layers=2, straggler_rank=None)
    assert not stragglers(open_trace(tmp_path, cache=False)).per_rank["is_straggler"].any()


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """Two worker processes return the same table as one, since they number collectives alike."""
    write_job(tmp_path, ranks=3, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert stragglers(trace, executor=executor).per_rank.equals(stragglers(trace).per_rank)


def test_real_jobs_have_an_answer(real_traces: Path) -> None:
    """Eight DLRM ranks, whose NCCL kernels have no args, are matched in 8 collectives; rank 7 is late."""
    result = stragglers(opened(real_traces / "dlrm_8rank"))
    assert result.candidates(1) == [7]
    assert result.per_rank["collective_count"].to_list() == [8] * 8


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=2, layers=2, seed=1)
    result = stragglers(open_trace(tmp_path, cache=False))
    golden.check(result.per_rank, "stragglers/synthetic_job.per_rank")
    golden.check(result.per_step, "stragglers/synthetic_job.per_step")


def test_the_answer_names_the_cause_before_its_victim() -> None:
    """In the recorded pipeline rank 0 only passes on the delay of rank 2, which sleeps, so rank 2 is listed first."""
    result = stragglers(open_trace(ROOT / "tests" / "reference" / "traces" / "pipeline_gloo_4rank", cache=False))

    assert result.answer.endswith("because rank 2 is late.")
    assert result.findings[0].startswith("rank 2 is late")
