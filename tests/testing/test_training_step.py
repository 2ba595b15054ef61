"""`training_step` returns the operators and device work of a simulated training step."""

from __future__ import annotations

import pytest

from holotrace.testing.training_step import REDUCE_STREAM, shape_args, training_step


def all_works(layers):
    """Return all device work of a step."""
    step = training_step(layers)
    gradients = [call for calls, all_reduce in step.gradients for call in (*calls, all_reduce)]
    return [
        work
        for call in (*step.load, *step.forward, *gradients, *step.update, step.gather, step.loss_out)
        for work in call.works
    ]


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_each_layer_has_one_all_reduce(layers):
    """A step has one all-reduce per layer, on a separate stream."""
    assert len(training_step(layers).gradients) == layers
    assert sum(work.stream == REDUCE_STREAM for work in all_works(layers)) == layers


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_backward_undoes_forward_in_reverse_order(layers):
    """The backward pass has the sequence numbers of the forward pass, in reverse order."""
    step = training_step(layers)

    forward = [call.sequence for call in step.forward]
    backward = [call.sequence for calls, _ in step.gradients for call in calls]
    assert backward == list(reversed(forward))
    assert step.autograd_work_count == sum(
        len(call.works) for call in (*step.forward, *(call for calls, _ in step.gradients for call in calls))
    )


def test_names_have_all_lengths_of_real_traces():
    """The length of kernel names varies from below 20 to above 400 characters, as in real traces."""
    lengths = {len(work.name) for work in all_works(1)}

    assert max(lengths) > 400
    assert sum(length > 200 for length in lengths) >= 5
    assert min(lengths) < 20


def test_there_is_work_of_every_kind_and_category():
    """A step has computation and communication kernels, copies and memsets."""
    assert {(work.kind, work.category) for work in all_works(1)} == {
        ("computation", "kernel"),
        ("communication", "kernel"),
        ("memory", "gpu_memcpy"),
        ("memory", "gpu_memset"),
    }


def test_shape_args_follow_from_the_launch_shape():
    """`shape_args` divides a launch's blocks and warps by the number of SMs."""
    gemm = training_step(1).forward[2].works[0]

    assert shape_args(gemm.shape, 132) == {
        "registers per thread": 168,
        "shared memory": 213_504,
        "blocks per SM": 11.636364,
        "warps per SM": 139.636364,
        "grid": [96, 16, 1],
        "block": [384, 1, 1],
        "est. achieved occupancy %": 100,
    }
