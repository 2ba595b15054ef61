"""Tests of step_time: the time of each step, divided into categories."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holotrace
from holotrace.analyses.step_time.compute import CATEGORIES, step_time
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from tb_goldens import case

TIMES = [f"{category}_part_ns" for category in CATEGORIES]


def one_step() -> TraceBuilder:
    """Return a step of 100 µs in which events of all categories overlap.

    On the host, an operator (0 to 60 µs) contains a launch call (5 to 15 µs), and a data loader follows (60 to 75 µs).
    The device runs a kernel (20 to 40 µs), a copy (35 to 50 µs), a memset (48 to 52 µs) and
    an all-reduce (45 to 70 µs).
    """
    builder = TraceBuilder().step(7, 0, 100).operator("aten::mm", start_us=0, duration_us=60)
    builder.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start_us=60, duration_us=15)
    builder.kernel("gemm", start_us=20, duration_us=20, launch_us=5, launch_duration_us=10)
    builder.copy(start_us=35, duration_us=15, stream=8).memset(start_us=48, duration_us=4, stream=9)
    return builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start_us=45, duration_us=25, stream=20)


def test_overlapping_time_counts_for_the_first_category_that_fits() -> None:
    """Time covered by several events counts toward their first category in CATEGORIES; the last 25 µs are `other`."""
    result = step_time(one_step().build())

    assert result.per_step.to_dicts() == [
        {
            "rank": 0,
            "step": 7,
            "start_ns": 0,
            "end_ns": 100_000,
            "duration_ns": 100_000,
            "kernel_part_ns": 20_000,
            "memcpy_part_ns": 10_000,
            "memset_part_ns": 2_000,
            "communication_part_ns": 18_000,
            "runtime_part_ns": 10_000,
            "dataloader_part_ns": 5_000,
            "cpu_part_ns": 10_000,
            "other_part_ns": 25_000,
        }
    ]
    assert result.mean["category"].to_list() == list(CATEGORIES)
    assert result.mean["fraction"].to_list() == pytest.approx([0.2, 0.1, 0.02, 0.18, 0.1, 0.05, 0.1, 0.25])
    assert result.findings == ()


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = step_time(one_step().build())

    times = dict.fromkeys(("start_ns", "end_ns", "duration_ns", *TIMES), pl.Int64)
    assert result.per_step.schema == {"rank": pl.Int32, "step": pl.Int64, **times}
    numbers = {"mean_ns": pl.Float64, "fraction": pl.Float64}
    assert result.mean.schema == {"rank": pl.Int32, "category": pl.String, **numbers}


def test_events_count_for_their_category() -> None:
    """Driver calls count as runtime, and gloo annotations as communication; other annotations have no category."""
    builder = TraceBuilder().step(1, 0, 100)
    builder.runtime("cuLaunchKernel", start_us=0, duration_us=7)
    builder.annotation("gloo:all_reduce", start_us=10, duration_us=11)
    builder.annotation("nccl:all_reduce", start_us=30, duration_us=10)
    builder.annotation("my part", start_us=40, duration_us=10)
    builder.gpu_annotation("ProfilerStep#1", start_us=0, duration_us=90)
    builder.gpu_annotation("nccl:all_reduce", start_us=50, duration_us=40)

    row = step_time(builder.build()).per_step.row(0, named=True)

    assert (row["runtime_part_ns"], row["communication_part_ns"], row["other_part_ns"]) == (7_000, 11_000, 82_000)


@pytest.mark.parametrize(
    "name",
    [
        "Optimizer.step#SGD.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        "DataParallel.forward",
        "DistributedDataParallel.forward",
        "nccl:all_reduce",
        "[pl][profile]run_training_batch",
    ],
)
def test_a_region_is_not_an_operator_whatever_its_category(name: str) -> None:
    """Ranges of optimizers, DDP, nccl and Lightning do not count as CPU time; only the operators inside them do."""
    for add in (TraceBuilder.annotation, TraceBuilder.operator):
        builder = add(TraceBuilder().step(1, 0, 100), name, start_us=10, duration_us=50)
        row = step_time(builder.operator("aten::add_", start_us=20, duration_us=5).build()).per_step.row(0, named=True)
        assert (row["cpu_part_ns"], row["other_part_ns"]) == (5_000, 95_000)


def test_the_mean_is_over_the_steps_of_each_rank() -> None:
    """On rank 1, operators take 10 µs of the first step and 0 µs of the second, so their mean is 5 µs."""
    builder = TraceBuilder().step(1, 0, 40).operator("a", start_us=0, duration_us=40).rank(1)
    builder.step(1, 0, 10).operator("a", start_us=0, duration_us=10).step(2, 10, 30)

    mean = step_time(builder.build()).mean.filter(pl.col("category").is_in(["cpu", "other"]))

    assert mean.rows() == [
        (0, "cpu", 40_000, 1),
        (0, "other", 0, 0),
        (1, "cpu", 5_000, 0.25),
        (1, "other", 15_000, 0.75),
    ]


def test_annotations_can_replace_steps() -> None:
    """The ranges of an annotation are numbered from 0; an unknown name raises an error that lists the known names."""
    builder = (
        TraceBuilder().annotation("part", start_us=0, duration_us=4).annotation("part", start_us=10, duration_us=6)
    )
    trace = builder.build()

    assert step_time(trace, annotation="part").per_step.select("step", "duration_ns").rows() == [(0, 4_000), (1, 6_000)]
    with pytest.raises(InvalidOptionError, match="no annotation 'path' in this trace; its annotations are: part"):
        step_time(trace, annotation="path")
    with pytest.raises(InvalidOptionError, match="annotation='part' cannot be combined with compat="):
        step_time(trace, annotation="part", compat="torch_tb_profiler")


def test_findings_name_what_was_not_recorded() -> None:
    """Findings report missing steps, GPU work or operators, and final steps whose device work was not recorded."""
    cut = TraceBuilder().operator("a", start_us=0, duration_us=1).step(1, 0, 9).step(2, 10, 9)
    cut.kernel("k", start_us=5, duration_us=1, launch_us=2)
    builder = cut.rank(1).kernel("k", start_us=0, duration_us=9).rank(2).operator("a", start_us=0, duration_us=9)

    assert step_time(builder.build()).findings == (
        "rank 0: 1 step is ignored at the end, because the device work was not recorded",
        "ranks 1-2: no steps were recorded, so the whole recording counts as step 0; call prof.step() after each step",
        "rank 1: no operators were recorded; record with ProfilerActivity.CPU",
        "rank 2: no device work was recorded; if the job used a device, record with ProfilerActivity.CUDA",
    )


def test_a_rank_of_kernels_alone_is_one_step(goldens, real_traces) -> None:
    """If a rank has only kernels, its recording counts as one step of 100 µs; the plugin reports a negative length."""
    trace = case("tb_edge/gpu_only_trace", goldens, real_traces).trace

    (row,) = step_time(trace).per_step.iter_rows(named=True)
    assert (row["step"], row["kernel_part_ns"], row["duration_ns"]) == (0, 90_000, 100_000)


def test_nothing_at_all_is_an_error() -> None:
    """If the trace has no events, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match="step_time: rank 0 has neither steps nor operators"):
        step_time(TraceBuilder().build())


