"""Tests of the table of devices."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holotrace.enrich.device.peaks import (
    DEVICES,
    DEVICES_VARIABLE,
    add_device,
    device_named,
    remove_added_devices,
)
from holotrace.errors import InvalidOptionError

KNOWN = (
    # full name, bfloat16 TFLOP/s, GB/s
    ("NVIDIA H100 80GB HBM3", 989.4, 3352),
    ("NVIDIA H100 PCIe", 756, 2039),
    ("NVIDIA H100 NVL", 835.5, 3938),
    ("NVIDIA A100-SXM4-40GB", 312, 1555),
    ("NVIDIA A100-SXM4-80GB", 312, 2039),
    ("NVIDIA H20", 148, 4000),
    ("NVIDIA L4", 121, 300),
    ("NVIDIA L40S", 362.05, 864),
    ("NVIDIA GeForce RTX 4090", 165.2, 1008),
    ("AMD Instinct MI300X VF", 1307.4, 5325),
    ("AMD Instinct MI355X", 2516.6, 8000),
)


@pytest.fixture(autouse=True)
def no_added_devices() -> Iterator[None]:
    """Remove the devices that a test adds."""
    yield
    remove_added_devices()


@pytest.mark.parametrize(("name", "tflops", "bandwidth"), KNOWN)
def test_the_full_name_decides(name, tflops, bandwidth) -> None:
    """Cards of one generation differ by their full name."""
    device = device_named(name)
    assert device is not None
    assert device.flops_per_s("bfloat16", matrix=True) == pytest.approx(1e12 * tflops)
    assert device.bandwidth_gb_per_s == bandwidth


@pytest.mark.parametrize("name", ["", None, "H100", "NVIDIA H100", "AMD Instinct MI300", "GeForce GTX 1080 Ti", "CPU"])
def test_other_names_are_unknown(name) -> None:
    """A part of a name names no device: H100 exists as SXM, PCIe and NVL."""
    assert device_named(name) is None


def test_only_one_line_matches_each_known_name() -> None:
    """No two patterns overlap on the names above."""
    import re  # noqa: PLC0415 -- only here

    for name, *_ in KNOWN:
        assert sum(re.fullmatch(device.pattern, name) is not None for device in DEVICES) == 1


def test_rates_without_support_are_unknown() -> None:
    """V100 computes no bfloat16 on tensor cores, and H100 no float4."""
    volta, hopper = device_named("Tesla V100-SXM2-16GB"), device_named("NVIDIA H100 80GB HBM3")
    assert volta is not None
    assert hopper is not None
    assert volta.flops_per_s("bfloat16", matrix=True) is None
    assert hopper.flops_per_s("float4", matrix=True) is None
    assert hopper.flops_per_s(None, matrix=True) is None
    assert hopper.flops_per_s("bfloat16", matrix=False) == pytest.approx(66.9e12)


def test_users_override_figures(tmp_path, monkeypatch) -> None:
    """An added device decides over one in a file, and both over the table."""
    entry = {"pattern": "NVIDIA H20", "bandwidth_gb_per_s": 4022, "matrix_tflops": {"bfloat16": 140}}
    file = tmp_path / "devices.json"
    file.write_text(json.dumps({"rules": [entry]}))
    monkeypatch.setenv(DEVICES_VARIABLE, str(file))
    assert device_named("NVIDIA H20").bandwidth_gb_per_s == 4022
    add_device("NVIDIA H20", bandwidth_gb_per_s=1, matrix_tflops={})
    assert device_named("NVIDIA H20").bandwidth_gb_per_s == 1


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"bandwidth_gb_per_s": -1, "matrix_tflops": {}}, "bandwidth_gb_per_s=-1"),
        ({"bandwidth_gb_per_s": 1, "matrix_tflops": {"bf16": 1}}, "precisions among"),
        ({"bandwidth_gb_per_s": 1, "matrix_tflops": {"bfloat16": "fast"}}, "bfloat16='fast'"),
    ],
)
def test_invalid_figures_are_refused(figures, message) -> None:
    """Figures are numbers of known precisions."""
    with pytest.raises(InvalidOptionError, match=message):
        add_device("My GPU", **figures)
