"""Tests of gpu_summary: how well each device is used."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened
from tb_goldens import case

H100 = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80 << 30, "computeMajor": 9, "computeMinor": 0}
METRICS = ("utilization_fraction", "sm_efficiency_fraction", "occupancy_fraction", "tensor_core_fraction")
COLUMNS = (
    "utilization_fraction",
    "unknown_fraction",
    "sm_efficiency_fraction",
    "sm_efficiency_known_fraction",
    "occupancy_fraction",
    "occupancy_known_fraction",
    "tensor_core_fraction",
)
KNOWN = ("sm_efficiency_known_fraction", "occupancy_known_fraction")


def shape(blocks_per_sm: float, occupancy: int) -> dict[str, object]:
    """Return the args that describe how a kernel fills its device."""
    return {"blocks per SM": blocks_per_sm, "est. achieved occupancy %": occupancy}


def one_device() -> TraceBuilder:
    """Return a step of 100 µs with a gemm on tensor cores (10 to 30 µs) and a relu on stream 8 (20 to 60 µs)."""
    builder = TraceBuilder().header(deviceProperties=[H100]).step(1, 0, 100)
    builder.kernel("nvjet_tst_64x8", start_us=10, duration_us=20, args=shape(0.75, 20))
    return builder.kernel("relu", start_us=20, duration_us=40, stream=8, args=shape(0.5, 50))


def test_the_metrics_of_a_device() -> None:
    """SM efficiency is (10·0.75 + 10·1 + 30·0.5) / 100 = 32.5 %; occupancy is (20·20 % + 40·50 %) / 60 = 40 %."""
    (row,) = gpu_summary(one_device().build()).per_device.to_dicts()

    assert row == {
        "rank": 0,
        "device": 0,
        "device_name": "NVIDIA H100",
        "memory_bytes": 80 << 30,
        "compute_capability": "9.0",
        "utilization_fraction": 0.5,
        "unknown_fraction": 0.0,
        "sm_efficiency_fraction": pytest.approx(0.325),
        "sm_efficiency_known_fraction": 1.0,
        "occupancy_fraction": pytest.approx(0.4),
        "occupancy_known_fraction": 1.0,
        "tensor_core_fraction": pytest.approx(1 / 3),
        "tensor_core_unknown_fraction": 0.0,
        "is_estimated": False,
        "start_ns": 0,
        "end_ns": 100_000,
    }


def test_the_metrics_over_time() -> None:
    """No kernel runs in the last of four parts of 25 µs, so its occupancy and tensor core fraction are null."""
    series = gpu_summary(one_device().build(), parts=4).series

    assert series.select(pl.col("start_ns", "end_ns") // 1_000).rows() == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert series.select(METRICS).rows() == [
        pytest.approx((15 / 25, (7.5 + 5) / 25, (15 * 0.2 + 5 * 0.5) / 20, 15 / 20)),
        pytest.approx((1.0, (5 + 10) / 25, (5 * 0.2 + 25 * 0.5) / 30, 5 / 30)),
        pytest.approx((10 / 25, 5 / 25, 0.5, 0.0)),
        (0.0, 0.0, None, None),
    ]


def test_parts_begin_and_end_exactly_with_the_steps() -> None:
    """The boundaries of the parts are exact to 1 ns; as doubles, they would be rounded to multiples of 256 ns."""
    base = 1_795_209_476_000_000_899
    builder = TraceBuilder(base_time_ns=base).step(1, 0, 100).kernel("k", start_us=0, duration_us=1)

    series = gpu_summary(builder.build(), parts=3).series

    assert series["start_ns"].to_list() == [base, base + 33_333, base + 66_666]
    assert series["end_ns"].to_list() == [base + 33_333, base + 66_666, base + 100_000]


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API, even for a device without metrics."""
    place, fractions = (
        {"rank": pl.Int32, "device": pl.Int32},
        dict.fromkeys((*COLUMNS, "tensor_core_unknown_fraction"), pl.Float64),
    )
    times = {"start_ns": pl.Int64, "end_ns": pl.Int64}
    for builder in (one_device(), TraceBuilder().kernel("k", start_us=0, duration_us=1)):
        result = gpu_summary(builder.build())
        assert result.per_device.schema == {
            **place,
            "device_name": pl.String,
            "memory_bytes": pl.Int64,
            "compute_capability": pl.String,
            **fractions,
            "is_estimated": pl.Boolean,
            **times,
        }
        assert result.series.schema == {**place, **times, **fractions}


