"""Tests of how process groups are used, on hand-built and recorded traces."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.enrich.across_ranks.forward_calls import in_forward
from holotrace.testing.builder import TraceBuilder

PLANTED = Path(__file__).parents[2] / "reference" / "traces" / "planted_causes"
EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"

_BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"
_NO_NAME = {"Process Group Description": ""}


def _axes(trace) -> list[list[str]]:
    return holotrace.parallelism(trace).per_group["candidates"].to_list()


@pytest.mark.parametrize(("number", "expected"), [(1, [True, False, True, False, False, None, None]), (None, None)])
def test_calls_outside_the_backward_pass_before_its_last_end_are_forward(number, expected):
    """Calls after the last backward pass of a step reduce gradients, so they are not in the forward pass.

    Backward passes run from 200 to 300 and from 600 to 700 µs of the step. If no step was recorded, a call outside the
    backward passes may belong to another step, so it is unknown whether the call is in the forward pass.
    """
    builder = TraceBuilder().operator(_BACKWARD, start_us=200, duration_us=100)
    builder.operator(_BACKWARD, start_us=600, duration_us=100)
    if number is not None:
        builder.step(number, 0, 900)
    asked = pl.Series([100_000, 250_000, 400_000, 650_000, 800_000, 950_000, None], dtype=pl.Int64)

    answers = in_forward(builder.build().ranks[0], asked).to_list()

    assert answers == (expected or [None, False, None, False, None, None, None])


def test_steps_without_a_backward_pass_leave_the_pass_open():
    """Step 2 has no backward operators, so it is unknown whether its calls are in the forward pass."""
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100).operator(_BACKWARD, start_us=50, duration_us=10)

    answers = in_forward(builder.build().ranks[0], pl.Series([20_000, 120_000]))

    assert answers.to_list() == [True, None]


def _reducing(forward_elements: int, *, backward_us: int = 100) -> TraceBuilder:
    """Return two ranks that reduce `forward_elements` elements in the forward pass and 1,024 in the backward pass.

    If `forward_elements` is 0, the ranks reduce nothing in the forward pass.
    """
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).header(host_name="a").step(1, 0, 2_000)
        builder.operator(_BACKWARD, start_us=backward_us, duration_us=50)
        if forward_elements:
            builder.collective(elements=forward_elements, start_us=20, duration_us=30, launch_us=10, args=_NO_NAME)
        builder.collective(start_us=backward_us + 60, duration_us=30, launch_us=backward_us + 10, args=_NO_NAME)
    return builder


@pytest.mark.parametrize(
    ("forward_elements", "backward_us", "candidates"),
    [
        (0, 100, ["dp"]),
        (1, 100, ["dp"]),
        (0, 1_500, ["dp"]),
        (1_024, 100, ["tp"]),
        (1_024, 1_500, ["tp"]),
        (128, 100, ["dp", "tp"]),
    ],
)
def test_the_pass_that_requests_all_reduces_decides(forward_elements, backward_us, candidates):
    """All-reduces of gradients do not look like tp, even if the backward pass is early in the step.

    All-reduces of layers do not look like dp, even if the backward pass is late in the step.
    """
    assert _axes(_reducing(forward_elements, backward_us=backward_us).build()) == [candidates]


def _exchanging(pairs: dict[int, int], late_us: int = 0) -> TraceBuilder:
    """Return a job in which every rank receives data between 100 µs and 200 µs.

    The first rank starts its send at 100 µs; each other rank starts its send `late_us` after the previous rank.
    """
    builder, ranks = TraceBuilder(), tuple(pairs)
    for place, (rank, receiver) in enumerate(pairs.items()):
        sender = next(other for other, to in pairs.items() if to == rank)
        builder.rank(rank).header(host_name="a").step(1, 0, 2_000)
        for kind, source, destination, start, end, stream in (
            ("send", rank, receiver, 100 + place * late_us, 200 + place * late_us, 20),
            ("recv", sender, rank, 100, 200, 21),
        ):
            args = {**_NO_NAME, "Src Rank": source, "Dst Rank": destination}
            builder.collective(
                kind,
                group_ranks=ranks,
                args=args,
                start_us=start,
                duration_us=end - start,
                launch_us=start - 10,
                stream=stream,
            )
    return builder


@pytest.mark.parametrize(
    ("pairs", "late_us", "candidates"),
    [
        ({0: 1, 1: 2, 2: 3, 3: 0}, 0, ["cp"]),
        ({0: 1, 1: 2, 2: 0}, 0, ["cp"]),
        ({0: 1, 1: 2, 2: 0}, 150, ["pp", "cp"]),
        ({0: 1, 1: 0}, 0, ["pp", "cp"]),
        ({0: 1, 1: 0}, 150, ["pp"]),
    ],
)
def test_a_ring_is_not_a_pipeline(pairs, late_us, candidates):
    """In a ring, all ranks send at once; in a pipeline, later stages send only after they have received."""
    assert _axes(_exchanging(pairs, late_us).build()) == [candidates]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "axis"),
    [
        ("ddp_healthy", "dp"),
        ("ddp_optimizer", "dp"),
        ("ddp_slow_backward", "dp"),
        ("tensor_parallel_healthy", "tp"),
        ("tensor_parallel_slow_rank", "tp"),
        ("1f1b_slow_rank", "pp"),
        ("interleaved_slow_rank", "pp"),
        ("zero_bubble_slow_rank", "pp"),
    ],
)
def test_axes_of_recorded_jobs_without_descriptions(folder, axis):
    """All jobs use only the default group, whose description names no axis, so the axis is inferred from the calls."""
    assert _axes(holotrace.open_trace(PLANTED / folder, cache=False)) == [[axis]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "axis"),
    [("data_parallel", "dp"), ("tensor_parallel", "tp"), ("pipeline", "pp"), ("sharded", "fsdp")],
)
def test_axes_of_jobs_recorded_on_gpus(folder, axis):
    """In jobs on two GPUs, the calls alone show the axis; no description of a group is needed."""
    assert _axes(holotrace.open_trace(EXAMPLES / f"two_ranks-{folder}", cache=False)) == [[axis]]
