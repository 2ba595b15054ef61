"""Tests of user_annotations: the times of annotated ranges and the kernels in them."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.analyses.user_annotations.compute import user_annotations
from holotrace.enrich.host.annotations import annotation_of_work
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job


def nested() -> TraceBuilder:
    """Return a step of 100 µs with `forward` from 10 to 50 µs on stream 7 and from 20 to 40 µs on stream 8.

    On the host, the step takes 90 µs and `forward` 30 µs.
    """
    return (
        TraceBuilder()
        .step(3, 0, 90)
        .annotation("forward", start_us=5, duration_us=30)
        .gpu_annotation("ProfilerStep#3", start_us=0, duration_us=100)
        .gpu_annotation("forward", start_us=10, duration_us=40)
        .gpu_annotation("forward", start_us=20, duration_us=20, stream=8)
        .kernel("gemm", start_us=10, duration_us=20)
        .kernel("relu", start_us=50, duration_us=10)
        .kernel("copy", start_us=25, duration_us=5, stream=8)
        .kernel("copy", start_us=45, duration_us=5, stream=8)
    )


def owners(builder: TraceBuilder) -> list[tuple[str, str | None]]:
    """Return the name and the annotation of each kernel on rank 0, in file order."""
    rank = builder.build().ranks[0]
    work = annotation_of_work(rank).join(rank.table("events", ["event_index", "name"]), on="event_index")
    ordered = work.sort("event_index")
    return list(zip(rank.texts(ordered["name"]), rank.texts(ordered["annotation"]), strict=True))


def test_times_with_and_without_inner_annotations() -> None:
    """The step's self time excludes `forward`, which takes 40 of 100 µs on stream 7 and 30 of 90 µs on the host."""
    table = user_annotations(nested().build()).per_annotation

    assert table.to_dicts() == [
        {
            "rank": 0,
            "side": side,
            "name": name,
            "call_count": calls,
            "total_ns": inclusive,
            "self_ns": exclusive,
            "kernel_count": kernels,
            "kernel_ns": kernel_ns,
            "mean_ns": inclusive / calls,
            "std_ns": pytest.approx(deviation),
            "min_ns": shortest,
            "max_ns": longest,
        }
        for side, name, calls, inclusive, exclusive, kernels, kernel_ns, deviation, shortest, longest in [
            ("gpu", "ProfilerStep#3", 1, 100_000, 60_000, 1, 10_000, 0, 100_000, 100_000),
            ("gpu", "forward", 2, 60_000, 60_000, 2, 25_000, 20_000 / 2**0.5, 20_000, 40_000),
            ("cpu", "ProfilerStep#3", 1, 90_000, 60_000, None, None, 0, 90_000, 90_000),
            ("cpu", "forward", 1, 30_000, 30_000, None, None, 0, 30_000, 30_000),
        ]
    ]


def test_kernels_belong_to_their_innermost_annotation() -> None:
    """After `forward`, a kernel on stream 7 belongs to the step, and a kernel on stream 8 to no annotation (null)."""
    assert user_annotations(nested().build()).per_kernel.rows() == [
        (0, "ProfilerStep#3", "relu", 1, 10_000),
        (0, "forward", "gemm", 1, 20_000),
        (0, "forward", "copy", 1, 5_000),
        (0, None, "copy", 1, 5_000),
    ]


def test_ranges_are_half_open() -> None:
    """If a kernel starts when one annotation ends and the next begins, it belongs to the next."""
    builder = (
        TraceBuilder()
        .gpu_annotation("a", start_us=0, duration_us=10)
        .gpu_annotation("b", start_us=10, duration_us=20)
        .kernel("first", start_us=0, duration_us=0)
        .kernel("border", start_us=10, duration_us=0)
        .kernel("longer than a", start_us=9, duration_us=5)
        .kernel("after", start_us=30, duration_us=0)
    )
    assert owners(builder) == [("first", "a"), ("border", "b"), ("longer than a", "a"), ("after", None)]


def test_devices_are_apart() -> None:
    """An annotation on stream 7 of device 0 does not contain a kernel on stream 7 of device 1."""
    builder = TraceBuilder().gpu_annotation("a", start_us=0, duration_us=10)
    builder.kernel("here", start_us=1, duration_us=1).kernel("there", start_us=1, duration_us=1, device=1)
    assert owners(builder) == [("here", "a"), ("there", None)]


def without_projection() -> TraceBuilder:
    """Return `inner` (10 to 20 µs) inside `outer` (0 to 50 µs) on the host, with launches at 12, 15 and 30 µs."""
    return (
        TraceBuilder()
        .annotation("outer", start_us=0, duration_us=50)
        .annotation("inner", start_us=10, duration_us=10)
        .kernel("x", start_us=100, duration_us=10, launch_us=12)
        .kernel("y", start_us=105, duration_us=10, launch_us=15, stream=8)
        .kernel("z", start_us=130, duration_us=10, launch_us=30)
        .kernel("unknown", start_us=150, duration_us=10)
    )


