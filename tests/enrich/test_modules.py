"""Which nn.Module each operator belongs to."""

from __future__ import annotations

from hta.enrich.modules import module_of
from hta.testing.builder import TraceBuilder


def modules_of(builder):
    """Return event_index and name of the module of the operators of rank 0 that have one."""
    rank_trace = builder.build().ranks[0]
    table = rank_trace.derive(module_of)
    return list(zip(table["event_index"].to_list(), rank_trace.texts(table["module"]).to_list(), strict=True))


def frame(builder, name, start, duration):
    """Add a Python function on thread 1."""
    return builder.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start, dur=duration)


def test_the_innermost_module_counts_and_other_functions_do_not():
    """Block_0 around Linear_1 around a plain function around aten::mm; aten::add lies in Block_0 alone."""
    builder = frame(TraceBuilder(), "nn.Module: Block_0", 0, 100)
    frame(frame(builder, "nn.Module: Linear_1", 10, 50), "functional.py(1): linear", 11, 40)
    builder.operator("aten::mm", start_us=12, duration_us=5)
    builder.operator("aten::add", start_us=70, duration_us=5)
    builder.operator("aten::mul", start_us=70, duration_us=5, thread=2)

    assert modules_of(builder) == [(3, "nn.Module: Linear_1"), (4, "nn.Module: Block_0")]


def test_an_operator_inside_an_operator_is_in_the_same_module():
    """aten::mm within aten::linear within Linear_0."""
    builder = frame(TraceBuilder(), "nn.Module: Linear_0", 0, 100)
    builder.operator("aten::linear", start_us=1, duration_us=20).operator("aten::mm", start_us=2, duration_us=5)

    assert modules_of(builder) == [(1, "nn.Module: Linear_0"), (2, "nn.Module: Linear_0")]


def test_without_recorded_modules_there_is_no_row():
    """Recorded without `with_stack`."""
    assert modules_of(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5)) == []
