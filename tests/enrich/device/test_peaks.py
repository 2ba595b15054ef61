"""Tests of peak rates of devices."""

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
    # full name, bfloat16 TFLOP/s, memory bandwidth in GB/s
    ("NVIDIA H100 80GB HBM3", 989.4, 3352),
    ("NVIDIA H100 PCIe", 756, 2039),
    ("NVIDIA H100 NVL", 835.5, 3938),
    ("NVIDIA A100-SXM4-40GB", 312, 1555),
    ("NVIDIA A100-SXM4-80GB", 312, 2039),
    ("NVIDIA H20", 148, 4000),
    ("NVIDIA H200", 989.4, 4800),
    ("NVIDIA GH200 480GB", 989.4, 4000),
    ("NVIDIA GH200 144G HBM3e", 989.4, 4900),
    ("NVIDIA B200", 2250, 7700),
    ("NVIDIA GB200", 2500, 8000),
    ("NVIDIA B300 SXM6 AC", 2250, 8000),
    ("NVIDIA GB300", 2500, 8000),
    ("NVIDIA A30", 165, 933),
    ("NVIDIA RTX 6000 Ada Generation", 364.2, 960),
    ("NVIDIA L4", 121, 300),
    ("NVIDIA L40S", 362.05, 864),
    ("NVIDIA GeForce RTX 4090", 165.2, 1008),
    ("AMD Instinct MI250X", 191.5, 1638.4),
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
    """The full name distinguishes variants of a card."""
    device = device_named(name)
    assert device is not None
    assert device.flops_per_s("bfloat16", matrix=True) == pytest.approx(1e12 * tflops)
    assert device.bandwidth_gb_per_s == bandwidth


@pytest.mark.parametrize(
    "name", ["", None, "H100", "NVIDIA H100", "AMD Instinct MI300", "GeForce GTX 1080 Ti", "NVIDIA H800 PCIe", "CPU"]
)
def test_other_names_are_unknown(name) -> None:
    """A partial name matches no device, because "H100" alone may be SXM, PCIe or NVL."""
    assert device_named(name) is None


def test_only_one_line_matches_each_known_name() -> None:
    """Each name in KNOWN matches exactly one pattern."""
    import re  # noqa: PLC0415 -- only here

    for name, *_ in KNOWN:
        assert sum(re.fullmatch(device.pattern, name) is not None for device in DEVICES) == 1


def test_rates_without_support_are_unknown() -> None:
    """The tensor cores of V100 do not support bfloat16, and those of H100 not float4, so these rates are unknown."""
    volta, hopper = device_named("Tesla V100-SXM2-16GB"), device_named("NVIDIA H100 80GB HBM3")
    assert volta is not None
    assert hopper is not None
    assert volta.flops_per_s("bfloat16", matrix=True) is None
    assert hopper.flops_per_s("float4", matrix=True) is None
    assert hopper.flops_per_s(None, matrix=True) is None
    assert hopper.flops_per_s("bfloat16", matrix=False) == pytest.approx(66.9e12)


def test_dense_rates_halve_with_twice_the_bits() -> None:
    """If the number of bits doubles, the peak rate for dense matrices halves, within 2 %.

    If someone enters a sparse rate or the rate of another card by mistake, this test fails.
    """
    for device in DEVICES:
        rates = dict(device.matrix_tflops)
        if "GeForce" in device.pattern:  # float16 rates assume float16 accumulation; bfloat16, float32
            assert rates["float16"] == pytest.approx(2 * rates["bfloat16"], rel=0.02)
            continue
        for narrow, wide in (("float8", "float16"), ("bfloat16", "tf32")):
            if {narrow, wide} <= set(rates):
                assert rates[narrow] == pytest.approx(2 * rates[wide], rel=0.02), (device.pattern, narrow)


def test_measured_rates_are_below_their_peaks() -> None:
    """A measured rate is between 40 % and 100 % of the peak for the same precision."""
    for device in DEVICES:
        peaks = dict(device.matrix_tflops)
        assert all(0.4 * peaks[name] < rate < peaks[name] for name, rate in device.attainable_tflops), device.pattern
    assert device_named("AMD Instinct MI300X").attainable_flops_per_s("bfloat16") == 708e12
    assert device_named("NVIDIA H100 80GB HBM3").attainable_flops_per_s("bfloat16") is None


def test_sizes_of_caches_are_in_decimal_megabytes() -> None:
    """Sizes equal those that the driver reports: 52,428,800 bytes (50 MiB) for H100, 41,943,040 (40 MiB) for A100."""
    assert device_named("NVIDIA H100 80GB HBM3").cache_megabytes == pytest.approx(52.43, abs=0.05)
    assert device_named("NVIDIA A100-SXM4-40GB").cache_megabytes == pytest.approx(41.94, abs=0.05)


def test_unconfirmed_figures_say_so() -> None:
    """Each name in `unconfirmed` is that of a rate or size of the device, and `source` marks it as not confirmed."""
    for device in DEVICES:
        assert set(device.unconfirmed) <= {"memory", "cache", "float32", "float64", *dict(device.matrix_tflops)}
    device = device_named("NVIDIA H100 NVL")
    assert device.source("memory").endswith("h100/ (2026-11), not confirmed")
    assert device.source("bfloat16").endswith("h100/ (2026-11)")


@pytest.mark.parametrize("name", ["NVIDIA B300 SXM6 AC", "NVIDIA GB300"])
def test_figures_on_which_sources_disagree_are_unknown(name) -> None:
    """Published int8 figures of Blackwell Ultra differ by a factor of 30, so the figure is unknown."""
    assert device_named(name).flops_per_s("int8", matrix=True) is None


def test_users_override_figures(tmp_path, monkeypatch) -> None:
    """A device added in Python overrides one from a file, which overrides the built-in table."""
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
        ({"bandwidth_gb_per_s": 1, "matrix_tflops": {"bf16": 1}}, "must map only these precisions to rates"),
        ({"bandwidth_gb_per_s": 1, "matrix_tflops": {"bfloat16": "fast"}}, "bfloat16='fast'"),
    ],
)
def test_invalid_figures_are_refused(figures, message) -> None:
    """A negative figure, an unknown precision, and a figure that is not a number raise errors."""
    with pytest.raises(InvalidOptionError, match=message):
        add_device("My GPU", **figures)
