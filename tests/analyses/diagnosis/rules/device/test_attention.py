"""Tests of the rule about attention that is not fused."""

from __future__ import annotations

import pytest

from device_jobs import BFLOAT16, H100, DeviceJob, cases_of, recorded

SCORES = [64, 1024, 1024]
HEADS, KEYS = [64, 1024, 64], [64, 64, 1024]
A100 = {**H100, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "numSms": 108}


def attention(*, between: str | None = "aten::_softmax") -> DeviceJob:
    """Return a job whose attention is two products of 100 µs and, between them, a kernel of 200 µs."""
    job, types = DeviceJob(), [BFLOAT16, BFLOAT16]
    job.call("aten::bmm", "nvjet_sm90_a", start_us=10, duration_us=100, dims=[HEADS, KEYS], types=types)
    if between is not None:
        job.call(between, "softmax_warp_forward", start_us=110, duration_us=200, dims=[SCORES], types=[BFLOAT16])
    job.call("aten::bmm", "nvjet_sm90_b", start_us=310, duration_us=100, dims=[SCORES, HEADS], types=types)
    return job


def test_two_products_with_a_softmax_between_them() -> None:
    """The kernels take 400 µs; a fused kernel takes 23.2 µs at best, because it reaches at most 75 % of the peak."""
    (case,) = cases_of(attention().build(), "unfused_attention").values()

    fused_us = 2 * 2 * 64 * 1024 * 1024 * 64 / 989.4e6 / 0.75
    assert case.cost_ns == pytest.approx(1000 * (400 - fused_us), rel=0.02)


def test_fast_products_on_an_a100_are_slower_than_fused_attention() -> None:
    """Attention takes 190 of 990 µs; a fused kernel would take 138 µs (at 40 % of the peak), or 73 µs at best."""
    job, types = DeviceJob(A100), [BFLOAT16, BFLOAT16]
    job.call("aten::bmm", "ampere_a", start_us=10, duration_us=80, dims=[HEADS, KEYS], types=types)
    job.call("aten::_softmax", "softmax_warp_forward", start_us=90, duration_us=30, dims=[SCORES], types=[BFLOAT16])
    job.call("aten::bmm", "ampere_b", start_us=120, duration_us=80, dims=[SCORES, HEADS], types=types)
    (case,) = cases_of(job.build(), "unfused_attention").values()

    assert case.value == pytest.approx(0.053, abs=0.001)
    assert case.cost_ns == pytest.approx(116_600, rel=0.02)


@pytest.mark.parametrize("between", ["aten::mm", "aten::relu", None])
def test_other_products_are_not_attention(between: str | None) -> None:
    """Two batched products without a softmax between them are not reported."""
    assert not cases_of(attention(between=between).build(), "unfused_attention")


def test_the_recorded_job_with_the_math_backend() -> None:
    """Without fused attention, a step takes 3.9 ms longer on the device and 4 ms longer to launch."""
    (case,) = cases_of(recorded("training-math_attention"), "unfused_attention").values()

    assert 3.9e6 < case.cost_ns < 9e6


def test_fused_attention_is_silent() -> None:
    """The healthy job uses cuDNN's fused attention, so the rule finds nothing."""
    assert not cases_of(recorded("training"), "unfused_attention")
