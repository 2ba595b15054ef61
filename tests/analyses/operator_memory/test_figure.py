"""Tests of the operator_memory figure."""

from __future__ import annotations

from holotrace.analyses.operator_memory.compute import OperatorMemory, operator_memory
from holotrace.analyses.operator_memory.figure import plot_operator_memory
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def result(name: str = "aten::mm", *, with_addresses: bool = True) -> OperatorMemory:
    """Return the result of an operator that allocates 16 B on the host and 3 KiB on the GPU, then frees 2 KiB."""
    builder = TraceBuilder().operator(name, start_us=0, duration_us=10)
    for time, size, address, device in ((1, 1024, 1, 0), (2, 2048, 2, 0), (3, -2048, 2, 0), (4, 16, 1, -1)):
        args = {"Device Type": int(device >= 0), "Device Id": device, "Bytes": size}
        args |= {"Addr": address} if with_addresses else {}
        builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=1000, tid=1, ts=time, args=args)
    return operator_memory(builder.build())


def test_each_operator_has_a_bar_of_released_and_unreleased_memory() -> None:
    """The bars show 2 KiB released and 1 KiB not released on the GPU; `device_type="cpu"` shows 16 B on the host."""
    figure = plot_operator_memory(result())
    assert {bar.name: list(bar.x) for bar in figure.data} == {"released again": [2], "not released by the end": [1]}
    assert "3 KiB" in figure.data[0].customdata[0]
    assert list(plot_operator_memory(result(), device_type="cpu").data[0].x) == [16]


def test_without_addresses_releases_are_not_shown() -> None:
    """If the trace contains no addresses, a single bar shows the 3 KiB that the operator allocated."""
    (bar,) = plot_operator_memory(result(with_addresses=False)).data
    assert (bar.name, list(bar.x)) == ("allocated", [3])


def test_a_figure_without_bars_says_why() -> None:
    """The message says either that memory events are missing, or that the chosen device type has no allocations."""
    empty = plot_operator_memory(operator_memory(TraceBuilder().build()))
    assert empty.layout.annotations[0].text == "No allocation by an operator was recorded."
    other = plot_operator_memory(result(), device_type="xpu")
    assert other.layout.annotations[0].text == "No operator allocated memory on devices of type xpu."


def test_names_are_escaped() -> None:
    """An operator named `<script>` appears escaped in the figure."""
    assert "<script" not in plot_operator_memory(result(MARKUP)).to_json()
