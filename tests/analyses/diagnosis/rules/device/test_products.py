"""Tests of the rules about matrix products: alignment, precision, tensor cores, and speed."""

from __future__ import annotations

import pytest

from device_jobs import BFLOAT16, FLOAT32, H100, V100, DeviceJob, cases_of, missing_for, recorded, said
from holotrace.testing.builder import TraceBuilder

SIMT = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_ffma_aligna4"


def floor_us(rows: int, inner: int, columns: int, tflops: float) -> float:
    """Return the time (µs) that a matrix product takes at `tflops`."""
    return 2 * rows * inner * columns / tflops / 1e6


def test_a_row_of_8191_elements_is_not_aligned() -> None:
    """A 4096 x 1024 x 8191 product takes 600 µs; it would take 115.7 µs at 60 % of the peak, and 79.8 µs at 87 %."""
    (case,) = cases_of(DeviceJob().product(4096, 1024, 8191, duration_us=600).build(), "unaligned_products").values()

    at_peak_us = floor_us(4096, 1024, 8191, 989.4)
    assert case.value * 1000 == pytest.approx(600 - at_peak_us / 0.6, rel=0.01)
    assert case.cost_ns == pytest.approx(1000 * (600 - at_peak_us / 0.87), rel=0.01)
    assert case.saved_ns is not None
    assert case.is_at_most
    assert (case.words["length"], case.words["multiple"]) == (8191, 8)


def test_an_aligned_product_or_a_fast_one_is_not_reported() -> None:
    """Not reported: a product with rows of 8192 elements, and an unaligned product that reaches 60 % of the peak."""
    for columns, duration_us in ((8192, 600), (8191, 115)):
        job = DeviceJob().product(4096, 1024, columns, duration_us=duration_us)
        assert not cases_of(job.build(), "unaligned_products")


def test_tokens_need_not_be_aligned() -> None:
    """A product with an odd number of rows is not reported, because each row is still aligned."""
    assert not cases_of(DeviceJob().product(4095, 1024, 8192, duration_us=600).build(), "unaligned_products")


def test_float32_products_on_ordinary_cores_could_use_tf32() -> None:
    """A 4096³ product takes 900 µs; at 87 % of the TF32 peak, it would take 319 µs, so at most 581 µs can be saved."""
    job = DeviceJob().product(4096, 4096, 4096, duration_us=900, kernel=SIMT, type=FLOAT32)
    (case,) = cases_of(job.build(), "tf32_off").values()

    assert case.cost_ns == pytest.approx(1000 * (900 - floor_us(4096, 4096, 4096, 494.7) / 0.87), rel=0.01)


def test_v100_has_neither_tf32_nor_bfloat16() -> None:
    """On a V100, the advice for a slow float32 product is float16 with loss scaling."""
    job = (
        DeviceJob(V100).product(2048, 2048, 2048, duration_us=900, kernel="volta_sgemm_128x64_nn", type=FLOAT32).build()
    )

    assert not cases_of(job, "tf32_off")
    advice = said(job, "mixed_precision_off").advice
    assert "float16" in advice
    assert "bfloat16)" not in advice
    assert "GradScaler" in advice


def test_products_in_bfloat16_need_no_other_precision() -> None:
    """No rule reports a fast bfloat16 product that takes less than half of the step."""
    job = DeviceJob().product(4096, 4096, 4096, duration_us=200).build()

    for rule in ("tf32_off", "mixed_precision_off", "float8_possible", "ordinary_cores", "slow_products"):
        assert not cases_of(job, rule)


def test_float8_is_offered_where_large_products_fill_the_step() -> None:
    """Two large bfloat16 products fill the step; FP8 is at most twice as fast, so at most half of the time is saved."""
    job = DeviceJob()
    for start_us in (5, 505):
        job.product(8192, 8192, 2560, duration_us=490, start_us=start_us)
    (case,) = cases_of(job.build(), "float8_possible").values()

    assert case.value * 1000 == pytest.approx(floor_us(8192, 8192, 2560, 989.4), rel=0.02)
    assert case.cost_ns == pytest.approx(490_000, rel=0.01)


def test_float8_gains_nothing_if_the_host_falls_behind() -> None:
    """The device needs 490 µs per step but the host 800 µs, so faster products would not help."""
    shapes = {"Input Dims": [[8192, 8192], [8192, 2560]], "Input type": [BFLOAT16, BFLOAT16]}
    trace = TraceBuilder().header(deviceProperties=[dict(H100)])
    for number in range(3):
        begin = 800 * number
        trace.step(number, begin, 800).operator("aten::mm", start_us=begin + 10, duration_us=20, args=shapes)
        placement = {"start_us": 2500 + 500 * number, "duration_us": 490, "launch_us": begin + 12}
        trace.kernel("nvjet_sm90_tst_128x128", **placement)

    assert cases_of(trace.build(), "host_falls_behind")
    assert not cases_of(trace.build(), "float8_possible")


