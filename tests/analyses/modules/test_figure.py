"""Tests of the modules figure."""

from __future__ import annotations

import json

from holotrace.analyses.modules.compute import modules
from holotrace.analyses.modules.figure import plot_modules
from holotrace.testing.builder import TraceBuilder
from jobs import module_job


def test_modules_are_boxes_in_boxes() -> None:
    """The box of Net_0 contains the box of Linear_0; both have 10 ms of kernels, and names are escaped."""
    (boxes,) = plot_modules(modules(module_job().build())).data

    assert list(boxes.values) == [10_000_000, 10_000_000]
    assert list(boxes.parents) == ["", "Net_0"]
    assert list(boxes.marker.colors) == [0, 1]
    assert not any("<script>" in text for text in (*boxes.labels, *boxes.customdata))


def test_a_page_can_change_the_theme_of_the_modules() -> None:
    """The light and the dark figure have equal data, so a page only has to switch the template."""
    result = modules(module_job().build())
    light, dark = (json.loads(plot_modules(result, theme=theme).to_json()) for theme in ("light", "dark"))
    assert light["data"] == dark["data"]


def test_several_models_share_one_box() -> None:
    """Two outermost modules are inside a box named "all modules"."""
    builder = TraceBuilder()
    for name, start, duration in (("Net_0", 0, 5), ("Loss_0", 10, 3)):
        place = {"pid": 1000, "tid": 1, "ts": start, "dur": duration}
        builder.event(ph="X", cat="python_function", name=f"nn.Module: {name}", **place)

    (boxes,) = plot_modules(modules(builder.build())).data
    assert list(zip(boxes.labels, boxes.parents, boxes.values, strict=True)) == [
        ("all modules", "", 8_000),
        ("Net_0", "all modules", 5_000),
        ("Loss_0", "all modules", 3_000),
    ]