EDGE = {
    "user_annotation_counts_as_cpu": ({"cpu": 20, "other": 80}, {"cpu": 80, "other": 20}),
    "comm_11pct_ddp_gloo": ({"communication": 12, "cpu": 2}, {"communication": 12, "cpu": 68}),
}
"""The µs per category in the first step of each case, by default and with `compat`."""


@pytest.mark.parametrize("name", EDGE)
def test_edge_cases_of_the_plugin(name: str, goldens, real_traces) -> None:
    """The plugin divides these steps wrongly; the default result is correct, and `compat` reproduces the plugin."""
    trace = case(f"tb_edge/{name}", goldens, real_traces).trace
    for compat, expected in zip((None, "torch_tb_profiler"), EDGE[name], strict=True):
        row = step_time(trace, compat=compat).per_step.row(0, named=True)
        assert {category: row[f"{category}_part_ns"] / 1_000 for category in expected} == expected


ranges = st.lists(
    st.tuples(st.sampled_from(["operator", "kernel", "copy", "memset"]), st.integers(0, 50), st.integers(0, 30)),
    max_size=15,
)


@given(ranges, st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_categories_add_up_to_the_step(rows: list[tuple[str, int, int]], lengths: list[int]) -> None:
    """For random events, the categories add up exactly to the step, and none is negative."""
    builder = TraceBuilder()
    start = 0
    for number, length in enumerate(lengths):
        builder.step(number, start, length)
        start += length
    for kind, begin, duration in rows:
        launch = {} if kind == "operator" else {"launch_us": begin / 2}
        getattr(builder, kind)("x", start_us=begin, duration_us=duration, **launch)

    per_step = step_time(builder.build()).per_step

    assert per_step.select(pl.sum_horizontal(TIMES)).to_series().to_list() == per_step["duration_ns"].to_list()
    assert per_step.select(pl.min_horizontal(TIMES).min()).item() >= 0


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """The table is the same with two worker processes as in one process."""
    write_job(tmp_path, ranks=2, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert step_time(trace, executor=executor).per_step.equals(step_time(trace).per_step)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = step_time(open_trace(tmp_path, cache=False))
    golden.check(result.per_step, "step_time/synthetic_job.per_step")
    golden.check(result.mean, "step_time/synthetic_job.mean")
