"""If shapes, stacks, memory or GPU work are missing, each analysis names the profiler option to switch on."""

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
"""Analyses that correspond to the views of the TensorBoard plugin."""

WITHOUT_GPU = "ProfilerActivity.CUDA"
WITHOUT_CPU = "ProfilerActivity.CPU"


@pytest.fixture(scope="module")
def operators_alone() -> Trace:
    """Return two ranks with only operators and steps, as recorded with ProfilerActivity.CPU."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 100).operator("aten::mm", start_us=10, duration_us=50)
    return builder.build()


@pytest.fixture(scope="module")
def kernels_alone() -> Trace:
    """Return a rank with a kernel but no host events, as recorded with only ProfilerActivity.CUDA."""
    return TraceBuilder().kernel("relu", start_us=0, duration_us=10).build()


def message_of(view: str, trace: Trace) -> str:
    """Return the error or the findings of an analysis as text."""
    try:
        return " ".join(getattr(holotrace, view)(trace).findings)
    except MissingDataError as error:
        return str(error)


def test_the_views_of_the_plugin_are_analyses() -> None:
    """Every name in OF_THE_PLUGIN is an analysis in the catalogue."""
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
        ("source_lines", "with_stack=True"),
        ("memory_timeline", "profile_memory=True"),
        ("operator_memory", "profile_memory=True"),
    ],
)
def test_a_view_names_the_option_that_was_off(view: str, option: str, operators_alone: Trace) -> None:
    """For a trace with only operators and steps, the message names the option that records the missing data."""
    assert option in message_of(view, operators_alone)


@pytest.mark.parametrize(("view", "option"), [("step_time", WITHOUT_CPU), ("operators", WITHOUT_CPU)])
def test_a_view_names_the_option_that_records_the_host(view: str, option: str, kernels_alone: Trace) -> None:
    """For a trace with only a kernel, the message names ProfilerActivity.CPU."""
    assert option in message_of(view, kernels_alone)


def test_ranks_without_collectives_have_a_message(operators_alone: Trace) -> None:
    """For ranks without collectives, the message names no option, because no option is missing."""
    assert message_of("distributed", operators_alone) == "no rank communicates, so there are no collectives to compare"


def test_collectives_without_kernels_name_the_option() -> None:
    """For a trace with only the host side of collectives, the message names ProfilerActivity.CUDA."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 100).annotation("nccl:all_reduce", start_us=10, duration_us=5)
    assert WITHOUT_GPU in message_of("distributed", builder.build())


def test_unknown_launch_shapes_have_a_message() -> None:
    """If kernels lack launch shapes, the message says that `blocks per SM` is missing."""
    trace = TraceBuilder().step(1, 0, 100).kernel("relu", start_us=10, duration_us=10).build()
    assert "blocks per SM" in message_of("gpu_summary", trace)
    assert "blocks per SM" in message_of("kernels", trace)
