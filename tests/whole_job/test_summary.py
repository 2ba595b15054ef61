"""The summary of a job begins with a verdict of one sentence."""

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
def test_the_cause_of_idle_time_has_more_than_half_of_it(launch_us: int, cause: str) -> None:
    """The verdict on a GPU that idles 80 % names the cause of most idle time: the host or late starts."""
    assert verdict(mostly_idle(launch_us)) == f"The GPU is idle 80 % of the time, {cause}; computation takes 20 %."


def test_no_cause_is_named_if_none_has_half() -> None:
    """If 30 of 80 idle µs wait for the host and 25 for late starts, the verdict names no single reason."""
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10, launch_us=-5)
        .kernel("gemm", start_us=65, duration_us=10, launch_us=40)
        .kernel("gemm", start_us=110, duration_us=10, launch_us=70)
    )
    assert "for no single reason" in verdict(builder)


def test_a_device_that_hardly_idles_is_busy() -> None:
    """A GPU that idles less than 10 % gets a verdict on its busy time."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=96).kernel("gemm", start_us=99, duration_us=1)
    assert verdict(builder).startswith("The GPU is busy 97 % of the time")


def test_the_verdict_has_communication_and_its_hidden_share() -> None:
    """Of 210 µs on both ranks, 40 µs are communication, half of it hidden; rank 0 idles most."""
    assert verdict(gpu_job()) == (
        "The GPUs are idle 19 % of the time, for no single reason; communication takes 19 % and 50 % of it is "
        "hidden behind computation; rank 0 is the most idle (36 %)."
    )


def test_the_verdict_says_that_ranks_do_not_communicate() -> None:
    """For two ranks without collectives, the verdict ends with `no rank communicates`."""
    builder = TraceBuilder().kernel("a", start_us=0, duration_us=1).rank(1).kernel("a", start_us=0, duration_us=1)
    assert verdict(builder) == "The GPUs are busy 100 % of the time; computation takes 100 %, and no rank communicates."


def test_a_late_rank_is_named(tmp_path) -> None:
    """The verdict names the simulated straggler and how long the other ranks wait for it."""
    truth = write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=2)
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    assert f"rank {truth.straggler_rank} is late: all ranks together wait 11.4 ms because of it" in job_summary.verdict
    assert job_summary.advice.recommendations["rule"][0] == "late_rank"


def test_a_late_rank_whose_collectives_cannot_be_compared_is_named_by_its_sums() -> None:
    """If ranks share no group, the verdict names rank 2, which computes longest and communicates least."""
    builder = TraceBuilder()
    for rank, computing in enumerate((50, 50, 90)):
        builder.rank(rank).kernel("gemm", start_us=0, duration_us=computing)
        builder.collective(start_us=computing, duration_us=100 - computing, group_ranks=(rank, 8 + rank))
    assert "rank 2 computes longer and communicates least" in verdict(builder)


def test_the_late_rank_of_a_real_job_is_named_and_a_victim_is_not_blamed(real_traces) -> None:
    """Rank 3 of the DDP job sleeps; in the pipeline rank 2 does, and rank 0, which only passes on the delay, is not named."""
    known = summary(holotrace.open_trace(real_traces / "ddp_gloo_4rank", cache=False))
    assert known.verdict.endswith("; rank 3 is late: the others together wait 313 ms for it.")
    pipeline = summary(holotrace.open_trace(real_traces / "pipeline_gloo_4rank", cache=False))
    assert pipeline.verdict.endswith("; rank 2 is late: all ranks together wait 646 ms because of it.")


def test_a_rank_that_is_hardly_late_is_not_named() -> None:
    """The verdict does not name a rank for which the other waits 0.5 of 100 µs."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=98).collective(start_us=98, duration_us=2)
    builder.rank(1).kernel("gemm", start_us=0, duration_us=98.5).collective(start_us=98.5, duration_us=1.5)
    assert "rank" not in verdict(builder)


