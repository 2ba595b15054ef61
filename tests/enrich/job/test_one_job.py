"""Tests of the warnings that the traces in a folder may be incomplete or from several jobs."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import holotrace
from holotrace.enrich.job.one_job import MOST_NAMED, wholeness
from holotrace.testing.builder import TraceBuilder

SECOND_US = 1_000_000
V100 = [{"id": 0, "name": "Tesla V100-SXM2-32GB"}]
NO_SIZE = {"distributedInfo": None}
A100 = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]

SINGLE_JOBS = (
    *("dlrm_8rank", "ddp_gloo_4rank", "pipeline_gloo_4rank", "two_rank_128", "diff/control", "diff/test", "cpu_only"),
    *("amd_mi250", "triton", "mtia_inference", "critical_path/alexnet", "tensorboard/resnet50_num_workers_0"),
)


def job(ranks: int = 2, world_size: int | None = None, apart_us: int = 0, **header: object) -> TraceBuilder:
    """Return ranks with one kernel of 100 µs each; each rank starts `apart_us` after the previous rank's end."""
    builder = TraceBuilder(base_time_ns=1_700_000_000_000_000_000)
    for rank in range(ranks):
        builder.rank(rank).header(**header)
        builder.kernel("gemm", start_us=rank * (100 + apart_us), duration_us=100)
        if world_size is not None:
            builder.header(distributedInfo={"rank": rank, "world_size": world_size, "backend": "nccl"})
    return builder


def sentences_of(builder: TraceBuilder) -> tuple[str, ...]:
    """Return the warnings about a built job."""
    return wholeness(builder.build()).sentences


def opened(folder: Path) -> tuple[str, ...]:
    """Return the warnings about the traces in a folder."""
    return wholeness(holotrace.open_trace(folder, cache=False)).sentences


@pytest.mark.parametrize("ranks", [1, 2, 16])
def test_a_job_gives_no_reasons(ranks) -> None:
    """A job of 1, 2 or 16 ranks causes no warning."""
    assert sentences_of(job(ranks)) == ()


@pytest.mark.parametrize("name", SINGLE_JOBS)
def test_a_real_job_gives_no_reasons(real_traces, name) -> None:
    """Slightly different clocks, missing ranks, and unnamed hosts and devices cause no warning."""
    assert opened(real_traces / name) == ()


def test_traces_of_different_times_are_not_one_job() -> None:
    """Recordings 9 s apart may be from one job whose clocks differ; recordings 60 s apart are from two jobs."""
    assert sentences_of(job(apart_us=9 * SECOND_US)) == ()
    (sentence,) = sentences_of(job(apart_us=60 * SECOND_US))
    times = "2023-11-14 22:13:20 UTC (rank 0), 2023-11-14 22:14:20 UTC (rank 1)"
    assert sentence == f"These 2 traces do not look like one job: they were recorded at {times}."


def test_a_long_recording_joins_the_others() -> None:
    """Two recordings 60 s apart are from one job if the recording of a third rank spans both."""
    builder = job(apart_us=60 * SECOND_US)
    builder.rank(2).kernel("gemm", start_us=0, duration_us=61 * SECOND_US)
    assert sentences_of(builder) == ()


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (
            {"distributedInfo": {"rank": 1, "world_size": 8, "backend": "nccl"}},
            "the world sizes are 2 (rank 0), 8 (rank 1)",
        ),
        (
            {"distributedInfo": {"rank": 1, "world_size": 2, "backend": "gloo"}},
            "the backends are nccl (rank 0), gloo (rank 1)",
        ),
    ],
)
def test_properties_of_a_job_distinguish_jobs(header, sentence) -> None:
    """The warning names each property that differs, and its values on the ranks."""
    builder = job(deviceProperties=V100, cuda_runtime_version=12040)
    builder.rank(1).header(**header)
    assert sentences_of(builder) == (f"These 2 traces do not look like one job: {sentence}.",)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"deviceProperties": A100}, "the GPUs are Tesla V100-SXM2-32GB (rank 0), NVIDIA A100-SXM4-80GB (rank 1)"),
        ({"cuda_runtime_version": 11080}, "the runtimes are CUDA 12040 (rank 0), CUDA 11080 (rank 1)"),
    ],
)
def test_hardware_distinguishes_jobs_of_unknown_size(header, sentence) -> None:
    """Files recorded on different hardware are from two jobs, unless both say that their job has two ranks."""
    unknown, known = (job(deviceProperties=V100, cuda_runtime_version=12040, **size) for size in (NO_SIZE, {}))
    for builder in (unknown, known):
        builder.rank(1).header(**header)
    assert sentences_of(unknown) == (f"These 2 traces do not look like one job: {sentence}.",)
    assert sentences_of(known) == ()


