"""Finds which low-precision types a device's tensor or matrix cores support, from its name and compute capability."""

from __future__ import annotations

_TENSOR_CORES, _AMPERE = 7, 8
_RDNA_WITH_MATRIX_CORES, _CDNA = 11, 9
_WITHOUT_TENSOR_CORES = "GTX 16"
"""GeForce GTX 16 has capability 7.5 and no tensor cores: https://en.wikipedia.org/wiki/GeForce_GTX_16_series"""
_WITHOUT_MATRIX_CORES = ("MI25", "MI50", "MI60", "Vega", "Radeon VII", "Pro VII")
"""gfx900 and gfx906 report compute capability 9.0, like CDNA, but lack matrix cores:
https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html"""


def low_precisions(name: str | None, capability: str | None, *, is_rocm: bool) -> tuple[str, ...]:
    """Return the supported types among `bfloat16`, `float16` and `tf32`, the preferred one first."""
    return _amd(name or "", _major(capability)) if is_rocm else _nvidia(name or "", _major(capability))


def _nvidia(name: str, major: int) -> tuple[str, ...]:
    """Return the types that the tensor cores support.

    Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#features-and-technical-specifications
    """
    if major < _TENSOR_CORES or _WITHOUT_TENSOR_CORES in name:
        return ()
    return ("bfloat16", "float16", "tf32") if major >= _AMPERE else ("float16",)


def _amd(name: str, major: int) -> tuple[str, ...]:
    """Return the types that the matrix cores support.

    Source: https://rocm.docs.amd.com/en/latest/reference/precision-support.html
    """
    is_cdna = major == _CDNA and not any(vega in name for vega in _WITHOUT_MATRIX_CORES)
    return ("bfloat16", "float16") if is_cdna or major >= _RDNA_WITH_MATRIX_CORES else ()


def _major(capability: str | None) -> int:
    return int(capability.partition(".")[0]) if capability else 0
