"""Tests of stragglers: the ranks that the others wait for."""

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
    """In the first collective, rank 0 waits 40 µs for rank 1; in the second, rank 1 waits 10 µs for rank 0."""
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
    """Rank 0 waits 40 µs until rank 1 arrives; calculated from durations alone, the wait would be 50 - 20 = 30 µs."""
    builder = TraceBuilder().header(host_name="node-a").collective(start_us=0, duration_us=50)
    builder.rank(1).header(host_name="node-a").collective(start_us=40, duration_us=20)
    trace = builder.build()

    columns = ("wait_ns", "mean_skew_ns", "caused_wait_ns")
    assert stragglers(trace).per_rank.select(columns).rows() == [(40_000, 0.0, 0), (0, 40_000.0, 40_000)]
    by_durations = plan(by_durations=True).run(trace, holotrace.IN_PROCESS)
    assert by_durations.per_rank.select(columns).rows() == [(30_000, 0.0, 0), (0, 30_000.0, 30_000)]


def test_streams_need_not_agree() -> None:
    """Group and sequence number identify a collective, even if it runs on a different stream on each rank."""
    assert stragglers(two_ranks(stream=33).build()).per_rank.equals(stragglers(two_ranks().build()).per_rank)


def test_ranks_that_caused_no_waiting_are_not_candidates() -> None:
    """Only rank 1 makes others wait, so `candidates(2)` returns one rank."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)
    assert stragglers(builder.build()).candidates(2) == [1]


def test_equal_durations_blame_nobody() -> None:
    """If the durations are equal, no rank waits and no rank comes last."""
    builder = TraceBuilder().collective(start_us=0, duration_us=9).rank(1).collective(start_us=0, duration_us=9)
    table = stragglers(builder.build()).per_rank
    assert table.select("wait_ns", "last_count", "caused_fraction", "is_straggler").rows() == [(0, 0, None, False)] * 2


def test_a_rank_that_waited_before_it_was_late_is_not_the_straggler() -> None:
    """Rank 0 makes rank 2 wait, but only because rank 0 waited for rank 1 before; only rank 1 is a straggler."""
    pair, other = {"group_ranks": (0, 1), "group": "1"}, {"group_ranks": (0, 2), "group": "2"}
    builder = TraceBuilder().collective(start_us=0, duration_us=100, **pair)
    builder.collective(start_us=100, duration_us=5, **other)
    builder.rank(1).collective(start_us=95, duration_us=5, **pair)
    builder.rank(2).collective(start_us=0, duration_us=105, **other)
    result = stragglers(builder.build())
    assert result.candidates(3) == [1, 0]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [1]


def test_a_rank_that_waits_where_it_cannot_be_compared_may_not_be_the_cause() -> None:
    """Rank 1 comes 45 µs late to an all-reduce after a receive of 45 µs, so the sender may be the cause."""
    builder = TraceBuilder().collective(start_us=0, duration_us=50)
    builder.rank(1).collective("recv", start_us=0, duration_us=45, group="1").collective(start_us=45, duration_us=5)

    result = stragglers(builder.build())

    columns = ("rank", "is_straggler", "uncompared_ns", "is_cause")
    assert result.per_rank.select(columns).rows() == [(0, False, 0, False), (1, True, 45_000, False)]
    assert result.findings == (
        (
            "rank 1 arrives last: the other ranks waited 45 µs for it (100.0 % of all waiting in its collectives); it came "
            "last in 1 of 1 collective; it also waits 0 ns in these collectives and up to 45 µs in other communication, so "
            "another rank may be the cause"
        ),
    )


def test_the_slow_ranks_of_real_jobs(real_traces) -> None:
    """In a DDP job, rank 3 sleeps; in a pipeline, rank 2 sleeps, so rank 0, which waits for rank 2, is also late."""
    for name, slow, last in (("ddp_gloo_4rank", [3], [3]), ("pipeline_gloo_4rank", [2], [0, 2])):
        ranks = stragglers(opened(real_traces / name)).per_rank
        assert ranks.filter("is_cause")["rank"].to_list() == slow
        assert ranks.filter("is_straggler")["rank"].to_list() == last


def test_a_pipeline_stage_that_waits_for_another_is_a_victim(real_traces) -> None:
    """Rank 2 sleeps and is the culprit; rank 0 waits for rank 2, arrives last at its all-reduces, and is a victim."""
    result = stragglers(opened(real_traces / "pipeline_gloo_4rank"))
    ranks = result.per_rank.filter("is_straggler").sort("cost_ns")
    assert ranks.select("rank", "role").rows() == [(0, "victim"), (2, "culprit")]
    assert result.answer == "All ranks together wait 646 ms because rank 2 is late."
    assert "<built-in function sleep>" in result.findings[0]
    assert result.findings[1].endswith("it is a victim: it is late only because it waited for other ranks first")


def test_groups_of_the_same_name_are_distinguished_by_their_ranks() -> None:
    """Ranks 0 and 1 are in different groups with the same name, so their collectives are not compared."""
    builder = TraceBuilder().collective(start_us=0, duration_us=5, group="1", group_ranks=(0, 2))
    builder.rank(1).collective(start_us=0, duration_us=50, group="1", group_ranks=(1, 3))
    result = stragglers(builder.build())
    assert result.per_rank.is_empty()
    assert result.findings == (
        "no collective was recorded on more than one rank (2 of 2 ranks have collectives)",
        "2 of 2 calls (2 all_reduce) belong to groups with only one rank in the trace; add the files of the other ranks",
    )


def test_sends_and_receives_are_left_out() -> None:
    """The two ranks only send, and sends are not collectives, so the table is empty."""
    builder = TraceBuilder().collective("send", start_us=0, duration_us=5)
    builder.rank(1).collective("send", start_us=0, duration_us=50)
    assert stragglers(builder.build()).per_rank.is_empty()


PLANTED = ROOT / "tests" / "reference" / "traces" / "planted_causes"


@pytest.mark.parametrize(
    ("job", "culprits"), [("1f1b_slow_rank", [1]), ("interleaved_slow_rank", [1]), ("zero_bubble_slow_rank", [0])]
)
def test_the_culprit_of_a_pipeline_without_collectives_is_named(job, culprits) -> None:
    """The ranks only send and receive, so the table is empty, but findings from `wait_causes` name the slow rank."""
    result = stragglers(open_trace(PLANTED / job, cache=False))

    assert result.per_rank.is_empty()
    *late, last = result.findings
    assert [int(finding.split()[1]) for finding in late] == culprits
    assert "is late: all ranks together waited" in late[0]
    assert last == "no rank has collectives; wait_causes lists the causes of waiting in sends and receives"
    assert answer(result).startswith(f"Rank {culprits[0]} is late: all ranks together waited")


def test_a_healthy_pipeline_has_no_culprit() -> None:
    """In a healthy pipeline, stages wait for each other, but no rank is reported as late."""
    result = stragglers(open_trace(PLANTED / "1f1b_healthy", cache=False))

    assert result.findings == (
        "no rank has collectives; wait_causes lists the causes of waiting in sends and receives",
    )


@pytest.mark.parametrize(
    "name", ["ncclKernel_AllReduce_RING_LL_Sum_float(int)", "ncclDevKernel_Generic_4(int)", "hcom_allReduce__042_1_1"]
)
def test_kernels_without_numbers_are_matched_by_order(name) -> None:
    """Without sequence numbers, the n-th collective of each kind in a step is matched across ranks."""
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
    """Communication ids show that rank 1's only collective matches the second collective of rank 0, not the first."""
    args = {"Seq": None, "Process Group Ranks": None}
    builder = TraceBuilder().collective(start_us=0, duration_us=5, args={**args, "Comms Id": 11})
    builder.collective(start_us=50, duration_us=30, args={**args, "Comms Id": 12})
    builder.rank(1).collective(start_us=60, duration_us=10, args={**args, "Comms Id": 12})
    table = stragglers(builder.build()).per_rank
    assert table.select("rank", "collective_count", "wait_ns").rows() == [(0, 1, 20_000), (1, 1, 0)]