def test_files_of_single_ranks_are_jobs_of_their_own() -> None:
    """Two files that both say that their job has only one rank are from two jobs."""
    trace = job(world_size=1).build()
    whole = wholeness(trace)
    assert whole.sentences == ("These 2 traces do not look like one job: ranks 0-1 each recorded a world size of 1.",)
    assert whole.jobs == tuple(f"rank {rank}: {trace.ranks[rank].source}" for rank in (0, 1))


def test_ranks_that_agree_are_one_of_the_jobs() -> None:
    """Three ranks with world size 4 and two ranks with world size 8, recorded at the same time, are from two jobs."""
    builder = job(ranks=5, world_size=4)
    for rank in (1, 4):
        builder.rank(rank).header(distributedInfo={"rank": rank, "world_size": 8, "backend": "nccl"})
    assert [line.split(":")[0] for line in wholeness(builder.build()).jobs] == ["ranks 0, 2-3", "ranks 1, 4"]


@pytest.mark.parametrize(
    "header",
    [
        {"distributedInfo": None},
        {"deviceProperties": []},
        {"deviceProperties": [{"id": 0, "name": 7}]},
        {"cuda_runtime_version": "?"},
        {"host_name": "another"},
        {"traceName": "x.json"},
    ],
)
def test_unknown_properties_are_no_reason(header) -> None:
    """Missing or invalid properties, different hosts and different trace names cause no warning."""
    builder = job(deviceProperties=V100, cuda_runtime_version=12040)
    builder.rank(1).header(**header)
    assert sentences_of(builder) == ()


def test_only_the_first_of_many_groups_are_named() -> None:
    """For 20 recordings one minute apart, the warning lists the first times and counts the others."""
    (sentence,) = sentences_of(job(ranks=20, apart_us=60 * SECOND_US))
    assert sentence.endswith(f"(rank {MOST_NAMED - 1}), {20 - MOST_NAMED} more.")


@pytest.mark.parametrize(("first", "second"), [("diff/control", "diff/test"), ("dlrm_8rank", "ddp_gloo_4rank")])
def test_real_jobs_in_one_folder_are_distinguished(real_traces, tmp_path, first, second) -> None:
    """If two real jobs are copied to one folder, the warning says that they differ in time and world size."""
    for name in (first, second):
        for path in (real_traces / name).iterdir():
            shutil.copy(path, tmp_path / path.name)
    sentence = opened(tmp_path)[0]
    assert "do not look like one job: they were recorded at 20" in sentence
    assert "the world sizes are" in sentence


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_a_file_that_is_cut_off_is_named_with_its_position(tmp_path, form) -> None:
    """The warning gives the byte at which a file ends in the middle of an event or of the gzip stream."""
    _, path = job().write(tmp_path)
    content = path.read_bytes()
    if form == "gzip":
        path.unlink()
        path = path.with_suffix(".json.gz")
        content = gzip.compress(content)
    path.write_bytes(content[: len(content) - 40])
    (sentence,) = opened(tmp_path)
    assert sentence.startswith("Rank 1's file is cut off after ")
    assert f"({path.name}); what came later is missing." in sentence
    assert ", at byte " in sentence


