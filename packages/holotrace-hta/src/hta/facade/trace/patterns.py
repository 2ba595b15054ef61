"""Groups of event names and of event categories; the groups have the same names as in HTA."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holotrace.enrich.kernels.kernel_kind import kind_of_name
from holotrace.errors import InvalidOptionError
from holotrace.schema import EventKind, KernelKind


@dataclass(frozen=True)
class GroupingPattern:
    """A group of names: all names that match a regular expression at their start, or all names that do not.

    pattern        regular expression
    inverse_match  whether the group contains the names that do not match
    group_name     name of the group
    """

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = ""

    def match(self, name: str) -> bool:
        """Return whether a name belongs to the group."""
        return (self.pattern.match(name) is not None) != self.inverse_match


def to_grouping_pattern(
    pattern: str | list[str] | re.Pattern[str] | GroupingPattern,
    group_name: str | None = None,
    inverse_match: bool | None = None,  # noqa: FBT001 -- HTA's signature
) -> GroupingPattern:
    """Create a group from a regular expression, or by renaming or inverting another group.

    For a list of expressions, the group contains names that match any of them.

    Raises:
        InvalidOptionError: the pattern is not a regular expression.
    """
    if isinstance(pattern, GroupingPattern) and group_name is None and inverse_match is None:
        return pattern
    known = pattern if isinstance(pattern, GroupingPattern) else GroupingPattern(_compiled(pattern))
    return GroupingPattern(
        known.pattern,
        known.inverse_match if inverse_match is None else inverse_match,
        known.group_name if group_name is None else group_name,
    )


def _compiled(pattern: str | list[str] | re.Pattern[str]) -> re.Pattern[str]:
    either = "|".join(f"({alternative})" for alternative in pattern) if isinstance(pattern, list) else pattern
    try:
        return re.compile(either)
    except (TypeError, re.error) as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise InvalidOptionError(message) from error


@dataclass(frozen=True)
class _KernelGroup(GroupingPattern):
    """The names of one kind of device work, recognized by holotrace's rules instead of a regular expression."""

    kind: KernelKind = KernelKind.OTHER

    def match(self, name: str) -> bool:
        """Return whether device work with this name is of the group's kind."""
        return kind_of_name(name, EventKind.ACCELERATOR) is self.kind


def _group(pattern: str, name: str) -> GroupingPattern:
    return GroupingPattern(re.compile(pattern), group_name=name)


CPU_OP_CATEGORY_PATTERN = _group("cpu_op|user_annotation", "CPU Ops")
DEVICE_RUNTIME_CATEGORY_PATTERN = _group(".+_(runtime|driver)$", "Device Runtimes")
CPU_EVENTS_CATEGORY_PATTERN = _group("cpu_op|user_annotation|.+_(runtime|driver)$", "CPU Events")
KERNEL_CATEGORY_PATTERN = _group("kernel|gpu_mem.+|mtia_ccp_events", "GPU Kernels")
MEMORY_CATEGORY_PATTERN = _group("gpu_mem.+|mtia_ccp_events", "Memory")
CUDA_SYNC_PATTERN = _group("cuda_sync", "CUDA Sync")
GPU_EVENT_CATEGORY_PATTERN = _group(".*kernel|gpu_mem|mtia_ccp_events|cuda_sync", "GPU Events")
CPU_AND_GPU_EVENTS_CATEGORY_PATTERN = _group(
    f"{CPU_EVENTS_CATEGORY_PATTERN.pattern.pattern}|{GPU_EVENT_CATEGORY_PATTERN.pattern.pattern}", "CPU/GPU Events"
)
ALL_CATEGORY_PATTERN = _group(".*", "All")
PYTHON_FUNCTION_PATTERN = _group("python_function", "Python Functions")
KERNEL_LAUNCH_CATEGORY_PATTERN = _group(
    "(cuda|cu|hip)(Ext)?(Module|Graph)?.*Launch|runFunction - job_prep_and_submit_for_execution", "Kernel Launch"
)
MemoryKernelGroupingPattern = _group("(hip)?Mem(cpy|set)|dma", "Memory")
MTIAMemoryKernelGroupingPattern = _group("dma", "MTIA Memory")
ProfilerStepGroupingPattern = _group(r"ProfilerStep\s*#\s*\d+", "Profiler Step")
CommunicateKernelGroupingPattern: GroupingPattern = _KernelGroup(
    re.compile(".*nccl|.*rccl|.*allreduce", re.IGNORECASE), group_name="Communicate", kind=KernelKind.COMMUNICATION
)
ComputeKernelGroupingPattern: GroupingPattern = _KernelGroup(
    re.compile(".*"), group_name="Compute", kind=KernelKind.COMPUTATION
)
