"""Tests of diagnosis: each cause is reported with its rank, its source line, and the time it adds to a step."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.errors import TraceNotFoundError
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job

TRACES = Path(__file__).parents[2] / "reference" / "traces"
EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"


def loading_job(*, hidden: bool = False) -> holotrace.Trace:
    """Return three steps of 100 µs in which the host loads data for 40 µs; if `hidden`, a kernel runs meanwhile."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 100 * number
        trace.step(number, begin, 100)
        trace.annotation(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start_us=begin + 10, duration_us=40
        )
        start = begin + (8 if hidden else 55)
        trace.operator("aten::mm", start_us=start - 5, duration_us=4)
        trace.kernel("gemm", start_us=start, duration_us=45, launch_us=start - 3)
    return trace.build()


def test_data_loading_costs_the_time_in_which_no_device_works() -> None:
    """No kernel runs while the host loads data for 40 of 100 µs, so the step could be 40 µs shorter."""
    found = holotrace.diagnosis(loading_job()).per_finding.row(0, named=True)

    assert (found["rule"], found["stake_ns"], found["event_count"]) == ("data_loading", 40_000, 3)
    assert found["stake_fraction"] == pytest.approx(0.4, rel=0.06)


def test_a_cause_that_costs_more_in_some_steps_is_not_judged_by_one_of_them() -> None:
    """Loading takes 20 µs in the replayed step and 40 µs in each of four other steps; the stake is the mean, 36 µs."""
    trace = TraceBuilder()
    begin = 0
    for number, loading_us in enumerate((40, 40, 40, 20, 40)):
        trace.step(number, begin, 60 + loading_us)
        trace.annotation(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start_us=begin + 10, duration_us=loading_us
        )
        start = begin + 15 + loading_us
        trace.operator("aten::mm", start_us=start - 5, duration_us=4)
        trace.kernel("gemm", start_us=start, duration_us=45, launch_us=start - 3)
        begin += 60 + loading_us
    found = holotrace.diagnosis(trace.build()).per_finding.row(0, named=True)

    assert (found["rule"], found["basis"]) == ("data_loading", "what-if")
    assert found["stake_ns"] == pytest.approx(36_000, rel=0.01)


def test_data_loading_behind_a_kernel_costs_nothing() -> None:
    """A kernel runs while the host loads data, so loading is not reported."""
    assert "data_loading" not in holotrace.diagnosis(loading_job(hidden=True)).per_finding["rule"].to_list()


def test_the_headline_divides_by_the_step() -> None:
    """The GPU is busy for 45 of 100 µs in each step."""
    row = holotrace.diagnosis(loading_job()).headline.row(0, named=True)

    assert row["step_count"] == 3
    assert row["busy_fraction"] == pytest.approx(0.45, rel=0.06)


def test_a_late_rank_costs_the_others_their_waits_and_itself_its_delay() -> None:
    """Rank 1 computes 200 µs longer in each step; without the delay, both ranks would finish 200 µs earlier."""
    found = holotrace.diagnosis(small_job()).per_finding.row(by_predicate=pl.col("rule") == "late_rank", named=True)

    assert (found["rank"], found["stake_ns"], found["rank_count"]) == (1, 200_000, 2)


@pytest.mark.parametrize(
    ("job", "rank", "line"),
    [
        ("ddp_gloo_4rank", 3, "ddp.py(35): main"),
        pytest.param("pipeline_gloo_4rank", 2, "record_pipeline_gloo.py(12): forward", marks=pytest.mark.slow),
    ],
)
def test_the_first_finding_names_the_rank_that_sleeps_and_its_line(job: str, rank: int, line: str) -> None:
    """In each recorded job, one rank sleeps and the others wait; the first finding names this rank and its `sleep`."""
    found = holotrace.diagnosis(holotrace.open_trace(TRACES / job, cache=False)).per_finding.row(0, named=True)

    assert (found["rule"], found["rank"], found["source_line"]) == ("late_rank", rank, line)
    assert "sleep" in found["finding"]


def test_a_function_that_sleeps_is_named_with_its_line() -> None:
    """In a recorded job, `load_batch` sleeps for 20 ms in each step; a replay without it saves 20 ms."""
    found = holotrace.diagnosis(holotrace.open_trace(EXAMPLES / "small-slow_loading", cache=False)).per_finding
    first = found.row(0, named=True)

    assert first["source_line"].endswith(": load_batch")
    assert first["basis"] == "what-if"
    assert first["stake_ns"] == pytest.approx(20_000_000, rel=0.05)


@pytest.mark.parametrize("name", ["triton", "amd_mi250"])
def test_the_findings_of_recorded_jobs_fit_into_the_step(name: str) -> None:
    """For two recorded jobs, the costs of all findings add up to at most the length of a step."""
    assert_fits(TRACES / name)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [TRACES, TRACES / "planted_causes", EXAMPLES], ids=lambda folder: folder.name)
def test_the_findings_of_all_recorded_jobs_fit_into_the_step(folder: Path) -> None:
    """For every recorded job, the costs of all findings add up to at most the length of a step."""
    for job in sorted(path for path in folder.iterdir() if path.is_dir()):
        with suppress(TraceNotFoundError):
            assert_fits(job)


def assert_fits(job: Path) -> None:
    """Assert that the findings cover no more time than the job's steps contain.

    The sum of `stake_ns` is at most one step; the sum of `claimed_ns` is at most one step per rank.
    """
    found = holotrace.diagnosis(holotrace.open_trace(job))
    step_ns = found.headline["step_ns"][0]
    of_ranks = found.evidence.group_by("rank").agg(pl.col("claimed_ns").sum())["claimed_ns"].to_list()

    assert found.per_finding["stake_fraction"].fill_null(0).sum() <= 1 + 1e-6, job.name
    assert (found.per_finding["stake_ns"].fill_null(0) >= 0).all(), job.name
    assert sum(of_ranks) <= found.headline["rank_count"][0] * step_ns * (1 + 1e-6), job.name


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """All tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=4, layers=2)
    result = holotrace.diagnosis(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_finding, "diagnosis/synthetic_job.per_finding")
    golden.check(result.evidence, "diagnosis/synthetic_job.evidence")
    golden.check(result.headline, "diagnosis/synthetic_job.headline")


def host_job() -> TraceBuilder:
    """Return two steps with one operator each, on a rank without a GPU."""
    trace = TraceBuilder()
    for number in range(2):
        trace.step(number, 100 * number, 100)
        trace.operator("aten::mm", start_us=100 * number + 10, duration_us=80)
    return trace


def test_a_job_without_a_gpu_gets_one_short_caveat() -> None:
    """The file describes no GPU, so the caveat does not advise how to record GPU work."""
    assert [text for text in holotrace.diagnosis(host_job().build()).findings if "GPU" in text] == [
        "rank 0: no GPU work was recorded, so only the rules about hosts and about several ranks apply"
    ]


def test_a_gpu_without_recorded_work_is_named_with_the_option_that_records_it() -> None:
    """The file describes a GPU without work, so one caveat for all device rules names the missing profiler option."""
    trace = host_job().header(deviceProperties=[{"id": 0, "name": "NVIDIA H100"}]).build()

    (caveat,) = (text for text in holotrace.diagnosis(trace).findings if "device work" in text)
    assert caveat.startswith("rank 0: cannot check ")
    assert caveat.endswith(" more rules: no device work was recorded; record with ProfilerActivity.CUDA")
