"""Peak rates of devices by full name, from public data sheets; users can add devices and override rates.

All rates are for dense matrices: if a data sheet gives the doubled rate for 2:4 sparsity, it is halved here. If the
profiler shows the two dies of a GPU as two devices (MI250), each device has the rates of one die. To add devices, set
`HOLOTRACE_DEVICES` to the path of a JSON or TOML file:

    [[rules]]
    pattern = "My GPU 2"
    bandwidth_gb_per_s = 4000
    float32_tflops = 60
    matrix_tflops = { bfloat16 = 500, float8 = 1000 }
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holotrace.errors import InvalidOptionError
from holotrace.store.rule_table import RuleTable, checked_pattern

DEVICES_VARIABLE = "HOLOTRACE_DEVICES"
"""Environment variable with the path of a file that defines devices."""

PRECISIONS = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "float6", "float4", "int8")
"""Precisions of matrix products, in the order of the columns of `DEVICES`. On NVIDIA devices, float32 products without
TF32 run on ordinary cores."""


@dataclass(frozen=True)
class Device:
    """The peak rates of a device.

    pattern            regular expression that matches the whole name in `deviceProperties`
    bandwidth_gb_per_s peak bandwidth of the memory, 1 GB = 10^9 bytes
    cache_megabytes    size of the last-level cache, 1 MB = 10^6 bytes; 0 if unknown
    vector_tflops      (float32, float64) on ordinary cores; 0 if unknown
    matrix_tflops      pairs of a precision and the dense rate of matrix products
    url                the data sheet, or a page that quotes it
    date               when the rates were entered
    unconfirmed        the rates and sizes not found in a public source: each a precision, "memory" or "cache"
    attainable_tflops  pairs of a precision and the highest rate that the vendor measured for matrix products
    """

    pattern: str
    bandwidth_gb_per_s: float
    cache_megabytes: float
    vector_tflops: tuple[float, float]
    matrix_tflops: tuple[tuple[str, float], ...]
    url: str = ""
    date: str = ""
    unconfirmed: tuple[str, ...] = ()
    attainable_tflops: tuple[tuple[str, float], ...] = ()

    def source(self, column: str) -> str:
        """Return the source of the peak of a precision or of "memory"; the text says if the peak is not confirmed."""
        dated = f"{self.url} ({self.date})" if self.date else self.url
        return f"{dated}, not confirmed" if column in self.unconfirmed else dated

    def flops_per_s(self, precision: str | None, *, matrix: bool) -> float | None:
        """Return the peak of a precision, on matrix cores or on ordinary cores; None if unknown."""
        if matrix:
            peak = dict(self.matrix_tflops).get(precision or "", 0)
        else:
            peak = self.vector_tflops[1 if precision == "float64" else 0]
        return 1e12 * peak or None

    def attainable_flops_per_s(self, precision: str | None) -> float | None:
        """Return the highest rate that the vendor measured for matrix products; None if it published none."""
        return 1e12 * dict(self.attainable_tflops).get(precision or "", 0) or None


def _matrix(*rates: float) -> tuple[tuple[str, float], ...]:
    """Pair each of the `PRECISIONS` with its rate; drop those that the device does not support, which have rate 0."""
    return tuple((precision, rate) for precision, rate in zip(PRECISIONS, rates, strict=True) if rate)


_NV = "https://www.nvidia.com/en-us/data-center/"
_NV_SHEETS = "https://nvdam.widen.net/s/"
_CHINA = "https://www.tomshardware.com/pc-components/gpus/new-nvidia-ai-gpus-designed-to-get-around-us-export-bans-come-to-china-h20-l20-and-l2-to-fill-void-left-by-restricted-models"
_RTX = "https://images.nvidia.com/aem-dam/Solutions/geforce/"
_AMD = "https://www.amd.com/en/products/accelerators/instinct/"
_DATE = "2026-11"

_H100_RATES = _matrix(66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 0, 0, 1978.9)
_A100_RATES = _matrix(19.5, 19.5, 156, 312, 312, 0, 0, 0, 624)
_MI300_RATES = _matrix(163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 0, 0, 2614.9)
_MI300X_MEASURED = (("bfloat16", 708), ("float16", 654), ("float8", 1273))
_MI325X_MEASURED = (("bfloat16", 843), ("float16", 794), ("float8", 1519))
"""Rates under load, when clocks are lower;
https://rocm.blogs.amd.com/software-tools-optimization/measuring-max-achievable-flops-part2/README.html"""
_NAME = r"(NVIDIA )?"

