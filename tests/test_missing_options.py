"""A trace without shapes, stacks, modules, memory or GPU: each view says which option of the profiler was off."""

from __future__ import annotations

import pytest

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.errors import MissingDataError
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

OF_THE_PLUGIN = (
    "step_time",
    "gpu_summary",
    "kernels",
    "operators",
    "modules",
    "memory_timeline",
    "operator_memory",
    "distributed",
)
"""Views that the TensorBoard plugin had."""

WITHOUT_GPU = "ProfilerActivity.CUDA"
WITHOUT_CPU = "ProfilerActivity.CPU"


@pytest.fixture(scope="module")
def operators_alone() -> Trace:
    """Two ranks with operators and steps: recorded with ProfilerActivity.CPU and nothing else."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 100).operator("aten::mm", start_us=10, duration_us=50)
    return builder.build()


@pytest.fixture(scope="module")
def kernels_alone() -> Trace:
    """A rank whose device worked, recorded with ProfilerActivity.CUDA and nothing else."""
    return TraceBuilder().kernel("relu", start_us=0, duration_us=10).build()


def told(view: str, trace: Trace) -> str:
    """Return what a view says about what is missing: its error or its findings."""
    try:
        return " ".join(getattr(holotrace, view)(trace).findings)
    except MissingDataError as error:
        return str(error)


def test_these_are_views() -> None:
    """A view that is renamed is asked under its new name."""
    assert set(OF_THE_PLUGIN) <= {analysis.name for analysis in ANALYSES}


@pytest.mark.parametrize(
    ("view", "option"),
    [
        ("step_time", WITHOUT_GPU),
        ("gpu_summary", WITHOUT_GPU),
        ("kernels", WITHOUT_GPU),
        ("operators", WITHOUT_GPU),
        ("operators", "record_shapes=True"),
        ("operators", "with_stack=True"),
        ("modules", "with_stack=True"),
        ("memory_timeline", "profile_memory=True"),
        ("operator_memory", "profile_memory=True"),
        ("advice", WITHOUT_GPU),
        ("advice", "profile_memory=True"),
    ],
)
def test_a_view_names_the_option_that_was_off(view: str, option: str, operators_alone: Trace) -> None:
    """Steps and operators were recorded, and nothing else."""
    assert option in told(view, operators_alone)


@pytest.mark.parametrize(("view", "option"), [("step_time", WITHOUT_CPU), ("operators", WITHOUT_CPU)])
def test_a_view_names_the_option_that_records_the_host(view: str, option: str, kernels_alone: Trace) -> None:
    """Device work was recorded, and nothing of the host."""
    assert option in told(view, kernels_alone)


def test_ranks_that_do_not_communicate_are_told_so(operators_alone: Trace) -> None:
    """No option was off: there are no collectives."""
    assert told("distributed", operators_alone) == "no rank communicates: there are no collectives to compare"


def test_collectives_without_kernels_name_the_option() -> None:
    """The host asked NCCL, and nothing of the device was recorded."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 100).annotation("nccl:all_reduce", start_us=10, duration_us=5)
    assert WITHOUT_GPU in told("distributed", builder.build())


def test_kernels_of_unknown_shape_are_told() -> None:
    """Neither blocks per SM nor grid and block: SM efficiency and occupancy stay unknown, and are not 0."""
    trace = TraceBuilder().step(1, 0, 100).kernel("relu", start_us=10, duration_us=10).build()
    assert "blocks per SM" in told("gpu_summary", trace)
    assert "blocks per SM" in told("kernels", trace)
