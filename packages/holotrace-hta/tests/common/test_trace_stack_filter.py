"""Filters that select events by their position relative to an operator."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.common.trace import Trace
from hta.common.trace_stack_filter import (
    AfterOperatorFilter,
    BeforeOperatorFilter,
    CombinedOperatorFilter,
    OperatorFilter,
    OperatorFilterMethod,
    UnderOperatorFilter,
    get_matching_kernels,
)


@pytest.fixture(scope="module")
def frame(tmp_path_factory) -> pd.DataFrame:
    """Return the frame of a forward pass with three layers on thread 1, and one operator on thread 2."""
    builder = TraceBuilder().step(1, 0, 100).operator("forward", start_us=10, duration_us=60)
    for name, start in (("first", 12), ("middle", 30), ("last", 50)):
        builder.operator(name, start_us=start, duration_us=10).operator("mm", start_us=start + 1, duration_us=5)
        builder.kernel(f"{name}_kernel", start_us=start + 40, duration_us=5, launch_us=start + 2, stream=0)
    builder.operator("other", start_us=31, duration_us=2, thread=2)
    folder = tmp_path_factory.mktemp("job")
    builder.write(folder)
    trace = Trace(trace_dir=str(folder))
    trace.decode_symbol_ids()
    return trace.get_trace(0)


def names(kept: pd.DataFrame) -> list[str]:
    """Return the names of the matching rows, without launch calls."""
    return [name for name in kept["s_name"] if name != "cudaLaunchKernel"]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (OperatorFilterMethod.Under, ["middle", "mm"]),
        (OperatorFilterMethod.After, ["last", "mm"]),
        (OperatorFilterMethod.Before, ["first", "mm"]),
        (OperatorFilterMethod.Ancestors, ["ProfilerStep#1", "forward"]),
        (OperatorFilterMethod.Stack, ["ProfilerStep#1", "forward", "middle", "mm"]),
    ],
)
def test_the_position_relative_to_an_operator(frame, method, expected) -> None:
    """A filter only keeps events on the operator's thread, so it drops `other`, which runs on thread 2."""
    assert names(OperatorFilter("middle", 0, method)(frame)) == expected


def test_kernels_stay_with_their_calls(frame) -> None:
    """With `include_gpu_kernels`, filters keep the kernels of the kept calls, including those on stream 0."""
    assert names(UnderOperatorFilter("middle", 0, include_gpu_kernels=True)(frame)) == ["middle", "mm", "middle_kernel"]
    assert names(AfterOperatorFilter("mm", -2, include_gpu_kernels=True)(frame)) == ["last", "mm", "last_kernel"]
    assert names(BeforeOperatorFilter("mm", 1, include_gpu_kernels=True)(frame)) == ["first", "mm", "first_kernel"]


def test_an_operator_that_does_not_occur_keeps_nothing(frame) -> None:
    """If the operator does not occur, the filter keeps no rows; HTA raises AttributeError."""
    for kept in (UnderOperatorFilter("nothing", 0)(frame), UnderOperatorFilter("middle", 1)(frame)):
        assert kept.empty
        assert kept.columns.equals(frame.columns)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (("first", "last"), ["middle", "mm"]),
        (("first", ""), ["middle", "mm", "last", "mm"]),
        ((None, "middle"), ["first", "mm"]),
        (("nothing", "nothing"), ["forward", "first", "mm", "middle", "mm", "last", "mm"]),
    ],
)
def test_between_two_operators_under_a_third(frame, limits, expected) -> None:
    """`CombinedOperatorFilter` keeps events between two operators; an operator that does not occur sets no limit."""
    assert names(CombinedOperatorFilter("forward", *limits)(frame)) == expected


def test_between_two_operators_by_depth_and_with_kernels(frame) -> None:
    """Depths come from the column `depth`; without this column, the outermost kept event has depth 0."""
    chosen = CombinedOperatorFilter("forward", "first", "last", include_gpu_kernels=True)
    assert names(chosen(frame)) == ["middle", "mm", "middle_kernel"]
    assert names(CombinedOperatorFilter("forward", "first", "last", stack_depths=[0])(frame)) == ["middle"]
    assert names(CombinedOperatorFilter("forward", None, None, stack_depths=[7])(frame.assign(depth=7)))[0] == "forward"
    assert CombinedOperatorFilter("nothing", "first", "last")(frame).empty


def test_the_kernels_of_calls(frame) -> None:
    """`get_matching_kernels` returns the kernels that runtime and driver calls launch; for operators, it returns none."""
    calls = frame[frame["ts"] < 30]
    assert names(get_matching_kernels(calls, frame, "s_cat")) == ["first_kernel"]
    assert get_matching_kernels(calls[calls["s_cat"] == "cpu_op"], frame, "s_cat").empty


def test_names_have_to_be_texts(frame) -> None:
    """Filters need names as text; without them, the error says to call `decode_symbol_ids`."""
    renamed = frame.rename(columns={"s_name": "text"})
    assert names(UnderOperatorFilter("mm", 0, name_column="text")(renamed).rename(columns={"text": "s_name"})) == ["mm"]
    with pytest.raises(InvalidOptionError, match="decode_symbol_ids"):
        UnderOperatorFilter("mm", 0)(renamed)
