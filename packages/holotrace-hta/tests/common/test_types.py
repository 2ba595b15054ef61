"""Groups of names and categories."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from hta.common.types import (
    CPU_EVENTS_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    DeviceType,
    GroupingPattern,
    infer_device_type,
    to_grouping_pattern,
)


def test_a_group_is_a_match_or_the_others() -> None:
    """A group contains the texts that start with a match of its pattern; an inverted group contains all other texts."""
    group = GroupingPattern(re.compile("a|b"), group_name="letters")
    others = to_grouping_pattern(group, "rest", inverse_match=True)
    assert [group.match(text) for text in ("abc", "cab")] == [True, False]
    assert [others.match(text) for text in ("abc", "cab")] == [False, True]
    assert (others.group_name, to_grouping_pattern("x").match("xy")) == ("rest", True)


@pytest.mark.parametrize(
    "name", ["cudaLaunchKernelExC", "cuLaunchKernelEx", "hipExtModuleLaunchKernel", "cudaGraphLaunch"]
)
def test_calls_that_launch_work_have_many_names(name) -> None:
    """The names of launch calls in the CUDA runtime, CUDA driver and HIP match, but the names of copy calls do not."""
    assert KERNEL_LAUNCH_CATEGORY_PATTERN.match(name)
    assert not KERNEL_LAUNCH_CATEGORY_PATTERN.match("cudaMemcpyAsync")


def test_categories_of_the_host() -> None:
    """Operators, annotations, and calls of any runtime or driver are host events."""
    categories = ["cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "mtia_runtime", "kernel", "gpu_memcpy"]
    assert [CPU_EVENTS_CATEGORY_PATTERN.match(category) for category in categories] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(
    ("streams", "device"),
    [([-1], DeviceType.CPU), ([0, 7], DeviceType.GPU), ([-1, 7], DeviceType.UNKNOWN), ([], DeviceType.UNKNOWN)],
)
def test_where_events_ran(streams, device) -> None:
    """The device is GPU if all events have a stream, even stream 0, and UNKNOWN if only some events have one."""
    assert infer_device_type(pd.DataFrame({"stream": streams})) is device