def test_annotations_are_projected_where_the_profiler_did_not() -> None:
    """If the trace has no GPU annotations, they are derived from the kernels launched in each host annotation."""
    result = user_annotations(without_projection().build())
    table = result.per_annotation.filter(pl.col("side") == "gpu")
    columns = ("name", "call_count", "total_ns", "self_ns", "kernel_count")
    assert table.select(columns).rows() == [("inner", 2, 20_000, 20_000, 2), ("outer", 2, 50_000, 30_000, 1)]
    assert result.findings == ("rank 0: GPU annotations are derived from launches, because the profiler recorded none",)


def test_work_belongs_to_the_annotation_that_launched_it() -> None:
    """A kernel belongs to the annotation in which it was launched, even if it runs after the annotation."""
    names = [pair for pair in owners(without_projection()) if not pair[0].startswith("cuda")]
    assert names == [("x", "inner"), ("y", "inner"), ("z", "outer"), ("unknown", None)]


def test_a_thread_without_annotations_works_for_the_one_that_waits() -> None:
    """A kernel that autograd launches on thread 2 while the main thread is in `backward` belongs to `backward`."""
    builder = TraceBuilder().annotation("backward", start_us=0, duration_us=50)
    builder.kernel("grad", start_us=30, duration_us=10, launch_us=12, thread=2)
    builder.annotation("own", start_us=60, duration_us=5, thread=2)
    builder.kernel("more", start_us=70, duration_us=10, launch_us=62, thread=2)
    assert [pair for pair in owners(builder) if not pair[0].startswith("cuda")] == [
        ("grad", "backward"),
        ("more", "own"),
    ]


def test_names_are_chosen_by_regular_expressions() -> None:
    """`allow=["^for"]` keeps only the annotation `forward` and its kernels."""
    result = user_annotations(nested().build(), allow=["^for", r"^x\d$"])
    assert set(result.per_annotation["name"]) == {"forward"}
    assert set(result.per_kernel["annotation"]) == {"forward"}


def test_steps_can_be_merged() -> None:
    """`merge_steps` merges `ProfilerStep#1` and `ProfilerStep#2` but not `ProfilerStep#2 of mine`."""
    builder = (
        TraceBuilder().step(1, 0, 10).step(2, 20, 30).annotation("ProfilerStep#2 of mine", start_us=60, duration_us=1)
    )
    table = user_annotations(builder.build(), merge_steps=True).per_annotation
    assert table.select("name", "call_count", "total_ns").rows() == [
        ("ProfilerStep", 2, 40_000),
        ("ProfilerStep#2 of mine", 1, 1_000),
    ]


@pytest.mark.parametrize(
    ("allow", "message"),
    [
        (["(", "x"], "is not a regular expression"),
        (["nothing"], "no annotation matches 'nothing'; available: ProfilerStep#3, forward"),
    ],
)
def test_an_expression_that_is_invalid_or_matches_nothing_is_an_error(allow, message) -> None:
    """An invalid expression is an error; if an expression matches nothing, the error lists the names."""
    with pytest.raises(InvalidOptionError, match=message):
        user_annotations(nested().build(), allow=allow)


def test_a_rank_without_annotations_is_a_finding() -> None:
    """A rank without annotations has a finding, and its kernel has a row with a null annotation."""
    result = user_annotations(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert result.per_annotation.is_empty()
    assert result.per_kernel.rows() == [(0, None, "gemm", 1, 1_000)]
    assert result.findings == (
        "rank 0: no user annotations; mark parts of the program with torch.profiler.record_function",
    )


def test_a_job_without_gpu_work_has_its_cpu_side() -> None:
    """If the trace has only a host annotation, the annotation has a row, and no error is raised."""
    result = user_annotations(TraceBuilder().annotation("load", start_us=0, duration_us=5).build())
    assert result.per_annotation.select("side", "name", "total_ns").rows() == [("cpu", "load", 5_000)]
    assert result.per_kernel.is_empty()


def test_time_does_not_grow_with_kernels_times_annotations() -> None:
    """With 20,000 kernels and annotations, a join of all pairs would have 400 million rows and exceed memory."""
    builder = TraceBuilder()
    for number in range(20_000):
        builder.gpu_annotation(f"part {number % 9}", start_us=10 * number, duration_us=9)
        builder.kernel("gemm", start_us=10 * number + 1, duration_us=1)
    trace = builder.build()
    trace.ranks[0].table("events")
    table = user_annotations(trace).per_annotation
    assert table["kernel_count"].sum() == 20_000


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = user_annotations(open_trace(tmp_path, cache=False))
    golden.check(result.per_annotation, "user_annotations/synthetic_job.per_annotation")
    golden.check(result.per_kernel, "user_annotations/synthetic_job.per_kernel")
