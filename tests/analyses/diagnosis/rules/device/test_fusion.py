"""Tests of the rules about avoidable kernels: chains of small kernels, casts, layout conversions, repeated work."""

from __future__ import annotations

import pytest

from device_jobs import BFLOAT16, FLOAT32, DeviceJob, cases_of, recorded, said

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float> >(int)"
SHAPE = [[1024, 1024]]


def chain(length: int, *, gap_us: float = 10, operator: str = "aten::mul") -> DeviceJob:
    """Return a job with a chain of element-wise kernels of 20 µs each."""
    job = DeviceJob()
    for number in range(length):
        start_us = 10 + number * (20 + gap_us)
        job.call(operator, ELEMENTWISE, start_us=start_us, duration_us=20, dims=SHAPE, types=[FLOAT32])
    return job


def test_a_chain_costs_all_but_one_kernel_and_the_gaps_between() -> None:
    """Fusing ten kernels of 20 µs with gaps of 10 µs saves nine kernels and nine gaps, 270 µs in total."""
    (case,) = cases_of(chain(10).build(), "unfused_chain").values()

    assert case.cost_ns == pytest.approx(270_000, rel=0.001)
    assert case.words["longest"] == 10


def test_concatenations_and_reductions_continue_a_chain() -> None:
    """A rotary embedding runs four kernels (multiply, negate, concatenate, add) twice; all eight can be fused."""
    job, kernels = (
        DeviceJob(),
        [ELEMENTWISE, ELEMENTWISE, "void at::native::CatArrayBatchedCopy<float>(int)", ELEMENTWISE],
    )
    for number, kernel in enumerate([*kernels, *kernels]):
        job.call("aten::mul", kernel, start_us=10 + 30 * number, duration_us=20, dims=SHAPE, types=[FLOAT32])
    (case,) = cases_of(job.build(), "unfused_chain").values()

    assert case.words["longest"] == 8


def test_short_chains_long_gaps_and_the_filling_of_tensors_are_no_chain() -> None:
    """Not reported: a chain of only seven kernels, kernels 60 µs apart, and kernels that only fill tensors."""
    for job in (chain(7), chain(10, gap_us=60), chain(10, operator="aten::fill_")):
        assert not cases_of(job.build(), "unfused_chain")


def test_casts_cost_their_kernels() -> None:
    """A conversion from float32 to bfloat16 costs 150 µs; a copy that keeps the type and layout is not reported."""
    job = DeviceJob()
    types, strides = [BFLOAT16, FLOAT32], [[1024, 1], [1024, 1]]
    job.call("aten::copy_", ELEMENTWISE, start_us=10, duration_us=150, dims=SHAPE * 2, types=types, strides=strides)
    same = [FLOAT32, FLOAT32]
    job.call("aten::copy_", ELEMENTWISE, start_us=200, duration_us=90, dims=SHAPE * 2, types=same, strides=strides)
    trace = job.build()

    (case,) = cases_of(trace, "casts").values()
    assert case.cost_ns == pytest.approx(150_000, rel=0.001)
    assert "float32 to bfloat16" in said(trace, "casts").what
    assert not cases_of(trace, "transposes")


def test_copies_into_another_layout() -> None:
    """Copying a transposed tensor into a contiguous tensor takes 80 µs, which is reported."""
    job = DeviceJob()
    types, strides = [FLOAT32, FLOAT32], [[1024, 1], [1, 1024]]
    job.call("aten::copy_", ELEMENTWISE, start_us=10, duration_us=80, dims=SHAPE * 2, types=types, strides=strides)

    (case,) = cases_of(job.build(), "transposes").values()
    assert case.cost_ns == pytest.approx(80_000, rel=0.001)


def test_conversions_between_layouts_cost_their_time() -> None:
    """The cost of a cuDNN layout conversion is its duration; a convolution without a conversion is not reported."""
    job = DeviceJob()
    job.call("aten::convolution", "sm90_xmma_fprop_implicit_gemm_bf16", start_us=10, duration_us=100)
    assert not cases_of(job.build(), "channels_first")

    job.call("aten::convolution", "cudnn::engines::nchwToNhwcKernel<bf16>", start_us=150, duration_us=100)
    (case,) = cases_of(job.build(), "channels_first").values()
    assert case.cost_ns == pytest.approx(100_000, rel=0.001)


def test_a_kernel_far_below_the_bandwidth() -> None:
    """A sum over 67.1 MB could take 21.8 µs (92 % of the peak); it is reported if it takes 200 µs, but not 60 µs."""
    for duration_us, count in ((200, 1), (60, 0)):
        job = DeviceJob().call(
            "aten::sum", "reduce_kernel", start_us=10, duration_us=duration_us, dims=[[4096, 4096]], types=[FLOAT32]
        )
        cases = cases_of(job.build(), "slow_memory_kernels")
        assert len(cases) == count
        for case in cases.values():
            assert case.cost_ns == pytest.approx(178_200, rel=0.01)


@pytest.mark.parametrize(
    ("job", "rule", "saved_ms", "tolerance_ms"),
    [
        ("elementwise-unfused", "unfused_chain", 3.1, 0.15),  # one kernel replaces 200
        ("images-channels_first", "channels_first", (10.941 - 6.444) * 1.2, 0.9),  # the cost may be up to 40 % too high
        ("training-checkpointed", "recomputation", 12.892 - 5.880, 4.0),
    ],
)
def test_what_recorded_jobs_can_save(job: str, rule: str, saved_ms: float, tolerance_ms: float) -> None:
    """The reported cost is close to the time saved in a second recording, in which the mistake is fixed."""
    (case,) = cases_of(recorded(job), rule).values()

    assert case.cost_ns / 1e6 == pytest.approx(saved_ms, abs=tolerance_ms)


@pytest.mark.parametrize("job", ["training", "images"])
def test_healthy_jobs_are_silent(job: str) -> None:
    """The healthy jobs fuse their kernels and store images channels-last, so no rule reports them."""
    trace = recorded(job)

    for rule in ("unfused_chain", "casts", "transposes", "channels_first", "slow_memory_kernels", "recomputation"):
        assert not cases_of(trace, rule)
