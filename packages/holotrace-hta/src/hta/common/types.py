"""Device types and groups of events, at HTA's import path."""

from __future__ import annotations

from enum import Enum

from hta.facade.trace.device_kind import DeviceType, infer_device_type
from hta.facade.trace.patterns import (
    ALL_CATEGORY_PATTERN,
    CPU_AND_GPU_EVENTS_CATEGORY_PATTERN,
    CPU_EVENTS_CATEGORY_PATTERN,
    CPU_OP_CATEGORY_PATTERN,
    CUDA_SYNC_PATTERN,
    DEVICE_RUNTIME_CATEGORY_PATTERN,
    GPU_EVENT_CATEGORY_PATTERN,
    KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    MEMORY_CATEGORY_PATTERN,
    PYTHON_FUNCTION_PATTERN,
    CommunicateKernelGroupingPattern,
    ComputeKernelGroupingPattern,
    GroupingPattern,
    MemoryKernelGroupingPattern,
    MTIAMemoryKernelGroupingPattern,
    ProfilerStepGroupingPattern,
    to_grouping_pattern,
)

__all__ = [
    "ALL_CATEGORY_PATTERN",
    "CPU_AND_GPU_EVENTS_CATEGORY_PATTERN",
    "CPU_EVENTS_CATEGORY_PATTERN",
    "CPU_OP_CATEGORY_PATTERN",
    "CUDA_SYNC_PATTERN",
    "DEVICE_RUNTIME_CATEGORY_PATTERN",
    "GPU_EVENT_CATEGORY_PATTERN",
    "KERNEL_CATEGORY_PATTERN",
    "KERNEL_LAUNCH_CATEGORY_PATTERN",
    "MEMCPY_TYPE_TO_STR",
    "MEMORY_CATEGORY_PATTERN",
    "PYTHON_FUNCTION_PATTERN",
    "CommunicateKernelGroupingPattern",
    "ComputeKernelGroupingPattern",
    "DeviceType",
    "GroupingPattern",
    "MTIAMemoryKernelGroupingPattern",
    "MemcpyType",
    "MemoryKernelGroupingPattern",
    "ProfilerStepGroupingPattern",
    "common_grouping_patterns",
    "infer_device_type",
    "to_grouping_pattern",
]


class MemcpyType(Enum):
    """The direction of a copy."""

    DTOD = 0
    DTOH = 1
    HTOD = 2
    UNKNOWN = 3


MEMCPY_TYPE_TO_STR = {
    MemcpyType.DTOD: "memcpy_dtod",
    MemcpyType.DTOH: "memcpy_dtoh",
    MemcpyType.HTOD: "memcpy_htod",
    MemcpyType.UNKNOWN: "memcpy_type_unknown",
}

common_grouping_patterns: dict[str, GroupingPattern] = {
    "memory_kernels": MemoryKernelGroupingPattern,
    "compute_kernels": ComputeKernelGroupingPattern,
    "communicate_kernels": CommunicateKernelGroupingPattern,
}
