"""Tests of roofline: lower bounds, coverage, contradictions and unknown devices."""

from __future__ import annotations

import csv
from typing import Any

import polars as pl
import pytest

import holotrace
from holotrace.analyses.roofline.compute import roofline
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
PRODUCT = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
SUM = {"Input Dims": [[1 << 28], [1 << 28], []], "Input type": ["float", "float", "Scalar"]}


def job(product_us: int = 2_000, header: dict[str, Any] | None = None) -> TraceBuilder:
    """Return a product of two 8192 x 8192 matrices, a sum of two 1 GiB vectors, and an operator without a cost rule."""
    builder = TraceBuilder().header(**(H100 if header is None else header))
    builder.operator("aten::mm", start_us=0, duration_us=10, args=PRODUCT)
    builder.kernel("nvjet_tst_128x256_64x4", start_us=100, duration_us=product_us, launch_us=1)
    builder.operator("aten::add", start_us=20, duration_us=10, args=SUM)
    builder.kernel("vectorized_elementwise_kernel", start_us=3_000, duration_us=2_000, launch_us=21)
    builder.operator("mylib::op", start_us=40, duration_us=10)
    return builder.kernel("mine", start_us=6_000, duration_us=1_000, launch_us=41)


def rows(builder: TraceBuilder, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return the chosen columns of `per_operator`."""
    return roofline(builder.build(), **options).per_operator.select(columns).rows()


def test_the_longer_part_bounds_an_operator() -> None:
    """The product is bound by compute (1.0995 TFLOP at 989.4 TFLOP/s), the sum by memory (3 GiB at 3,352 GB/s)."""
    assert rows(job(), "operator", "flops", "bytes_moved", "bound", "floor_ns", "gap_ns") == [
        ("aten::add", 1 << 28, 3 << 30, "memory", 960_986, 1_039_014),
        ("aten::mm", 2 * 8192**3, 3 * (1 << 27), "compute", 1_111_291, 888_709),
        ("mylib::op", None, None, None, None, None),
    ]


def test_rates_and_shares() -> None:
    """The product attains 550 TFLOP/s on tensor cores, 56 % of the peak."""
    columns = (
        "operator",
        "flops_per_s",
        "moved_bytes_per_s",
        "flops_per_byte",
        "roofline_fraction",
        "precision",
        "uses_tensor_cores",
    )
    row = roofline(job().build()).per_operator.filter(operator="aten::mm").select(columns).row(0)
    assert row == (
        "aten::mm",
        2 * 8192**3 / 2e-3,
        3 * (1 << 27) / 2e-3,
        2 * 8192**3 / (3 * (1 << 27)),
        1_111_291 / 2_000_000,
        "bfloat16",
        True,
    )


def test_coverage_is_always_stated() -> None:
    """Costs are known for operators that take 4 of 5 ms; the finding names the operator that no rule covers."""
    result = roofline(job().build())
    assert result.per_rank.select("busy_ns", "covered_fraction", "floor_ns", "gap_ns").row(0) == (
        5_000_000,
        0.8,
        2_072_277,
        1_927_723,
    )
    assert result.findings == (
        "rank 0: costs are known for 80.0 % of the device time, not counting communication; unknown: mylib::op (1 ms): no rule covers the operator",
    )


def test_a_lower_bound_above_the_time_is_a_contradiction() -> None:
    """An H100 needs at least 1,111 µs for the product, so a time of 1,000 µs is a contradiction; a finding says so."""
    result = roofline(job(product_us=1_000).build())
    row = result.per_operator.filter(operator="aten::mm")
    assert row.select("roofline_fraction").item() > 1
    assert "faster than the peak" in row["contradiction"].item()
    assert result.per_rank["contradicted_ns"].item() == 1_000_000
    assert any("1 operator (1 ms) took less time than the lower bound" in finding for finding in result.findings)


def test_small_data_may_come_from_the_cache() -> None:
    """12 MB in 1 µs exceed the memory bandwidth; `contradiction` says that the data may come from the cache (50 MB)."""
    args = {"Input Dims": [[1 << 20], [1 << 20], []], "Input type": ["float", "float", "Scalar"]}
    builder = TraceBuilder().header(**H100).operator("aten::add", start_us=0, duration_us=5, args=args)
    ((contradiction,),) = rows(builder.kernel("add", start_us=10, duration_us=1, launch_us=1), "contradiction")
    assert "cache" in contradiction


def test_an_unknown_device_has_the_best_rates_of_the_trace() -> None:
    """For an unknown device, the best rates attained in the trace serve as peak rates, and a finding says so."""
    result = roofline(job(header={"deviceProperties": [{"id": 0, "name": "Strange 9000"}]}).build())
    assert result.peaks.select("resource", "peak_flops_per_s", "peak_bytes_per_s", "source").rows() == [
        ("bfloat16", 2 * 8192**3 / 2e-3, None, "attained in this trace"),
        ("memory", None, 3 * (1 << 30) / 2e-3, "attained in this trace"),
    ]
    assert result.per_operator["gap_ns"].to_list() == [0, 0, None]
    assert any("does not contain 'Strange 9000'" in finding for finding in result.findings)


def test_peaks_show_what_the_trace_and_the_vendor_attain() -> None:
    """The table of peaks lists the peak rate, the rate that AMD measured, and the rate attained in the trace."""
    mi300 = {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}
    peaks = roofline(job(header=mi300).build()).peaks
    columns = ("peak_flops_per_s", "attainable_flops_per_s", "attained_flops_per_s", "attained_bytes_per_s")
    assert peaks.filter(resource="bfloat16").select(columns).rows() == [(1307.4e12, 708e12, 2 * 8192**3 / 2e-3, None)]
    assert peaks.filter(resource="memory").select(columns).rows() == [(None, None, None, 3 * (1 << 30) / 2e-3)]
    assert peaks.filter(resource="float16").select(columns).rows() == [(1307.4e12, 654e12, None, None)]


def test_the_cache_does_not_show_what_the_memory_attains() -> None:
    """12 MB fit in the cache of 50 MB, so the operator's rate does not show how fast the memory is.

    The attained memory rate in the table of peaks is therefore null.
    """
    args = {"Input Dims": [[1 << 20], [1 << 20], []], "Input type": ["float", "float", "Scalar"]}
    builder = TraceBuilder().header(**H100).operator("aten::add", start_us=0, duration_us=5, args=args)
    peaks = roofline(builder.kernel("add", start_us=10, duration_us=12, launch_us=1).build()).peaks
    assert peaks.filter(resource="memory")["attained_bytes_per_s"].item() is None


def test_the_device_can_be_named() -> None:
    """`device` replaces the device name in the file; a name that is missing from the table of peaks raises an error."""
    assert rows(job(), "floor_ns", device="NVIDIA H100 PCIe")[:2] == [(1_454_380,), (1_579_807,)]
    with pytest.raises(InvalidOptionError, match="does not contain 'H100'"):
        roofline(job().build(), device="H100")


def test_missing_shapes_are_the_reason() -> None:
    """If shapes were not recorded, the reason names the profiler option that records them."""
    builder = TraceBuilder().header(**H100).operator("aten::mm", start_us=0, duration_us=5)
    ((flops, reason),) = rows(builder.kernel("gemm", start_us=10, duration_us=9, launch_us=1), "flops", "reason")
    assert flops is None
    assert "record_shapes=True" in reason


def test_products_on_ordinary_cores_are_summed() -> None:
    """The time of products on ordinary cores is in `per_rank` and in a finding."""
    builder = TraceBuilder().header(**H100).operator("aten::mm", start_us=0, duration_us=5, args=PRODUCT)
    result = roofline(builder.kernel("ampere_sgemm_128x64_tn", start_us=10, duration_us=9_000, launch_us=1).build())
    assert result.per_rank["without_tensor_cores_ns"].item() == 9_000_000
    assert any("ordinary cores" in finding for finding in result.findings)


def test_an_empty_rank_has_empty_tables() -> None:
    """Without operators, `per_operator` is empty, and the coverage is null."""
    result = roofline(TraceBuilder().annotation("nothing", start_us=0, duration_us=1).build())
    assert result.per_operator.is_empty()
    assert result.per_rank["covered_fraction"].to_list() == [None]
    assert result.answer
    assert result.plot()


COVERAGE = {
    "h100_qwen",
    "h100_bert",
    "h100_timesformer",
    "mi300_qwen",
    "mi300_bert",
    "mi300_timesformer",
    "normalization",
    "compile_triton",
}


@pytest.mark.parametrize("name", sorted(COVERAGE))
def test_nearly_all_time_of_real_models_is_known(real_traces, goldens, name) -> None:
    """Costs are known for at least 99 % of the time, and for at least as much time as TraceLens has models for.

    Busy times agree with TraceLens to within 3 %, and every contradicted lower bound is reported.
    """
    result = roofline(opened(real_traces / "models" / f"{name}.json.gz"))
    with (goldens / "tracelens" / name / "unified_perf_summary.csv").open(newline="") as file:
        rows = [
            (float(row["Kernel Time (µs)_sum"] or 0), row["has_perf_model"] == "True") for row in csv.DictReader(file)
        ]
    total, modelled = sum(time for time, _ in rows), sum(time for time, known in rows if known)
    known = result.per_rank["covered_fraction"].item()
    assert known >= 0.99
    assert known >= modelled / total
    assert result.per_rank["busy_ns"].item() / 1_000 == pytest.approx(total, rel=0.03)
    above = result.per_operator.filter(pl.col("roofline_fraction") > 1)
    assert above["contradiction"].null_count() == 0


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = roofline(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_operator, "roofline/synthetic_job.per_operator")
    golden.check(result.per_rank, "roofline/synthetic_job.per_rank")
