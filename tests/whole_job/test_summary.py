"""The verdict: one sentence on a job."""

from __future__ import annotations

import re

import pytest

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.whole_job.summary import summary
from jobs import cpu_job, gpu_job


def verdict(builder: TraceBuilder) -> str:
    """Return the verdict on a job."""
    return summary(builder.build()).verdict


def mostly_idle(launch_us: int) -> TraceBuilder:
    """Return a job that idles 80 of 100 µs, with the second kernel launched at `launch_us`."""
    return (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10, launch_us=-5)
        .kernel("gemm", start_us=90, duration_us=10, launch_us=launch_us)
    )


@pytest.mark.parametrize(
    ("launch_us", "cause"),
    [
        (80, "mostly waiting for the host"),
        (0, "mostly in long waits between a kernel's launch and its start"),
    ],
)
def test_the_cause_of_idling_is_the_category_with_most_of_it(launch_us: int, cause: str) -> None:
    """More than half of the idle time makes a cause."""
    assert verdict(mostly_idle(launch_us)) == f"The GPU is idle 80 % of the time, {cause}; computation takes 20 %."


def test_no_cause_is_named_where_none_has_half() -> None:
    """Idle 80 µs: 30 for the host, 25 for a start, 25 for something else."""
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10, launch_us=-5)
        .kernel("gemm", start_us=65, duration_us=10, launch_us=40)
        .kernel("gemm", start_us=110, duration_us=10, launch_us=70)
    )
    assert "for no single reason" in verdict(builder)


def test_a_device_that_hardly_idles_is_busy() -> None:
    """Below 10 % of idling, the verdict gives the busy share instead."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=96).kernel("gemm", start_us=99, duration_us=1)
    assert verdict(builder).startswith("The GPU is busy 97 % of the time")


def test_communication_and_how_much_of_it_is_hidden_are_told() -> None:
    """Over both windows of 110 and 100 µs: 40 µs of communication, half of it hidden; rank 0 idles more."""
    assert verdict(gpu_job()) == (
        "The GPUs are idle 19 % of the time, for no single reason; communication takes 19 % and 50 % of it is "
        "hidden behind computation; rank 0 is the most idle (36 %)."
    )


def test_several_ranks_without_communication_are_told() -> None:
    """The verdict says that a job of two ranks never communicates."""
    builder = TraceBuilder().kernel("a", start_us=0, duration_us=1).rank(1).kernel("a", start_us=0, duration_us=1)
    assert verdict(builder) == "The GPUs are busy 100 % of the time; computation takes 100 %, and no rank communicates."


def test_a_late_rank_is_named(tmp_path) -> None:
    """The planted straggler computes longer and communicates least: the others wait for it."""
    truth = write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=2)
    found = summary(holotrace.open_trace(tmp_path, cache=False))
    assert f"rank {truth.straggler_rank} is late: the others together wait 11.4 ms for it" in found.verdict
    assert found.advice.recommendations["rule"][0] == "late_rank"


def test_a_late_rank_whose_collectives_cannot_be_compared_is_named_by_its_sums() -> None:
    """Each rank is in a group of its own, as the file has it; rank 2 computes longer and communicates least."""
    builder = TraceBuilder()
    for rank, computing in enumerate((50, 50, 90)):
        builder.rank(rank).kernel("gemm", start_us=0, duration_us=computing)
        builder.collective(start_us=computing, duration_us=100 - computing, group_ranks=(rank, 8 + rank))
    assert "rank 2 computes longer and communicates least" in verdict(builder)


def test_the_late_rank_of_a_real_job_is_named_and_a_victim_is_not_blamed(real_traces) -> None:
    """Rank 3 of the DDP job sleeps; rank 0 of the pipeline only passes on what rank 2 does."""
    known = summary(holotrace.open_trace(real_traces / "ddp_gloo_4rank", cache=False))
    assert known.verdict.endswith("; rank 3 is late: the others together wait 321 ms for it.")
    unknown = summary(holotrace.open_trace(real_traces / "pipeline_gloo_4rank", cache=False))
    assert unknown.verdict.endswith(
        "; rank 0 arrives last: the others together wait 221 ms for it, though it may itself wait for another rank."
    )


def test_a_rank_that_is_late_by_next_to_nothing_is_not_named() -> None:
    """The other waits 0.5 of 100 µs for it."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=98).collective(start_us=98, duration_us=2)
    builder.rank(1).kernel("gemm", start_us=0, duration_us=98.5).collective(start_us=98.5, duration_us=1.5)
    assert "rank" not in verdict(builder)


