"""Tests of the operators figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.modules.compute import modules
from holotrace.analyses.modules.figure import plot_modules
from holotrace.analyses.operators.compute import operators
from holotrace.analyses.operators.figure import plot_operators
from holotrace.testing.builder import TraceBuilder
from jobs import module_job


def test_operators_are_split_by_tensor_cores() -> None:
    """The bars show 3 ms on tensor cores and 7 ms elsewhere; parts of 0 ms are left out."""
    figure = plot_operators(operators(module_job().build()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {"itself, on tensor cores": [3], "itself, elsewhere": [7]}
    assert "<script>" not in figure.data[0].customdata[0]
    assert "30.0 % of it on tensor cores" in figure.data[0].customdata[0]


def test_time_on_unknown_cores_is_a_part_of_its_own() -> None:
    """3 of 10 ms are on tensor cores and 5 ms are unknown, so the hover text says "at least 30.0 %"."""
    builder = TraceBuilder().operator("op", start_us=0, duration_us=10_000)
    for start, name, duration in ((20_000, "s16816gemm", 3_000), (30_000, "mystery", 5_000), (40_000, "relu", 2_000)):
        builder.kernel(name, start_us=start, duration_us=duration, launch_us=start / 10, launch_duration_us=1)
    figure = plot_operators(operators(builder.build()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "itself, on tensor cores": [3],
        "itself, on unknown cores": [5],
        "itself, elsewhere": [2],
    }
    assert "at least 30.0 % of it on tensor cores, 50.0 % on unknown cores" in figure.data[0].customdata[0]


def test_the_host_is_drawn_on_request_and_without_devices() -> None:
    """With `side="host"`, or if the trace has no device work, the figure shows host time."""
    figure = plot_operators(operators(module_job().build()), side="host")
    assert {bar.name: list(bar.x) for bar in figure.data} == {"itself": [18], "inside it": [2]}

    on_host = plot_operators(operators(TraceBuilder().operator("op", start_us=0, duration_us=5).build()))
    assert [list(bar.x) for bar in on_host.data] == [[5]]


def test_names_of_operators_keep_their_namespaces() -> None:
    """Unlike the label of a C++ kernel, the label `aten::mm` keeps its namespace."""
    figure = plot_operators(operators(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build()))

    assert list(figure.layout.yaxis.ticktext) == ["aten::mm"]


def test_only_the_longest_operators_are_drawn() -> None:
    """The figure shows only the 20 longest of 30 operators."""
    builder = TraceBuilder()
    for place in range(30):
        builder.operator(f"op{place}", start_us=100 * place, duration_us=place + 1)

    (bar,) = plot_operators(operators(builder.build())).data
    assert list(bar.x) == list(range(30, 10, -1))


@pytest.mark.parametrize("side", [None, "device"])
def test_a_figure_without_data_says_so(side) -> None:
    """Without operators, modules or device work, the figures show a message."""
    nothing = TraceBuilder().kernel("k", start_us=0, duration_us=5).build()
    host = TraceBuilder().operator("op", start_us=0, duration_us=5).build()

    assert plot_operators(operators(nothing), side=side).layout.annotations[0].text == "No operators were recorded."
    assert "No calls of modules" in plot_modules(modules(nothing), side=side).layout.annotations[0].text
    if side == "device":
        assert "No device work was recorded" in plot_operators(operators(host), side=side).layout.annotations[0].text
