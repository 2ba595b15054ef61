"""Tests of forward_of, which links each backward operator to its forward operator."""

from __future__ import annotations

import pytest

from holotrace.enrich.host.forward_backward import forward_of
from holotrace.testing.builder import TraceBuilder


def links_of(builder):
    """Return the forward-backward links of rank 0."""
    return forward_of(builder.build().ranks[0]).rows()


def arrow(builder, category, start_us, end_us):
    """Add both ends of a flow arrow from thread 1 to thread 2."""
    return builder.event(ph="s", id=1, pid=1000, tid=1, ts=start_us, cat=category, name=category).event(
        ph="f", id=1, pid=1000, tid=2, ts=end_us, cat=category, name=category, bp="e"
    )


def numbered(sequence, forward_thread=0):
    """Return the args of an operator with a sequence number."""
    return {"Sequence number": sequence, "Fwd thread id": forward_thread}


@pytest.mark.parametrize("category", ["fwdbwd", "forward_backward"])
def test_arrows_lead_from_forward_to_backward(category):
    """An arrow links the operators at its two ends; profilers call it `fwdbwd` or `forward_backward`."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=5)
        .operator("MmBackward0", start_us=50, duration_us=5, thread=2)
    )

    assert links_of(arrow(builder, category, 0, 50)) == [(1, 0)]


def test_sequence_numbers_choose_between_operators_with_equal_starts():
    """Two operators begin where the arrow begins; the one with the backward operator's sequence number is linked."""
    builder = (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=9, args=numbered(4))
        .operator("aten::t", start_us=0, duration_us=2, args=numbered(5))
        .operator("MmBackward0", start_us=50, duration_us=5, thread=2, args=numbered(4, 1))
    )

    assert links_of(arrow(builder, "fwdbwd", 0, 50)) == [(2, 0)]


def test_sequence_numbers_replace_arrows():
    """Without arrows, both backward operators are linked to the last forward operator with their sequence number."""
    builder = (
        TraceBuilder()
        .operator("aten::linear", start_us=0, duration_us=9, args=numbered(4))
        .operator("aten::addmm", start_us=1, duration_us=5, args=numbered(4))
        .operator(
            "autograd::engine::evaluate_function: AddmmBackward0",
            start_us=50,
            duration_us=9,
            thread=2,
            args=numbered(4, 1),
        )
        .operator("AddmmBackward0", start_us=51, duration_us=5, thread=2, args=numbered(4, 1))
        .operator("MulBackward0", start_us=60, duration_us=5, thread=2, args=numbered(8, 1))
    )

    assert links_of(builder) == [(2, 1), (3, 1)]


def test_a_reused_number_means_the_preceding_forward_operator():
    """Both steps use sequence number 4; each backward operator is linked to the forward operator of its own step."""
    builder = TraceBuilder()
    for begin in (0, 100):
        builder.operator("aten::mm", start_us=begin, duration_us=5, args=numbered(4))
        builder.operator("MmBackward0", start_us=begin + 50, duration_us=5, args=numbered(4, 1))

    assert links_of(builder) == [(1, 0), (3, 2)]


def test_operators_inside_a_backward_operator_are_not_forward_operators():
    """aten::zeros has AddmmBackward0's sequence number but runs in MulBackward0, so it is not the forward operator."""
    builder = (
        TraceBuilder()
        .operator("aten::addmm", start_us=0, duration_us=5, args=numbered(4))
        .operator("aten::mul", start_us=10, duration_us=5, args=numbered(5))
        .operator("MulBackward0", start_us=50, duration_us=9, thread=2, args=numbered(5, 1))
        .operator("aten::zeros", start_us=51, duration_us=3, thread=2, args=numbered(4))
        .operator("AddmmBackward0", start_us=60, duration_us=5, thread=2, args=numbered(4, 1))
    )

    assert links_of(builder) == [(2, 1), (4, 0)]


def test_operators_without_numbers_have_no_link():
    """The profiler writes -1 if an operator has no sequence number, so two operators with -1 are not linked."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=5, args=numbered(-1))
        .operator("MmBackward0", start_us=50, duration_us=5, args=numbered(-1, 1))
    )

    assert links_of(builder) == []