def test_no_rank_is_blamed_in_an_even_job(tmp_path) -> None:
    """Without a straggler the verdict names no rank."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=None)
    assert "rank" not in summary(holotrace.open_trace(tmp_path, cache=False)).verdict


def test_every_analysis_is_in_the_overview() -> None:
    """The report and the summary loop over the results."""
    found = summary(gpu_job().build())
    assert list(found.results) == [analysis.name for analysis in ANALYSES]
    assert not found.missing
    assert found.cpu_side.is_empty()


def test_a_job_without_gpu_work_gets_its_cpu_side() -> None:
    """The verdict names the option that may have been off, and what the CPU side shows."""
    found = summary(cpu_job().build())
    assert found.verdict == (
        "No GPU work was recorded on any of the 2 ranks: this job ran on the CPU, or was recorded without "
        "ProfilerActivity.CUDA; the CPU side holds 4 events and 2 steps of 20 µs on average; those of rank 1 are the "
        "longest (30 µs)."
    )
    assert found.cpu_side.rows() == [(0, 2, 1, 1, 10_000.0), (1, 2, 1, 1, 30_000.0)]
    assert {"temporal_breakdown", "kernel_breakdown", "communication_overlap", "idle_time"} <= set(found.missing)
    assert found.results["user_annotations"].per_annotation["side"].unique().to_list() == ["cpu"]


def test_a_job_without_steps_or_events_gets_a_verdict() -> None:
    """An empty trace is a trace."""
    assert verdict(TraceBuilder().rank(0)) == (
        "No GPU work was recorded on the one rank: this job ran on the CPU, or was recorded without "
        "ProfilerActivity.CUDA; the CPU side holds 0 events and no profiler steps."
    )


def test_findings_of_several_analyses_are_told_once() -> None:
    """A rank without GPU work is a finding of every analysis."""
    builder = gpu_job().rank(2).operator("aten::mm", start_us=0, duration_us=1)
    findings = summary(builder.build()).findings
    assert len(findings) == len(set(findings))
    assert any("rank 2" in finding for finding in findings)


def test_work_of_no_length_has_a_verdict() -> None:
    """A window of 0 ns divides nothing."""
    assert verdict(TraceBuilder().kernel("gemm", start_us=0, duration_us=0)).endswith(".")


def test_files_read_in_part_are_told(tmp_path) -> None:
    """The verdict covers only the readable part, so the doubts say so."""
    first, _ = gpu_job().write(tmp_path)
    content = first.read_bytes()
    first.write_bytes(content.replace(b'"ts"', b'"no"', 1))
    found = summary(holotrace.open_trace(tmp_path, cache=False))
    [doubt] = found.doubts
    assert re.fullmatch(
        r"1 of 2 files could be read only in part \(rank 0\): 1 event in \d+ bytes lost; holotrace check says why\.",
        doubt,
    )


def test_a_file_that_is_cut_off_is_said_before_the_verdict(tmp_path) -> None:
    """With its rank and position; it does not also count as read in part."""
    first, _ = gpu_job().write(tmp_path)
    content = first.read_bytes()
    first.write_bytes(content[: len(content) * 2 // 3])
    found = summary(holotrace.open_trace(tmp_path, cache=False))
    assert re.fullmatch(
        r"Rank 0's file is cut off after \d+ events, at byte \d+ of its text \(.*\); .*", found.doubts[0]
    )
    assert not [finding for finding in found.findings if "in part" in finding]


def test_ranks_that_are_no_job_get_no_verdict_on_one() -> None:
    """The verdict says that it takes them together."""
    builder = gpu_job()
    builder.rank(1).header(distributedInfo={"rank": 1, "world_size": 64})
    found = summary(builder.build())
    assert found.verdict.startswith("Taken together, though they do not look like one job: the GPUs are ")
    assert found.doubts == ("These 2 traces do not look like one job: the world sizes are 2 (rank 0), 64 (rank 1).",)


@pytest.mark.parametrize(("cut", "files"), [((0,), "the files of rank 0 are"), ((0, 1), "the files of ranks 0-1 are")])
def test_a_cut_off_file_without_gpu_work_is_no_job_on_the_cpu(tmp_path, cut, files) -> None:
    """GPU work comes last in a file: whether there was any is not known."""
    paths = cpu_job().write(tmp_path)
    for path in (paths[rank] for rank in cut):
        content = path.read_bytes()
        path.write_bytes(content[: content.rindex(b'"ph"') + 10])
    found = summary(holotrace.open_trace(tmp_path, cache=False))
    assert found.verdict.startswith(
        f"No GPU work could be read on any of the 2 ranks: {files} cut off, and GPU work may have followed; "
    )