# fmt: off
DEVICES = (
    #      name, GB/s, cache MB, (float32, float64), float64 float32 tf32 bfloat16 float16 float8 float6 float4 int8
    Device(r"(Tesla )?V100-SXM[23]-\d+GB(-LS)?", 900, 6.3, (15.7, 7.8), _matrix(7.8, 15.7, 0, 0, 125, 0, 0, 0, 0), _NV + "v100/", _DATE),
    Device(r"(Tesla )?V100-PCIE-\d+GB", 900, 6.3, (14, 7), _matrix(7, 14, 0, 0, 112, 0, 0, 0, 0), _NV + "v100/", _DATE),
    Device(r"(Tesla )?V100S-PCIE-32GB", 1134, 6.3, (16.4, 8.2), _matrix(8.2, 16.4, 0, 0, 130, 0, 0, 0, 0), _NV + "v100/", _DATE, ("memory",)),
    Device(_NAME + r"(Tesla )?T4", 320, 4.2, (8.1, 0.25), _matrix(0.25, 8.1, 0, 0, 65, 0, 0, 0, 130), _NV + "tesla-t4/", _DATE),
    Device(_NAME + r"A100-SXM4-40GB", 1555, 41.9, (19.5, 9.7), _A100_RATES, _NV + "a100/", _DATE),
    Device(_NAME + r"A100-PCI[Ee]-40GB", 1555, 41.9, (19.5, 9.7), _A100_RATES, _NV + "a100/", _DATE),
    Device(_NAME + r"A100-SXM4-80GB", 2039, 41.9, (19.5, 9.7), _A100_RATES, _NV + "a100/", _DATE),
    Device(_NAME + r"A100[- ]80GB PCIe|" + _NAME + r"A100-PCI[Ee]-80GB", 1935, 41.9, (19.5, 9.7), _A100_RATES, _NV + "a100/", _DATE),
    Device(_NAME + r"A800-SXM4-80GB", 2039, 41.9, (19.5, 9.7), _A100_RATES, "https://github.com/citsjtu2020/LLM-Prof", _DATE),
    Device(_NAME + r"A800 80GB PCIe", 1935, 41.9, (19.5, 9.7), _A100_RATES, "https://hmc-tech.com/gpu/nvidia-a800-vs-nvidia-t40", _DATE, ("memory",)),
    Device(_NAME + r"A10", 600, 6.3, (31.2, 0.5), _matrix(0, 31.2, 62.5, 125, 125, 0, 0, 0, 250), _NV + "products/a10-gpu/", _DATE),
    Device(_NAME + r"A30", 933, 25.2, (10.3, 5.2), _matrix(10.3, 10.3, 82, 165, 165, 0, 0, 0, 330), _NV + "products/a30-gpu/", _DATE),
    Device(_NAME + r"A40", 696, 6.3, (37.4, 0.6), _matrix(0, 37.4, 74.8, 149.7, 149.7, 0, 0, 0, 299.3), _NV + "a40/", _DATE),
    Device(_NAME + r"L4", 300, 50.3, (30.3, 0.5), _matrix(0, 30.3, 60, 121, 121, 242.5, 0, 0, 242.5), _NV + "l4/", _DATE, ("cache",)),
    Device(_NAME + r"L20", 864, 100.7, (59.8, 0.9), _matrix(0, 59.8, 59.8, 119.5, 119.5, 239, 0, 0, 239), _CHINA, _DATE, ("float32",)),
    Device(_NAME + r"L40", 864, 100.7, (90.5, 1.4), _matrix(0, 90.5, 90.5, 181.05, 181.05, 362, 0, 0, 362), _NV + "l40/", _DATE, ("cache",)),
    Device(_NAME + r"L40S", 864, 100.7, (91.6, 1.4), _matrix(0, 91.6, 183, 362.05, 362.05, 733, 0, 0, 733), _NV + "l40s/", _DATE),
    Device(_NAME + r"H100 80GB HBM3|" + _NAME + r"H100 SXM5?", 3352, 52.4, (66.9, 33.5), _H100_RATES, _NV + "h100/", _DATE),
    Device(_NAME + r"H100 PCIe", 2039, 52.4, (51.2, 25.6), _matrix(51.2, 51.2, 378, 756, 756, 1513, 0, 0, 1513), _NV + "h100/", _DATE, ("memory",)),
    Device(_NAME + r"H100 NVL", 3938, 52.4, (60, 30), _matrix(60, 60, 417.5, 835.5, 835.5, 1671, 0, 0, 1671), _NV + "h100/", _DATE, ("memory", "cache")),
    Device(_NAME + r"H800( SXM5)?", 3352, 52.4, (66.9, 1), _matrix(1, 66.9, 494.7, 989.4, 989.4, 1978.9, 0, 0, 1978.9), "https://github.com/astroC86/gpu-datasheet", _DATE, ("float64", "float32", "tf32")),
    Device(_NAME + r"H20", 4000, 62.9, (44, 1), _matrix(1, 44, 74, 148, 148, 296, 0, 0, 296), _CHINA, _DATE),
    Device(_NAME + r"H200", 4800, 52.4, (66.9, 33.5), _H100_RATES, _NV + "h200/", _DATE, ("cache",)),
    Device(_NAME + r"H200 NVL", 4800, 52.4, (60, 30), _matrix(60, 60, 417.5, 835.5, 835.5, 1671, 0, 0, 1671), _NV + "h200/", _DATE, ("cache",)),
    Device(_NAME + r"GH200 480GB", 4000, 52.4, (66.9, 33.5), _H100_RATES, _NV_SHEETS + "rrgqqnpbz8/grace-datasheet-gh200-grace-hopper-superchip-3773000", _DATE, ("cache",)),
    Device(_NAME + r"GH200 144G HBM3e", 4900, 52.4, (66.9, 33.5), _H100_RATES, _NV_SHEETS + "rrgqqnpbz8/grace-datasheet-gh200-grace-hopper-superchip-3773000", _DATE, ("cache",)),
    Device(_NAME + r"B200", 7700, 132.6, (75, 37), _matrix(37, 75, 1125, 2250, 2250, 4500, 4500, 9000, 4500), _NV_SHEETS + "wwnsxrhm2w/blackwell-datasheet-3384703", _DATE),
    Device(_NAME + r"GB200", 8000, 132.6, (80, 40), _matrix(40, 80, 1250, 2500, 2500, 5000, 5000, 10000, 5000), _NV_SHEETS + "wwnsxrhm2w/blackwell-datasheet-3384703", _DATE),
    Device(_NAME + r"B300( SXM6( AC)?)?", 8000, 132.6, (75, 1.25), _matrix(1.25, 75, 1125, 2250, 2250, 4500, 4500, 0, 0), "https://resources.nvidia.com/en-us-dgx-systems/dgx-b300-datasheet", _DATE, ("cache",)),
    Device(_NAME + r"GB300", 8000, 132.6, (80, 0), _matrix(0, 80, 1250, 2500, 2500, 5000, 5000, 15000, 0), _NV + "gb300-nvl72/", _DATE, ("cache",)),
    Device(_NAME + r"(GeForce )?RTX 3090", 936, 6.3, (35.6, 0.6), _matrix(0, 35.6, 35.6, 71, 142, 0, 0, 0, 284), "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf", _DATE, ("bfloat16",)),
    Device(_NAME + r"(GeForce )?RTX 4090", 1008, 75.5, (82.6, 1.3), _matrix(0, 82.6, 82.6, 165.2, 330.3, 660.6, 0, 0, 660.6), _RTX + "ada/nvidia-ada-gpu-architecture.pdf", _DATE),
    Device(_NAME + r"(GeForce )?RTX 5090", 1792, 100.7, (104.8, 1.6), _matrix(0, 104.8, 104.8, 209.5, 419, 838, 0, 1676, 838), _RTX + "blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf", _DATE),
    Device(_NAME + r"RTX PRO 6000 Blackwell( Workstation Edition)?", 1792, 134.2, (126, 2), _matrix(0, 126, 251.9, 503.8, 503.8, 1007.6, 0, 2015.2, 1007.6), "https://hmc-tech.com/gpu/nvidia-rtx-pro-6000-blackwell-vs-amd-radeon-pro-duo-polaris", _DATE),
    Device(_NAME + r"RTX A6000", 768, 6.3, (38.7, 0.6), _matrix(0, 38.7, 77.4, 154.8, 154.8, 0, 0, 0, 309.7), "https://www.nvidia.com/en-us/design-visualization/rtx-a6000/", _DATE),
    Device(_NAME + r"RTX 6000 Ada Generation", 960, 100.7, (91.1, 1.4), _matrix(0, 91.1, 182.1, 364.2, 364.2, 728.5, 0, 0, 728.5), "https://www.nvidia.com/en-us/design-visualization/rtx-6000/", _DATE),
    Device(r"(AMD )?Instinct MI100", 1228.8, 8.4, (23.1, 11.5), _matrix(11.5, 46.1, 0, 92.3, 184.6, 0, 0, 0, 184.6), _AMD + "mi100.html", _DATE, ("int8",)),
    Device(r"(AMD )?Instinct MI210( VF)?", 1638.4, 8.4, (22.6, 22.6), _matrix(45.3, 45.3, 0, 181, 181, 0, 0, 0, 181), _AMD + "mi200/mi210.html", _DATE),
    Device(r"(AMD )?Instinct MI250", 1638.4, 8.4, (22.6, 22.6), _matrix(45.3, 45.3, 0, 181, 181, 0, 0, 0, 181), _AMD + "mi200/mi250.html", _DATE),
    Device(r"(AMD )?Instinct MI250X( / MI250)?", 1638.4, 8.4, (23.95, 23.95), _matrix(47.85, 47.85, 0, 191.5, 191.5, 0, 0, 0, 191.5), _AMD + "mi200/mi250x.html", _DATE),
    Device(r"(AMD )?Instinct MI300A", 5300, 268.4, (122.6, 61.3), _matrix(122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 0, 0, 1961.2), _AMD + "mi300/mi300a.html", _DATE),
    Device(r"(AMD )?Instinct MI300X( VF| HF)?( OAM)?", 5325, 268.4, (163.4, 81.7), _MI300_RATES, _AMD + "mi300/mi300x.html", _DATE, (), _MI300X_MEASURED),
    Device(r"(AMD )?Instinct MI325X( VF)?( OAM)?", 6000, 268.4, (163.4, 81.7), _MI300_RATES, _AMD + "mi300/mi325x.html", _DATE, (), _MI325X_MEASURED),
    Device(r"(AMD )?Instinct MI350X( VF)?( OAM)?", 8000, 268.4, (144.2, 72.1), _matrix(72.1, 144.2, 0, 2306.9, 2306.9, 4613.7, 9227.5, 9227.5, 4613.7), _AMD + "mi350/mi350x.html", _DATE, ("float6", "float4")),
    Device(r"(AMD )?Instinct MI355X( VF)?( OAM)?", 8000, 268.4, (157.3, 78.6), _matrix(78.6, 157.3, 0, 2516.6, 2516.6, 5033.2, 10066.3, 10066.3, 5033.2), _AMD + "mi350/mi355x.html", _DATE, ("float64",)),
)
# fmt: on
"""The devices that holotrace knows. GeForce cards multiply float16 and float8 fastest with float16 accumulation; these
rates are listed, so the lower bounds computed from them also hold for float32 accumulation, which is slower. The rates
of B300 for FP4 and int8, and of GB300 for float64 and int8, are missing because sources disagree. The name of a GH200
contains the size of the host's memory (480 GB) or of the GPU's memory (144 GB).
"""