def test_kinds_with_different_counts_per_rank_are_left_out() -> None:
    """Rank 0 has two all-reduces without sequence numbers, and rank 1 has only one, so they cannot be matched."""
    name = "ncclKernel_AllReduce_RING_LL_Sum_float(int)"
    builder = TraceBuilder().kernel(name, start_us=0, duration_us=5).kernel(name, start_us=10, duration_us=5)
    builder.rank(1).kernel(name, start_us=0, duration_us=5)
    assert stragglers(builder.build()).per_rank.is_empty()


def test_a_missing_collective_does_not_shift_those_after_it() -> None:
    """Rank 1 lacks the second of three equal all-reduces; the first and the last are still matched, by their times."""
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
    """With a single rank, the tables are empty, and a finding asks for the traces of all ranks."""
    result = stragglers(TraceBuilder().collective(start_us=0, duration_us=5).build())
    assert (result.per_rank.height, result.per_step.height) == (0, 0)
    assert result.findings == ("only rank 0 was recorded; open all ranks of the job to compare their waiting",)


def test_a_job_without_collectives_says_so() -> None:
    """If two ranks only compute, a finding says that no collectives were recorded."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).rank(1).kernel("gemm", start_us=0, duration_us=1)
    assert stragglers(builder.build()).findings == (
        "no collectives were recorded, so it is unknown whether ranks wait for each other",
    )


def stepping(annotation: str | None = None) -> TraceBuilder:
    """Return two steps (or annotations) of 100 µs; rank 1 is late in the first and rank 0 in the second."""
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
    """Each collective runs after the end of the step that launched it but still belongs to this step."""
    table = stragglers(stepping().build()).per_step
    assert table.select("step", "rank", "wait_ns", "last_count").rows() == [
        (7, 0, 20_000, 0),
        (7, 1, 0, 1),
        (8, 0, 0, 1),
        (8, 1, 40_000, 0),
    ]


def test_steps_can_be_chosen() -> None:
    """In step 7, rank 1 is late; in step 8, rank 0 is late."""
    trace = stepping().build()
    assert stragglers(trace, steps=[7]).candidates(2) == [1]
    assert stragglers(trace, steps=[8]).candidates(2) == [0]


def test_any_annotation_can_replace_steps() -> None:
    """The ranges of an annotation are numbered from 0; in range 1, rank 0 is late."""
    trace = stepping("microbatch").build()
    assert stragglers(trace, annotation="microbatch", steps=[1]).candidates(2) == [0]


def test_without_steps_the_whole_trace_is_one() -> None:
    """Without steps, the whole trace is step 0."""
    assert stragglers(two_ranks().build()).per_step["step"].to_list() == [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": [3]}, "there is no step 3 in this trace; its steps are: 7, 8"),
        ({"steps": []}, "no step of this trace was selected; its steps are: 7, 8"),
        (
            {"annotation": "x"},
            "there is no annotation 'x' in this trace; its annotations are: ProfilerStep#7, ProfilerStep#8",
        ),
    ],
)
def test_an_unknown_value_is_an_error_that_lists_the_known_ones(options, message) -> None:
    """For an unknown step or annotation, the error lists the valid values."""
    with pytest.raises(InvalidOptionError, match=message):
        stragglers(stepping().build(), **options)


def test_gloo_on_the_host_is_compared_by_its_annotations() -> None:
    """In a CPU job of four ranks, rank 3 sleeps for 20 ms in every step, so it is the straggler."""
    result = stragglers(open_trace(ROOT / "examples" / "ddp_gloo_4rank", cache=False))
    assert result.candidates(1) == [3]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [3]


def test_the_planted_rank_of_eight_is_found(tmp_path) -> None:
    """The slow rank is the straggler; `wait_ns` (to within 0.2 µs) and `last_count` have the planned values."""
    truth = write_job(tmp_path, ranks=8, steps=2, layers=2, straggler_rank=5)
    table = stragglers(open_trace(tmp_path, cache=False)).per_rank
    assert table.filter("is_straggler")["rank"].to_list() == [5]
    assert table["wait_ns"].to_list() == pytest.approx([rank.collective_wait_ns for rank in truth.ranks], abs=200)
    last = Counter(collective.last_to_arrive for collective in truth.collectives)
    assert table["last_count"].to_list() == [last[rank] for rank in range(8)]


@pytest.mark.slow
def test_the_planted_rank_of_many_is_found(tmp_path) -> None:
    """Of 160 ranks on 40 hosts with different clocks, rank 100 is the straggler."""
    write_job(tmp_path, ranks=160, steps=1, layers=1, straggler_rank=100)
    result = stragglers(open_trace(tmp_path, cache=False))
    assert result.candidates(1) == [100]
    assert result.per_rank.filter("is_straggler")["rank"].to_list() == [100]


def test_an_even_job_has_no_straggler(tmp_path) -> None:
    """Four ranks are equally fast, so none of them is a straggler."""
    write_job(tmp_path, ranks=4, steps=3, layers=2, straggler_rank=None)
    assert not stragglers(open_trace(tmp_path, cache=False)).per_rank["is_straggler"].any()


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """The table is the same with two worker processes as in one process."""
    write_job(tmp_path, ranks=3, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert stragglers(trace, executor=executor).per_rank.equals(stragglers(trace).per_rank)


def test_real_jobs_have_an_answer(real_traces: Path) -> None:
    """The NCCL kernels of eight DLRM ranks have no args, but all 8 collectives are matched; rank 7 is late."""
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
    """Rank 2 sleeps and rank 0 only passes the delay on, so the answer and the first finding name rank 2."""
    result = stragglers(open_trace(ROOT / "tests" / "reference" / "traces" / "pipeline_gloo_4rank", cache=False))

    assert result.answer.endswith("because rank 2 is late.")
    assert result.findings[0].startswith("rank 2 is late")
