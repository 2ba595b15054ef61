"""Tests of the memory_bandwidth figure."""

from __future__ import annotations

from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_bandwidth.figure import plot_memory_bandwidth
from holotrace.testing.builder import TraceBuilder


def test_memory_bandwidth_shows_the_bandwidth_of_each_kind_of_copy() -> None:
    """Rank 0 has a copy at 2 GB/s and a memset at 3 GB/s; rank 1 has only a memset at 3 GB/s."""
    builder = TraceBuilder()
    given = {"memory bandwidth (GB/s)": 2}
    builder.copy("Memcpy HtoD", byte_count=2_048, start_us=0, duration_us=1.024, args=given)
    for rank in (0, 1):
        builder.rank(rank).memset(
            byte_count=1_024, start_us=5, duration_us=1, args={**given, "memory bandwidth (GB/s)": 3}
        )
    figure = plot_memory_bandwidth(memory_bandwidth(builder.build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {"Memcpy HtoD": [2, 0], "Memset": [3, 3]}
    assert list(figure.data[0].text) == ["2 GB/s", ""]
    assert figure.layout.xaxis.title.text == "mean bandwidth (GB/s)"
    assert list(figure.data[0].customdata) == [
        "2 KiB in 1 copy, 1.02 µs (1,024 ns); 2 GB/s on average, 2 GB/s at most",
        "none",
    ]


def test_copies_of_unknown_size_say_so() -> None:
    """A ROCm memset has no recorded size, and its hover text says so."""
    builder = TraceBuilder().copy("Memcpy HtoD", byte_count=2_048, start_us=0, duration_us=1.024)
    builder.memset(start_us=5, duration_us=1, args={"bytes": None})
    figure = plot_memory_bandwidth(memory_bandwidth(builder.build()))
    hovers = {bar.name: list(bar.customdata) for bar in figure.data}
    assert hovers["Memset"] == ["1 copy of unknown size, 1 µs (1,000 ns)"]