def test_sixteen_bits_on_ordinary_cores() -> None:
    """A bfloat16 product is reported because the name of its kernel shows that it runs on ordinary cores."""
    job = DeviceJob().product(4096, 1024, 1024, duration_us=300, kernel="cutlass::Kernel<OpClassSimt_gemm>").build()
    (case,) = cases_of(job, "ordinary_cores").values()

    assert case.cost_ns == pytest.approx(1000 * (300 - floor_us(4096, 1024, 1024, 989.4) / 0.87), rel=0.01)


def test_a_slow_product_and_one_that_is_too_short_to_tell() -> None:
    """A product of 300 µs that could take 14.5 µs is reported; products of 15 µs are too short to judge."""
    slow = DeviceJob().product(4096, 1024, 1712, duration_us=300).build()
    short = DeviceJob()
    for start_us in range(10, 410, 20):
        short.product(128, 1024, 1024, duration_us=15, start_us=start_us)

    (case,) = cases_of(slow, "slow_products").values()
    assert case.cost_ns == pytest.approx(1000 * (300 - floor_us(4096, 1024, 1712, 989.4) / 0.87), rel=0.01)
    assert not cases_of(short.build(), "slow_products")


def test_what_the_vendor_measured_limits_what_slow_products_typically_reach() -> None:
    """On an MI300X, a product is compared with the 708 TFLOP/s that AMD measured, not with 60 % of the peak."""
    job = DeviceJob({**H100, "name": "AMD Instinct MI300X"}).product(4096, 1024, 1712, duration_us=300).build()
    (case,) = cases_of(job, "slow_products").values()
    assert case.value * 1000 == pytest.approx(300 - floor_us(4096, 1024, 1712, 708), rel=0.01)


def test_without_shapes_only_the_names_decide() -> None:
    """On a V100, tensor cores are up to eight times as fast, so they may save 525 of the 600 µs of a product.

    An attention kernel on tensor cores does not change the finding, because attention uses tensor cores by default,
    even in float32. If any other kernel uses tensor cores, nothing is reported.
    """
    job = DeviceJob(V100).call("aten::mm", "volta_sgemm_128x64_nn", start_us=10, duration_us=600)
    (case,) = cases_of(job.build(), "tensor_cores_unused").values()
    assert case.cost_ns == pytest.approx(525_000, rel=0.01)

    job.call("aten::_scaled_dot_product_efficient_attention", "fmha_cutlassF_f32_sm70", start_us=650, duration_us=20)
    assert cases_of(job.build(), "tensor_cores_unused")

    job.call("aten::mm", "volta_h884gemm_128x64_nn", start_us=700, duration_us=20)
    assert not cases_of(job.build(), "tensor_cores_unused")


def test_missing_shapes_and_unknown_devices_are_named() -> None:
    """If shapes were not recorded or the device is unknown, the message says how to provide them."""
    without_shapes = DeviceJob().call("aten::mm", "nvjet_sm90_tst", start_us=10, duration_us=600).build()
    unknown = DeviceJob({**H100, "name": "GPU 9000"}).product(4096, 1024, 8191, duration_us=600).build()

    assert "record_shapes=True" in (missing_for(without_shapes, "slow_products") or "")
    assert "HOLOTRACE_DEVICES" in (missing_for(unknown, "slow_products") or "")


@pytest.mark.parametrize(
    ("job", "rule", "saved_ms", "most_ms"),
    [
        ("training-full_precision", "tf32_off", 27.104 - 8.425, 20),
        ("training-odd_shapes", "unaligned_products", 12.366 / 2 - 9.533 / 2, 1.8),  # difference in device time
        ("training-tf32", "mixed_precision_off", 8.425 - 5.880, 4.3),
    ],
)
def test_what_recorded_jobs_can_save(job: str, rule: str, saved_ms: float, most_ms: float) -> None:
    """The reported cost is slightly more than the time saved in a second recording, in which the mistake is fixed."""
    (case,) = cases_of(recorded(job), rule).values()

    assert 0.98 * saved_ms <= case.cost_ns / 1e6 <= most_ms


@pytest.mark.parametrize("rule", ["tf32_off", "unaligned_products", "mixed_precision_off", "slow_products"])
def test_the_healthy_training_is_silent(rule: str) -> None:
    """The healthy job multiplies aligned matrices in bfloat16 at a good speed, so no rule reports it."""
    assert not cases_of(recorded("training"), rule)