def device_named(name: str | None) -> Device | None:
    """Return the device with this full name; None if it is unknown."""
    wanted = (name or "").strip()
    return next((device for device in active_devices() if re.fullmatch(device.pattern, wanted)), None)


def add_device(  # noqa: PLR0913 -- the columns of the table
    pattern: str,
    *,
    bandwidth_gb_per_s: float,
    matrix_tflops: Mapping[str, float],
    float32_tflops: float = 0,
    float64_tflops: float = 0,
    cache_megabytes: float = 0,
) -> None:
    """Set the peaks of devices whose full name matches `pattern`; they take priority over all other entries.

    Args:
        pattern: a regular expression.
        bandwidth_gb_per_s: peak bandwidth of the memory.
        matrix_tflops: dense peak of matrix products by precision; for the names of precisions, see `PRECISIONS`.
        float32_tflops: float32 peak of ordinary cores.
        float64_tflops: float64 peak of ordinary cores.
        cache_megabytes: size of the last-level cache.

    Raises:
        InvalidOptionError: the pattern is empty or not a regular expression, a precision is unknown, or a number is not
            between 0 and 10^9.

    >>> add_device("My GPU 2", bandwidth_gb_per_s=4000, matrix_tflops={"bfloat16": 500})
    >>> device_named("My GPU 2").flops_per_s("bfloat16", matrix=True)
    500000000000000.0
    >>> remove_added_devices()
    """
    entry = {
        "pattern": pattern,
        "bandwidth_gb_per_s": bandwidth_gb_per_s,
        "matrix_tflops": dict(matrix_tflops),
        "float32_tflops": float32_tflops,
        "float64_tflops": float64_tflops,
        "cache_megabytes": cache_megabytes,
    }
    _TABLE.add(_device_of(entry, "add_device"))