def test_a_file_without_its_end_is_cut_off(tmp_path) -> None:
    """A file is cut off if its closing text is missing, even if its last event is complete."""
    _, path = job().write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"}", 0, content.rindex(b"]")) + 1])
    (sentence,) = opened(tmp_path)
    assert sentence.startswith("Rank 1's file is cut off after ")


def test_a_list_of_events_may_stay_open(tmp_path) -> None:
    """Tools that append events never close the list with `]`, so a file without `]` is not reported as cut off."""
    (tmp_path / "rank0.json").write_text('[{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":2}\n')
    assert opened(tmp_path) == ()


def test_only_the_first_of_many_cut_off_files_are_named(tmp_path) -> None:
    """If many files are cut off, the warnings name the first `MOST_NAMED` files and give the number of the others."""
    for path in job(ranks=MOST_NAMED + 3).write(tmp_path):
        path.write_bytes(path.read_bytes()[:-40])
    sentences = opened(tmp_path)
    assert len(sentences) == MOST_NAMED + 1
    assert sentences[-1] == "3 more files are cut off; run holotrace check to see where."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rank2.json.gz", gzip.compress(b"x" * 1_000)[:20]),
        ("rank2.json", b""),
        ("host_1.1700000000000.pt.trace.json", b"\0" * 500),
        ("rank2.json", b'{"schemaVersion": 1, "deviceProp'),
    ],
    ids=["cut in its first block", "empty", "a hole", "cut in its header"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content) -> None:
    """A file that looks like a trace but has no complete event is reported by name, without its folder."""
    job().write(tmp_path)
    (tmp_path / name).write_bytes(content)
    (sentence,) = opened(tmp_path)
    assert sentence.startswith(f"1 file could not be read and is left out: {name} (")
    assert str(tmp_path) not in sentence


@pytest.mark.parametrize(
    ("name", "content"), [("config.json", b'{"lr": 1}'), ("notes.txt", b""), ("rank0.log", b"done"), ("data.json", b"")]
)
def test_other_files_are_ignored(tmp_path, name, content) -> None:
    """Settings, notes and logs in the folder cause no warning."""
    job().write(tmp_path)
    (tmp_path / name).write_bytes(content)
    assert opened(tmp_path) == ()


def test_files_of_several_jobs_that_claim_one_rank_are_named(tmp_path) -> None:
    """Two files say they are from rank 0, but their names differ in more than numbers, so they are from two jobs."""
    for name in ("baseline_rank0", "larger_batch_rank0"):
        [path] = job(ranks=1).write(tmp_path / "written")
        path.rename(tmp_path / f"{name}.json")
    (sentence,) = opened(tmp_path)
    assert sentence.startswith("Several files claim to be rank 0, such as ")


@pytest.mark.parametrize(
    "names",
    [
        ("rank0.1700000000000.pt.trace.json", "rank0.1700000060000.pt.trace.json"),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json", "rank-0.May_04_08_51_38.1102.pt.trace.json"),
        ("trace_rank0_step10.json", "trace_rank0_step20.json"),
    ],
)
def test_several_recordings_of_one_process_are_no_reason(tmp_path, names) -> None:
    """A profiler schedule writes several files per rank whose names differ only in numbers; this causes no warning."""
    for name in names:
        [path] = job(ranks=1).write(tmp_path / "written")
        path.rename(tmp_path / name)
    assert opened(tmp_path) == ()


def test_a_store_gives_the_same_reasons(tmp_path) -> None:
    """A store gives the same warnings about cut-off, unreadable and duplicate files as the folder."""
    folder = tmp_path / "job"
    paths = job(ranks=3).write(folder)
    paths[2].write_bytes(paths[2].read_bytes()[:-40])
    (folder / "rank7.json").write_bytes(b"")
    shutil.copy(paths[0], folder / "another_rank0.json")
    trace = holotrace.open_trace(folder, cache=False)
    holotrace.write_store(trace, tmp_path / "job.store")

    sentences = wholeness(trace).sentences
    assert len(sentences) == 3
    assert opened(tmp_path / "job.store") == sentences
