"""Tests of the nn.Module of each operator."""

from __future__ import annotations

from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.modules import backward_passes, module_of
from holotrace.testing.builder import TraceBuilder


def modules_of(builder):
    """Return the event_index and module name of each operator of rank 0 that has a module."""
    rank_trace = builder.build().ranks[0]
    table = module_of(rank_trace)
    return list(zip(table["event_index"].to_list(), rank_trace.texts(table["module"]).to_list(), strict=True))


def frame(builder, name, start, duration):
    """Add a Python function on thread 1."""
    return builder.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start, dur=duration)


def test_the_innermost_module_counts_and_other_functions_do_not():
    """aten::mm is in Linear_1 (inside Block_0), aten::add only in Block_0, and thread 2 has no module."""
    builder = frame(TraceBuilder(), "nn.Module: Block_0", 0, 100)
    frame(frame(builder, "nn.Module: Linear_1", 10, 50), "functional.py(1): linear", 11, 40)
    builder.operator("aten::mm", start_us=12, duration_us=5)
    builder.operator("aten::add", start_us=70, duration_us=5)
    builder.operator("aten::mul", start_us=70, duration_us=5, thread=2)

    assert modules_of(builder) == [(3, "nn.Module: Linear_1"), (4, "nn.Module: Block_0")]


def test_an_operator_inside_an_operator_is_in_the_same_module():
    """aten::linear and the aten::mm inside it both belong to Linear_0."""
    builder = frame(TraceBuilder(), "nn.Module: Linear_0", 0, 100)
    builder.operator("aten::linear", start_us=1, duration_us=20).operator("aten::mm", start_us=2, duration_us=5)

    assert modules_of(builder) == [(1, "nn.Module: Linear_0"), (2, "nn.Module: Linear_0")]


def test_without_recorded_modules_there_is_no_row():
    """A trace recorded without `with_stack` has an empty table."""
    assert modules_of(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)) == []


FUNCTION = "autograd::engine::evaluate_function: "


def passes_of(builder):
    """For each part of rank 0's backward pass, return the name of the part and of its forward operator."""
    rank_trace = builder.build().ranks[0]
    names = rank_trace.texts(host_nodes(rank_trace)["name"])
    return [(names[node], names[forward]) for node, forward in backward_passes(rank_trace).iter_rows()]


def numbered(sequence, forward_thread=0):
    """Return the args of an operator with a sequence number."""
    return {"Sequence number": sequence, "Fwd thread id": forward_thread}


def forward(*sequences):
    """Return one forward operator for each sequence number, named after the number."""
    builder = TraceBuilder()
    for place, sequence in enumerate(sequences):
        builder.operator(f"aten::op{sequence}", start_us=10 * place, duration_us=5, args=numbered(sequence))
    return builder


def test_a_part_is_the_function_that_autograd_evaluates():
    """Parts of the backward pass are `evaluate_function` ranges, not ranges around them or operators inside them."""
    builder = forward(4).operator("## backward ##", start_us=90, duration_us=100, thread=2)
    builder.operator(f"{FUNCTION}Op4Backward0", start_us=100, duration_us=20, thread=2, args=numbered(4, 1))
    builder.operator("Op4Backward0", start_us=101, duration_us=18, thread=2, args=numbered(4, 1))

    assert passes_of(builder) == [(f"{FUNCTION}Op4Backward0", "aten::op4")]


def test_before_autograd_named_its_functions_the_operator_itself_is_the_part():
    """PyTorch 1.8 has no `evaluate_function` ranges, so each backward operator is itself a part of the backward pass."""
    builder = forward(4).operator("Op4Backward", start_us=100, duration_us=20, thread=2, args=numbered(4, 1))

    assert passes_of(builder) == [("Op4Backward", "aten::op4")]


def test_a_backward_pass_inside_another_belongs_to_the_outer_one():
    """Checkpointing runs a backward pass inside another backward pass; only the outer one is returned as a part."""
    builder = forward(4, 5)
    builder.operator(f"{FUNCTION}CheckpointBackward", start_us=100, duration_us=90, thread=2, args=numbered(4, 1))
    builder.operator(f"{FUNCTION}Op5Backward0", start_us=150, duration_us=20, thread=2, args=numbered(5, 1))

    assert passes_of(builder) == [(f"{FUNCTION}CheckpointBackward", "aten::op4")]


def test_accumulations_belong_to_the_part_before_them_on_their_thread():
    """Only one of three gradient accumulations runs after a backward operator on the same thread.

    This accumulation is attributed to the forward operator of that backward operator; the other two are left out.
    """
    accumulate = f"{FUNCTION}torch::autograd::AccumulateGrad"
    builder = forward(4, 5).operator(accumulate, start_us=90, duration_us=5, thread=2)
    builder.operator(f"{FUNCTION}Op4Backward0", start_us=100, duration_us=20, thread=2, args=numbered(4, 1))
    builder.operator(accumulate, start_us=125, duration_us=5, thread=2)
    builder.operator(f"{FUNCTION}Op5Backward0", start_us=140, duration_us=20, thread=2, args=numbered(5, 1))
    builder.operator(accumulate, start_us=145, duration_us=5, thread=3)

    assert passes_of(builder) == [
        (f"{FUNCTION}Op4Backward0", "aten::op4"),
        (accumulate, "aten::op4"),
        (f"{FUNCTION}Op5Backward0", "aten::op5"),
    ]


def test_without_links_there_are_no_parts():
    """A trace without sequence numbers, or without events, has no backward parts."""
    assert passes_of(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)) == []
    assert passes_of(TraceBuilder()) == []
