"""Tests of kernel_sequences: the sequences of kernels that operators launch repeatedly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace import open_trace
from holotrace.analyses.kernel_sequences.compute import kernel_sequences, sequences_over_ranks
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job


def add_call(builder: TraceBuilder, name: str, begin: int, kernels: str, **options) -> TraceBuilder:
    """Add an operator of 10 µs that launches one kernel of 2 µs for each letter in `kernels`."""
    builder.operator(name, start_us=begin, duration_us=10, **options)
    for place, kernel in enumerate(kernels):
        builder.kernel(kernel, start_us=begin + 20 + 3 * place, duration_us=2, launch_us=begin + 1 + place, **options)
    return builder


def patterns(builder: TraceBuilder, **options) -> list[tuple[str, int]]:
    """Return the pattern and the call count of every row."""
    return kernel_sequences(builder.build(), **options).per_pattern.select("pattern", "call_count").rows()


def test_equal_sequences_are_counted_together() -> None:
    """Two of three aten::linear calls launch the kernels a, b and c, so they share a row."""
    builder = TraceBuilder()
    for begin, kernels in ((0, "abc"), (100, "abd"), (200, "abc")):
        add_call(builder, "aten::linear", begin, kernels)

    assert kernel_sequences(builder.build(), operator_name="linear").per_pattern.to_dicts() == [
        {
            "rank": 0,
            "operator": "aten::linear",
            "pattern": "aten::linear|a|b|c",
            "call_count": 2,
            "kernel_count_per_call": 3,
            "kernel_ns": 12_000,
            "operator_ns": 20_000,
        },
        {
            "rank": 0,
            "operator": "aten::linear",
            "pattern": "aten::linear|a|b|d",
            "call_count": 1,
            "kernel_count_per_call": 3,
            "kernel_ns": 6_000,
            "operator_ns": 10_000,
        },
    ]


def test_kernels_are_in_the_order_in_which_they_start() -> None:
    """Kernel a is launched first but b starts first, so the pattern is b, a."""
    builder = (
        TraceBuilder()
        .operator("op", start_us=0, duration_us=10)
        .kernel("a", start_us=30, duration_us=2, launch_us=1)
        .kernel("b", start_us=20, duration_us=2, launch_us=2, stream=8)
    )

    assert patterns(builder, min_kernel_count=2) == [("op|b|a", 1)]


def test_the_outermost_operator_of_the_name_owns_the_kernels() -> None:
    """Nested aten::linear calls count once; a call deep inside other operators also counts."""
    builder = TraceBuilder().operator("aten::linear", start_us=0, duration_us=20)
    add_call(builder, "aten::linear", 5, "abc")
    builder.operator("outer", start_us=100, duration_us=50).operator("middle", start_us=101, duration_us=40)
    add_call(builder, "aten::linear", 102, "abc")

    assert patterns(builder, operator_name="aten::linear") == [("aten::linear|a|b|c", 2)]


def test_without_a_name_outermost_operators_count() -> None:
    """If `operator_name` is not given, kernels belong to their outermost operator, not to an annotation around it."""
    builder = TraceBuilder().step(1, 0, 100).operator("outer", start_us=1, duration_us=50)
    add_call(builder, "aten::linear", 5, "abc")

    assert patterns(builder) == [("outer|a|b|c", 1)]


def test_an_annotation_may_be_named() -> None:
    """With `operator_name="ProfilerStep"`, all kernels of a step are one sequence."""
    builder = TraceBuilder().step(1, 0, 100)
    add_call(builder, "aten::linear", 5, "abc")

    assert patterns(builder, operator_name="ProfilerStep") == [("ProfilerStep#1|a|b|c", 1)]


def test_another_thread_launches_for_itself() -> None:
    """A kernel that thread 2 launches while thread 1 runs aten::linear does not belong to aten::linear."""
    builder = add_call(TraceBuilder(), "aten::linear", 0, "abc")
    builder.kernel("other", start_us=60, duration_us=2, launch_us=3, thread=2)

    assert patterns(builder, operator_name="linear") == [("aten::linear|a|b|c", 1)]


def test_all_kernels_of_a_graph_belong_to_its_launch() -> None:
    """One hipGraphLaunch runs three kernels, which form one sequence of the operator that contains the launch."""
    builder = TraceBuilder().operator("replay", start_us=0, duration_us=10)
    builder.kernel("a", start_us=20, duration_us=2, launch_us=1, launch_name="hipGraphLaunch", correlation=4, stream=0)
    for place, kernel in enumerate("bc"):
        builder.kernel(kernel, start_us=30 + 5 * place, duration_us=2, correlation=4, stream=0)

    assert patterns(builder) == [("replay|a|b|c", 1)]


def test_short_sequences_are_left_out() -> None:
    """A sequence of two kernels is left out by default, because the minimum is three."""
    builder = add_call(TraceBuilder(), "aten::linear", 0, "ab")

    assert patterns(builder) == []
    assert patterns(builder, min_kernel_count=2) == [("aten::linear|a|b", 1)]


@given(st.lists(st.text("abc", max_size=4), max_size=8))
def test_counts_equal_those_of_a_dictionary(calls) -> None:
    """For random calls, the counts equal those of a simple count with a dictionary."""
    builder = TraceBuilder().kernel("alone", start_us=0, duration_us=1)
    expected: dict[str, int] = {}
    for place, kernels in enumerate(calls):
        add_call(builder, "op", 100 * place, kernels)
        if len(kernels) >= 2:
            pattern = "|".join(["op", *kernels])
            expected[pattern] = expected.get(pattern, 0) + 1

    assert patterns(builder, min_kernel_count=2) == sorted(expected.items(), key=lambda item: (-item[1], item[0]))


def test_ranks_are_summed_for_people() -> None:
    """The result has a row for each of two ranks; the printed table adds these rows up."""
    builder = add_call(TraceBuilder(), "op", 0, "abc")
    add_call(builder.rank(1), "op", 0, "abc")
    result = kernel_sequences(builder.build())

    assert result.per_pattern["rank"].to_list() == [0, 1]
    assert sequences_over_ranks(result).rows() == [("op", "op|a|b|c", 3, 2, 12_000, 20_000)]


def test_an_unknown_operator_is_an_error_that_lists_operators() -> None:
    """The error for `aten::linar` suggests `aten::linear`."""
    builder = add_call(TraceBuilder(), "aten::linear", 0, "abc")
    with pytest.raises(InvalidOptionError, match=r"^operator_name='aten::linar': .* available: aten::linear$"):
        patterns(builder, operator_name="aten::linar")


def test_meaningless_options_are_errors() -> None:
    """An empty operator name and a minimum of 0 kernels raise InvalidOptionError."""
    with pytest.raises(InvalidOptionError, match=r"^operator_name=''"):
        patterns(TraceBuilder(), operator_name="")
    with pytest.raises(InvalidOptionError, match=r"^min_kernel_count=0"):
        patterns(TraceBuilder(), min_kernel_count=0)


def test_without_device_work_the_error_names_the_rank() -> None:
    """If no rank has device work, an error is raised; if only some ranks have none, a finding is added."""
    builder = TraceBuilder().operator("op", start_us=0, duration_us=5)
    with pytest.raises(MissingDataError, match=r"^kernel_sequences: rank 0"):
        kernel_sequences(builder.build())
    result = kernel_sequences(add_call(builder.rank(1), "op", 0, "abc").build())
    assert (result.per_pattern["rank"].to_list(), len(result.findings)) == ([1], 1)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The table of a synthetic job equals its golden copy."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = kernel_sequences(open_trace(tmp_path, cache=False), min_kernel_count=1)

    golden.check(result.per_pattern, "kernel_sequences/synthetic_job")