def test_no_rank_is_blamed_in_an_even_job(tmp_path) -> None:
    """Without a straggler, the verdict on four ranks names none."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=None)
    assert "rank" not in summary(holotrace.open_trace(tmp_path, cache=False)).verdict


def test_every_analysis_is_in_the_summary() -> None:
    """The summary of a GPU job has the result of every analysis and no CPU side."""
    job_summary = summary(gpu_job().build())
    assert list(job_summary.results) == [analysis.name for analysis in ANALYSES]
    assert not job_summary.missing
    assert job_summary.cpu_side.is_empty()


def test_a_job_without_gpu_work_has_a_cpu_side() -> None:
    """Without GPU work, the verdict names the profiler option and counts the events and steps on the CPU."""
    job_summary = summary(cpu_job().build())
    assert job_summary.verdict == (
        "No GPU work was recorded on any of the 2 ranks: this job ran on the CPU, or was recorded without "
        "ProfilerActivity.CUDA; the CPU side holds 4 events and 2 steps of 20 µs on average; those of rank 1 are the "
        "longest (30 µs)."
    )
    assert job_summary.cpu_side.rows() == [(0, 2, 1, 1, 10_000.0), (1, 2, 1, 1, 30_000.0)]
    assert {"temporal_breakdown", "kernel_breakdown", "communication_overlap", "idle_time"} <= set(job_summary.missing)
    assert job_summary.results["user_annotations"].per_annotation["side"].unique().to_list() == ["cpu"]


def test_a_job_without_steps_or_events_gets_a_verdict() -> None:
    """The verdict on an empty trace says that it has 0 events and no profiler steps."""
    assert verdict(TraceBuilder().rank(0)) == (
        "No GPU work was recorded on the one rank: this job ran on the CPU, or was recorded without "
        "ProfilerActivity.CUDA; the CPU side holds 0 events and no profiler steps."
    )


def test_findings_of_several_analyses_are_listed_once() -> None:
    """A rank without GPU work is a finding of every analysis, but only once in the summary."""
    builder = gpu_job().rank(2).operator("aten::mm", start_us=0, duration_us=1)
    findings = summary(builder.build()).findings
    assert len(findings) == len(set(findings))
    assert any("rank 2" in finding for finding in findings)


def test_work_of_zero_length_has_a_verdict() -> None:
    """A kernel of 0 ns gives a verdict, not a division by zero."""
    assert verdict(TraceBuilder().kernel("gemm", start_us=0, duration_us=0)).endswith(".")


def test_partly_read_files_are_counted(tmp_path) -> None:
    """The summary's doubts say that one of two files lost an event, with the rank and the bytes."""
    first, _ = gpu_job().write(tmp_path)
    content = first.read_bytes()
    first.write_bytes(content.replace(b'"ts"', b'"no"', 1))
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    [doubt] = job_summary.doubts
    assert re.fullmatch(
        r"1 of 2 files could be read only in part \(rank 0\): 1 event in \d+ bytes lost; holotrace check says why\.",
        doubt,
    )


def test_a_truncated_file_is_the_first_doubt(tmp_path) -> None:
    """The summary's doubts name the rank and position of a truncated file, and count no file as read in part."""
    first, _ = gpu_job().write(tmp_path)
    content = first.read_bytes()
    first.write_bytes(content[: len(content) * 2 // 3])
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    assert re.fullmatch(
        r"Rank 0's file is cut off after \d+ events, at byte \d+ of its text \(.*\); .*", job_summary.doubts[0]
    )
    assert not [finding for finding in job_summary.findings if "in part" in finding]


def test_traces_of_two_jobs_are_a_doubt() -> None:
    """For world sizes 2 and 64, verdict and doubts say that the traces do not look like one job."""
    builder = gpu_job()
    builder.rank(1).header(distributedInfo={"rank": 1, "world_size": 64})
    job_summary = summary(builder.build())
    assert job_summary.verdict.startswith("Taken together, though they do not look like one job: the GPUs are ")
    assert job_summary.doubts == (
        "These 2 traces do not look like one job: the world sizes are 2 (rank 0), 64 (rank 1).",
    )


@pytest.mark.parametrize(("cut", "files"), [((0,), "the files of rank 0 are"), ((0, 1), "the files of ranks 0-1 are")])
def test_a_truncated_file_may_have_lost_its_gpu_work(tmp_path, cut, files) -> None:
    """For truncated files without GPU work, the verdict says that GPU work may have followed."""
    paths = cpu_job().write(tmp_path)
    for path in (paths[rank] for rank in cut):
        content = path.read_bytes()
        path.write_bytes(content[: content.rindex(b'"ph"') + 10])
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    assert job_summary.verdict.startswith(
        f"No GPU work could be read on any of the 2 ranks: {files} cut off, and GPU work may have followed; "
    )