def test_values_not_recorded_are_null_with_a_finding() -> None:
    """Without launch shapes and device properties, all metrics but utilization are null, and findings say why."""
    result = gpu_summary(TraceBuilder().kernel("triton_tem_fused_mm_0", start_us=0, duration_us=1).build())

    (row,) = result.per_device.to_dicts()
    assert [row[name] for name in METRICS] == [1.0, None, None, None]
    assert (row["tensor_core_unknown_fraction"], row["device_name"]) == (1.0, None)
    assert result.findings == (
        "rank 0: blocks per SM were not recorded, so SM efficiency is unknown",
        "rank 0: the trace has no device properties, so names and memory sizes are unknown",
    )


def test_kernels_with_unknown_cores_count_neither_as_tensor_nor_as_ordinary() -> None:
    """Of 100 µs of kernel time, 40 µs are on tensor cores and 50 µs are unknown, so the fractions are 0.4 and 0.5."""
    builder = TraceBuilder().step(1, 0, 100).kernel("nvjet_tst_64x8", start_us=0, duration_us=40)
    builder.kernel("relu", start_us=40, duration_us=10).kernel("mystery", start_us=50, duration_us=50)

    result = gpu_summary(builder.build(), parts=2)

    columns = ["tensor_core_fraction", "tensor_core_unknown_fraction"]
    assert result.per_device.select(columns).rows() == [(0.4, 0.5)]
    assert result.series.select(columns).rows() == [(0.8, 0.0), (None, 1.0)]


def test_kernels_of_unknown_shape_do_not_count_as_empty() -> None:
    """Launch shapes are known for 20 of 80 busy µs; their SM efficiency, 75 %, is also assumed for the other 60 µs."""
    builder = TraceBuilder().step(1, 0, 100).kernel("known", start_us=0, duration_us=40, args=shape(0.75, 30))
    builder.kernel("of a graph", start_us=20, duration_us=60, stream=8)

    result = gpu_summary(builder.build(), parts=5)

    (row,) = result.per_device.to_dicts()
    assert [row[name] for name in METRICS[:3]] == pytest.approx([0.8, 0.6, 0.3])
    assert [row[name] for name in KNOWN] == pytest.approx([0.25, 0.4])
    columns = ("utilization_fraction", "sm_efficiency_fraction", "sm_efficiency_known_fraction")
    assert result.series.select(columns).rows() == [
        (1.0, pytest.approx(0.75), 1.0),
        (1.0, None, 0.0),
        (1.0, None, 0.0),
        (1.0, None, 0.0),
        (0.0, 0.0, None),
    ]
    assert result.findings[0] == (
        "rank 0: on device 0, launch shapes are known for 25.0 % of the time in which kernels run; for the rest of "
        "this time, the same SM efficiency is assumed"
    )


def test_with_compat_an_unknown_shape_is_an_empty_one() -> None:
    """With `compat`, a kernel without a launch shape adds 0 to the SM efficiency, which is 0.75 · 40 / 100 = 30 %."""
    builder = TraceBuilder().step(1, 0, 100).kernel("known", start_us=0, duration_us=40, args=shape(0.75, 30))
    builder.kernel("of a graph", start_us=20, duration_us=60, stream=8)

    row = gpu_summary(builder.build(), compat="torch_tb_profiler").per_device.row(0, named=True)

    assert row["sm_efficiency_fraction"] == pytest.approx(0.3)


def test_a_known_shape_beside_an_unknown_one_does_not_count() -> None:
    """The kernel with a known shape always overlaps one with an unknown shape, so SM efficiency is unknown."""
    builder = TraceBuilder().step(1, 0, 100).kernel("of a graph", start_us=0, duration_us=60)
    builder.kernel("known", start_us=10, duration_us=40, stream=8, args=shape(0.75, 30))

    row = gpu_summary(builder.build()).per_device.row(0, named=True)

    assert (row["sm_efficiency_fraction"], row["sm_efficiency_known_fraction"]) == (None, 0.0)
    assert (row["occupancy_fraction"], row["occupancy_known_fraction"]) == (pytest.approx(0.3), pytest.approx(0.4))


