"""The summary of a job begins with a verdict in one sentence."""

from __future__ import annotations

import re

import pytest

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.whole_job.summary import FIRST, FIRST_WITHOUT_GPU_WORK, summary, summary_of
from jobs import cpu_job, gpu_job
from recordings import opened


def verdict(builder: TraceBuilder) -> str:
    """Build a made-up job, and return the verdict of its summary."""
    return summary(builder.build()).verdict


@pytest.mark.slow
def test_the_verdict_is_the_answer_of_the_diagnosis() -> None:
    """The verdict of the summary is the answer of the diagnosis; the job of this test has no steps."""
    known = verdict(gpu_job())

    assert known == holotrace.diagnosis(gpu_job().build()).answer
    assert known.startswith("The recording takes ")


def test_a_late_rank_is_named(tmp_path) -> None:
    """The verdict names the simulated straggler and the share of all waiting that it causes."""
    truth = write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=2)
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))

    assert f"rank {truth.straggler_rank} is late and causes" in job_summary.verdict
    assert job_summary.diagnosis.per_finding["rule"][0] == "late_rank"


@pytest.mark.slow
def test_the_late_rank_of_a_real_job_is_named_and_a_victim_is_not_blamed(real_traces) -> None:
    """The verdict names the rank that sleeps (DDP job: rank 3; pipeline: rank 2), but not rank 0, which only waits."""
    known = summary(opened(real_traces / "ddp_gloo_4rank"))
    assert "rank 3 is late" in known.verdict
    assert "<built-in function sleep> in ddp.py(35): main" in known.verdict
    pipeline = summary(opened(real_traces / "pipeline_gloo_4rank"))
    assert "rank 2 is late" in pipeline.verdict


@pytest.mark.slow
def test_no_rank_is_blamed_in_an_even_job(tmp_path) -> None:
    """Without a straggler, the verdict names none of the four ranks."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, straggler_rank=None)
    assert "rank" not in summary(holotrace.open_trace(tmp_path, cache=False)).verdict


@pytest.mark.slow
def test_the_summary_has_the_questions_that_it_is_asked() -> None:
    """By default, the summary contains the diagnosis and the first few analyses; a report contains all analyses."""
    everything = [analysis.name for analysis in ANALYSES]
    assert list(summary_of(gpu_job().build(), everything).results) == everything

    job_summary = summary(gpu_job().build())
    assert list(job_summary.results) == [name for name in everything if name in ("diagnosis", *FIRST)]
    assert not job_summary.missing
    assert job_summary.cpu_side.is_empty()


def test_a_job_without_gpu_work_has_a_cpu_side() -> None:
    """Without GPU work, the verdict says so, and a table shows the number of events and steps of each rank."""
    job_summary = summary(cpu_job().build())
    assert job_summary.verdict.startswith("A step takes 20 µs, and no GPU work was recorded; ")
    assert job_summary.cpu_side.rows() == [(0, 2, 1, 1, 10_000.0), (1, 2, 1, 1, 30_000.0)]
    assert set(job_summary.results) == {"diagnosis", *FIRST_WITHOUT_GPU_WORK}


def test_a_job_without_steps_or_events_gets_a_verdict() -> None:
    """The verdict on an empty trace says that it contains no work."""
    assert verdict(TraceBuilder().rank(0)).startswith("The recording contains no work; ")


def test_findings_of_several_analyses_are_listed_once() -> None:
    """Every analysis finds that a rank has no GPU work, but the summary lists this finding only once."""
    builder = gpu_job().rank(2).operator("aten::mm", start_us=0, duration_us=1)
    findings = summary(builder.build()).findings
    assert len(findings) == len(set(findings))
    assert any("rank 2" in finding for finding in findings)


def test_work_of_zero_length_has_a_verdict() -> None:
    """A kernel of 0 ns gets a verdict, without a division by zero."""
    assert verdict(TraceBuilder().kernel("gemm", start_us=0, duration_us=0)).endswith(".")


def test_partly_read_files_are_counted(tmp_path) -> None:
    """If one of two files lost an event, a doubt in the summary says which file, and how many bytes were lost."""
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
    """The first doubt names the rank of the truncated file and where the file is cut off; no finding repeats this."""
    first, _ = gpu_job().write(tmp_path)
    content = first.read_bytes()
    first.write_bytes(content[: len(content) * 2 // 3])
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    assert re.fullmatch(
        r"Rank 0's file is cut off after \d+ events, at byte \d+ of its text \(.*\); .*", job_summary.doubts[0]
    )
    assert not [finding for finding in job_summary.findings if "in part" in finding]


@pytest.mark.slow
def test_traces_of_two_jobs_are_a_doubt() -> None:
    """For files with world sizes 2 and 64, the verdict lists the files of each job, and a doubt names both sizes."""
    builder = gpu_job()
    builder.rank(1).header(distributedInfo={"rank": 1, "world_size": 64})
    job_summary = summary(builder.build())
    assert job_summary.verdict.startswith(
        "These files belong to 2 different jobs, so no single verdict applies to all of them; open "
    )
    assert re.search(r": rank 0: \S+rank0\S*; rank 1: \S+rank1\S*\.$", job_summary.verdict)
    assert job_summary.doubts == (
        "These 2 traces do not look like one job: the world sizes are 2 (rank 0), 64 (rank 1).",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "files"), [((0,), "1 file ends"), ((0, 1), "2 files end")])
def test_a_truncated_file_may_have_lost_its_gpu_work(tmp_path, cut, files) -> None:
    """For truncated files without GPU work, the verdict says it is unknown whether the job used a GPU."""
    paths = cpu_job().write(tmp_path)
    for path in (paths[rank] for rank in cut):
        content = path.read_bytes()
        path.write_bytes(content[: content.rindex(b'"ph"') + 10])
    job_summary = summary(holotrace.open_trace(tmp_path, cache=False))
    assert f", and {files} early, so it is unknown whether the job used a GPU; " in job_summary.verdict
