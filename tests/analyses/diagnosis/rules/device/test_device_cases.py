"""Tests of all rules about device work: when they replay the step, and how they handle odd values in files."""

from __future__ import annotations

import polars as pl
import pytest

from device_jobs import DeviceJob, cases_of
from holotrace.analyses.diagnosis.rules.device.device_cases import matches


def slow_product() -> DeviceJob:
    """Return a job with one unaligned matrix product of 600 µs per step."""
    return DeviceJob().product(4096, 1024, 8191, duration_us=600)


def test_a_recording_with_python_is_not_replayed() -> None:
    """Recording Python functions slows the host so much that a replay of the step would be misleading."""
    with_python = slow_product()
    with_python.builder.event(
        ph="X", cat="python_function", name="train.py(1): step", pid=1000, tid=1, ts=1, dur=2, args={"Python id": 1}
    )

    (replayed,) = cases_of(slow_product().build(), "unaligned_products").values()
    (bounded,) = cases_of(with_python.build(), "unaligned_products").values()
    assert replayed.saved_ns is not None
    assert bounded.saved_ns is None
    assert bounded.cost_ns == replayed.cost_ns


@pytest.mark.parametrize("strides", [[["a", "b"], [None, {}]], [[1], []], "wide", [[[8191], 1], [1, [8191]]]])
def test_strange_strides_do_no_harm(strides: object) -> None:
    """Strides of a wrong type or length do not raise an error."""
    job = DeviceJob().call(
        "aten::mm",
        "nvjet_sm90",
        start_us=10,
        duration_us=600,
        dims=[[4096, 1024], [1024, 8191]],
        types=["c10::BFloat16", "c10::BFloat16"],
        strides=strides,  # type: ignore[arg-type]
    )

    assert len(cases_of(job.build(), "unaligned_products")) <= 1


def test_matches_searches_each_name() -> None:
    """A name matches if it contains the pattern; null never matches."""
    names = pl.Series(["gemm", None, "add", "gemm"])

    assert matches(names, "ge").to_list() == [True, False, False, True]