def test_the_graphs_of_a_real_server(real_traces) -> None:
    """CUDA graphs launch 361 of 413 kernels, without shapes, so SM efficiency is known for only 3.9 % of the time."""
    trace = opened(real_traces / "inference/vllm_prefilldecode_piecewise/graph_execution.json.gz")

    row = gpu_summary(trace).per_device.row(0, named=True)

    assert row["sm_efficiency_fraction"] == pytest.approx(0.5, abs=0.01)
    assert row["sm_efficiency_known_fraction"] == pytest.approx(0.039, abs=0.001)


def test_on_amd_shapes_come_from_the_launch() -> None:
    """ROCm records the launch shape with the launch call.

    The grid is given in threads for hipExtModuleLaunchKernel and in blocks for hipLaunchKernel.
    """
    device = {"id": 0, "name": "AMD", "numSms": 104, "maxThreadsPerMultiprocessor": 2048}
    builder = TraceBuilder().header(deviceProperties=[device])
    for start, name, grid in ((0, "hipLaunchKernel", 52), (10, "hipExtModuleLaunchKernel", 52 * 256)):
        args = {"grid": [grid, 1, 1], "block": [256, 1, 1]}
        builder.runtime(name, start_us=start, duration_us=1, correlation=start + 1, args=args)
        builder.kernel("relu", start_us=start, duration_us=10, correlation=start + 1)

    result = gpu_summary(builder.build())

    row = result.per_device.row(0, named=True)
    assert [row[name] for name in METRICS] == pytest.approx([1.0, 0.5, 0.5 * 256 / 2048, 0.0])
    assert row["is_estimated"]
    assert "upper bound" in result.findings[0]


def test_each_device_of_each_rank_has_a_row() -> None:
    """Rank 0 has two devices and rank 1 has one; rank 2 has no kernels, and a finding says so."""
    builder = TraceBuilder()
    for rank, device, end in ((0, 1, 30), (0, 0, 10), (1, 0, 40)):
        builder.rank(rank).kernel("k", start_us=0, duration_us=end, device=device)
    builder.rank(2).operator("a", start_us=0, duration_us=1)

    result = gpu_summary(builder.build())

    columns = ("rank", "device", "utilization_fraction")
    assert result.per_device.select(columns).rows() == [(0, 0, pytest.approx(1 / 3)), (0, 1, 1.0), (1, 0, 1.0)]
    assert result.series.group_by("rank", "device").len().sort("rank", "device").rows() == [
        (0, 0, 100),
        (0, 1, 100),
        (1, 0, 100),
    ]
    assert result.findings[0].startswith("rank 2 has no GPU kernels")


def test_missing_kernels_and_zero_parts_are_errors() -> None:
    """A trace without kernels raises MissingDataError, and `parts=0` raises InvalidOptionError."""
    with pytest.raises(MissingDataError, match=r"^gpu_summary: rank 0 has no GPU kernels"):
        gpu_summary(TraceBuilder().operator("a", start_us=0, duration_us=1).build())
    with pytest.raises(InvalidOptionError, match="parts=0"):
        gpu_summary(one_device().build(), parts=0)


def test_kernels_of_two_streams_add_before_the_limit(goldens, real_traces) -> None:
    """Blocks per SM of overlapping kernels are added up, then limited to 1, as in the TensorBoard plugin."""
    trace = case("tb_edge/overlapping_kernels_two_streams_sm_eff", goldens, real_traces).trace

    assert gpu_summary(trace).per_device["sm_efficiency_fraction"].to_list() == [pytest.approx(0.31)]


def test_the_matrix_cores_of_a_real_amd_trace(goldens, real_traces) -> None:
    """Two kernels (Cijk_…_MI16x16x1) use matrix cores, for 27 % of kernel time; the TensorBoard plugin reports 0 %."""
    trace = case("tb/hta_amd_mi250/worker0@default", goldens, real_traces).trace

    assert gpu_summary(trace).per_device["tensor_core_fraction"].to_list() == [pytest.approx(0.2727, abs=1e-4)]


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """Two worker processes give the same series as a single process."""
    write_job(tmp_path, ranks=2, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert gpu_summary(trace, executor=executor).series.equals(gpu_summary(trace).series)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = gpu_summary(open_trace(tmp_path, cache=False), parts=20)
    golden.check(result.per_device, "gpu_summary/synthetic_job.per_device")
    golden.check(result.series, "gpu_summary/synthetic_job.series")
