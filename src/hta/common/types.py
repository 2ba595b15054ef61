"""Groups of events, where scripts written for Holistic Trace Analysis import them from."""

from __future__ import annotations

from enum import Enum

import pandas as pd

from hta.facade.patterns import (
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
    "MEMORY_CATEGORY_PATTERN",
    "PYTHON_FUNCTION_PATTERN",
    "DeviceType",
    "GroupingPattern",
    "MTIAMemoryKernelGroupingPattern",
    "MemoryKernelGroupingPattern",
    "ProfilerStepGroupingPattern",
    "infer_device_type",
    "to_grouping_pattern",
]


class DeviceType(Enum):
    """Where events ran."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Say where the events of a frame ran: on the host, on devices (any stream, also 0), or UNKNOWN for both or none."""
    is_on_device = (df["stream"] >= 0).unique().tolist()
    return {(False,): DeviceType.CPU, (True,): DeviceType.GPU}.get(tuple(is_on_device), DeviceType.UNKNOWN)
