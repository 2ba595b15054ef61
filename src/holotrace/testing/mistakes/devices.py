"""The devices of simulated jobs: their `deviceProperties`, and the speed of kernels on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LAUNCH_NS = 1_400
"""Duration of a kernel that does nothing."""

_FULL_GRID_NS = 600


@dataclass(frozen=True)
class GpuModel:
    """A device with its peak rates.

    tflops      peak rate of dense products, by precision
    efficiency  fraction of the peak rate that large, well-shaped products reach, by precision
    """

    name: str
    capability: tuple[int, int]
    sm_count: int
    memory_bytes: int
    bandwidth_gb_per_s: int
    tflops: dict[str, float]
    efficiency: dict[str, float]
    registers: int = 65_536
    shared_memory: int = 233_472
    pcie_gb_per_s: int = 24

    def product_ns(self, flops: float, size: float, precision: str) -> float:
        """Return how long a well-shaped matrix product with `flops` operations and `size` bytes of traffic takes."""
        slower, precision = (2, "float32") if precision == "float64" else (1, precision)
        compute_ns = slower * 1e-3 * flops / (self.tflops[precision] * self.efficiency[precision])
        return max(compute_ns, self._bytes_ns(size)) + _LAUNCH_NS

    def memory_ns(self, size: float, efficiency: float = 0.82) -> float:
        """Return how long a kernel takes to move `size` bytes."""
        return self._bytes_ns(size) * 0.82 / efficiency + _LAUNCH_NS

    def _bytes_ns(self, size: float) -> float:
        return size / (self.bandwidth_gb_per_s * 0.82) + _FULL_GRID_NS

    def copy_ns(self, size: float, *, pageable: bool = False) -> float:
        """Return how long a copy from or to the host takes; pageable memory is slower, as it is copied twice."""
        return size / (self.pcie_gb_per_s / 4 if pageable else self.pcie_gb_per_s) + 1_000

    def properties(self, ordinal: int) -> dict[str, Any]:
        """Return the device's entry in `deviceProperties`."""
        return {
            "id": ordinal,
            "name": self.name,
            "totalGlobalMem": self.memory_bytes,
            "computeMajor": self.capability[0],
            "computeMinor": self.capability[1],
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerBlock": self.registers,
            "warpSize": 32,
            "sharedMemPerBlock": 49_152,
            "numSms": self.sm_count,
            "regsPerMultiprocessor": self.registers,
            "sharedMemPerBlockOptin": self.shared_memory - 1024,
            "sharedMemPerMultiprocessor": self.shared_memory,
        }


H100 = GpuModel(
    "NVIDIA H100 80GB HBM3",
    (9, 0),
    132,
    85_017_493_504,
    3352,
    {"float8": 1978.9, "bfloat16": 989.4, "float16": 989.4, "tf32": 494.7, "float32": 66.9},
    {"float8": 0.6, "bfloat16": 0.66, "float16": 0.66, "tf32": 0.65, "float32": 0.78},
    pcie_gb_per_s=50,
)
A100 = GpuModel(
    "NVIDIA A100-SXM4-80GB",
    (8, 0),
    108,
    84_987_740_160,
    2039,
    {"bfloat16": 312, "float16": 312, "tf32": 156, "float32": 19.5},
    {"bfloat16": 0.74, "float16": 0.74, "tf32": 0.72, "float32": 0.9},
    shared_memory=167_936,
)
V100 = GpuModel(
    "Tesla V100-SXM2-32GB",
    (7, 0),
    80,
    34_089_730_048,
    900,
    {"float16": 125, "float32": 15.7},
    {"float16": 0.66, "float32": 0.88},
    shared_memory=98_304,
    pcie_gb_per_s=12,
)