def remove_added_devices() -> None:
    """Remove every device that `add_device` added."""
    _TABLE.remove_added()


def active_devices() -> tuple[Device, ...]:
    """Return the known devices in order of priority: added devices, devices from the file, then `DEVICES`."""
    return _TABLE.active()


def _device_of(entry: dict[str, Any], where: str) -> Device:
    rates = entry.get("matrix_tflops", {})
    if not isinstance(rates, dict) or not set(rates) <= set(PRECISIONS):
        message = f"{where}: matrix_tflops={rates!r} must map only these precisions to rates: {', '.join(PRECISIONS)}"
        raise InvalidOptionError(message)
    figures = {name: _figure(entry.get(name, 0), name, where) for name in _FIGURES}
    matrix = tuple((precision, _figure(rate, precision, where)) for precision, rate in rates.items())
    vector = figures["float32_tflops"], figures["float64_tflops"]
    pattern = checked_pattern(entry.get("pattern"), where)
    return Device(
        pattern, figures["bandwidth_gb_per_s"], figures["cache_megabytes"], vector, matrix, str(entry.get("url", where))
    )


_FIGURES = ("bandwidth_gb_per_s", "cache_megabytes", "float32_tflops", "float64_tflops")


def _figure(value: object, name: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:  # noqa: PLR2004 -- no device is faster
        message = f"{where}: {name}={value!r} is not a number from 0 to 10^9"
        raise InvalidOptionError(message)
    return float(value)


_TABLE = RuleTable(
    DEVICES, variable=DEVICES_VARIABLE, wanted="`pattern`, `bandwidth_gb_per_s` and `matrix_tflops`", read=_device_of
)
