"""Tests of operator_memory: the memory that each operator allocates, and the blocks that remain allocated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace import open_trace
from holotrace.analyses.memory_timeline.compute import memory_timeline
from holotrace.analyses.operator_memory.compute import operator_memory, summed_operator_memory
from holotrace.testing.builder import TraceBuilder
from tb_goldens import Case, case

DDP = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank"
PROCESS = 42
COMPAT = "torch_tb_profiler"
SUMS = (
    *("total_increase_bytes", "self_increase_bytes", "total_allocation_count", "self_allocation_count"),
    *("total_allocated_bytes", "self_allocated_bytes"),
)
WITH_WINDOW = (
    "tb/hta_df_index_resolver/worker0@default",
    "tb/unit/test_memory_view/0",
    "tb/unit/test_memory_curve_no_step_plot/0",
    "tb/unit/test_memory_curve_step_plot/0",
    "tb_edge/memory_at_node_boundaries",
    "tb_edge/memory_pairs",
)
WITH_MEMORY = (
    *WITH_WINDOW,
    *(f"tb/resnet50_num_workers_{workers}/worker0@{span}" for workers in (0, 4) for span in (1, 2)),
    "tb_edge/memory_cpu_peak_over_gpu_total",
    "tb_edge/memory_peak_over_90pct",
    "tb_edge/memory_unknown_device",
)
WINDOWS = (*((name, "") for name in WITH_MEMORY), *((name, "_window") for name in WITH_WINDOW))
LEAST_OF_TWO_DIGITS = 0.01
MOST_POINTS = 10_240


class Job:
    """A trace builder that writes operators and memory events on one thread."""

    def __init__(self) -> None:
        self.builder = TraceBuilder()

    def range(self, name: str, start_us: float, duration_us: float, category: str = "cpu_op") -> Job:
        """Add an operator, or a range of another category."""
        self.builder.event(ph="X", cat=category, name=name, pid=PROCESS, tid=1, ts=start_us, dur=duration_us)
        return self

    def change(self, time_us: float, size: int, address: int | None = None, device: tuple[int, int] = (1, 0)) -> Job:
        """Add an allocation, or a free if `size` is negative."""
        args: dict[str, int] = {"Device Type": device[0], "Device Id": device[1], "Bytes": size}
        args |= {} if address is None else {"Addr": address}
        event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": PROCESS, "tid": 1}
        self.builder.event(**event, ts=time_us, args=args)
        return self


def nested_job() -> Job:
    """Return a job in which addmm, inside linear, allocates blocks of 60 and 40 B; relu frees the 40 B.

    linear itself frees 100 B that were allocated before the recording, and relu allocates 8 B on the host.
    """
    return (
        Job()
        .range("aten::linear", 0, 10)
        .range("aten::addmm", 2, 4)
        .change(3, 60, 0x10)
        .change(4, 40, 0x20)
        .change(8, -100, 0x99)
        .range("aten::relu", 20, 10)
        .change(22, -40, 0x20)
        .change(25, 8, 0x10, device=(0, -1))
    )


def test_sums_of_each_operator_and_device() -> None:
    """Linear's totals include addmm's allocations; its self columns include only memory that linear itself frees."""
    result = operator_memory(nested_job().builder.build())

    assert result.per_operator.drop("rank").rows() == [
        ("cpu", -1, "aten::relu", 1, 8, 8, 1, 1, 8, 8, 8),
        ("cuda", 0, "aten::addmm", 1, 100, 100, 2, 2, 100, 100, 60),
        ("cuda", 0, "aten::relu", 1, -40, -40, 0, 0, 0, 0, 0),
        ("cuda", 0, "aten::linear", 1, 0, -100, 2, 0, 100, 0, 0),
    ]
    assert result.findings == ()


def test_blocks_live_from_allocation_to_release() -> None:
    """Of four blocks, one is never freed, one is freed, one existed before the recording, and one is on the host."""
    result = operator_memory(nested_job().builder.build())

    assert result.blocks.drop("rank").rows() == [
        ("cpu", -1, "aten::relu", None, 8, 25_000, None, None),
        ("cuda", 0, "aten::addmm", "aten::linear", 60, 3_000, None, None),
        ("cuda", 0, "aten::addmm", "aten::linear", 40, 4_000, 22_000, 18_000),
        ("cuda", 0, "(before the recording)", None, 100, None, 8_000, None),
    ]


def test_the_columns_and_their_types() -> None:
    """Empty tables have the same columns and types as tables with rows."""
    full, empty = (operator_memory(builder.build()) for builder in (nested_job().builder, TraceBuilder()))
    for name in ("per_operator", "blocks"):
        assert getattr(full, name).schema == getattr(empty, name).schema
    assert empty.findings == ("rank 0: no memory events were recorded; record with profile_memory=True",)


def test_an_event_belongs_to_an_operator_that_has_begun_and_not_ended() -> None:
    """An event at the end of `a` and the start of `b` belongs to `b`; one at the end of `b` belongs to no operator."""
    job = Job().range("a", 10, 10).range("b", 20, 10).change(10, 1, 1).change(20, 2, 2).change(30, 4, 3)

    result = operator_memory(job.builder.build())

    assert result.per_operator.select("operator", "self_allocated_bytes").rows() == [("b", 2), ("a", 1)]
    assert result.blocks["operator"].to_list() == ["a", "b", "(outside operators)"]
    assert result.findings == ("rank 0: 1 of 3 allocations (4 B) happened outside operators",)


def test_memory_allocated_in_an_annotation_belongs_to_the_operator_around_it() -> None:
    """16 B allocated in an annotation belong to the operator around it, because annotations are not operators."""
    job = (
        Job()
        .range("ProfilerStep#1", 0, 100, "user_annotation")
        .range("outer", 10, 20)
        .range("mine", 12, 5, "user_annotation")
        .change(13, 16, 1)
        .change(50, 32, 2)
    )
    result = operator_memory(job.builder.build())
    assert result.per_operator.select("operator", "self_allocated_bytes").rows() == [("outer", 16)]
    assert result.blocks["operator"].to_list() == ["outer", "(outside operators)"]


def test_a_recursive_operator_counts_an_event_once() -> None:
    """`to` calls itself and allocates 8 B, which count once; the plugin counts them twice, as 16 B."""
    job = Job().range("to", 0, 10).range("copy", 1, 8).range("to", 2, 4).change(3, 8, 1)
    columns = ("operator", "call_count", "total_allocated_bytes", "self_allocated_bytes")

    mine = operator_memory(job.builder.build()).per_operator.select(columns).rows()
    plugin = operator_memory(job.builder.build(), compat=COMPAT).per_operator.select(columns).rows()

    assert mine == [("to", 2, 8, 8), ("copy", 1, 8, 0)]
    assert plugin == [("to", 2, 16, 8), ("copy", 1, 8, 0)]


def test_devices_of_any_type_have_their_own_blocks() -> None:
    """The same address on an XPU and on two GPUs refers to three different blocks; the plugin fails on such a trace."""
    job = Job().range("a", 0, 9)
    for place, device in enumerate(((12, 0), (1, 0), (1, 1))):
        job.change(1 + place, 10 + place, 1, device)
    job.change(6, -11, 1, (1, 0))

    result = operator_memory(job.builder.build())

    assert result.blocks.select("device_type", "device", "block_bytes", "released_ns").rows() == [
        ("cuda", 0, 11, 6_000),
        ("cuda", 1, 12, None),
        ("xpu", 0, 10, None),
    ]
    assert result.per_operator["self_unreleased_bytes"].to_list() == [0, 12, 10]


@pytest.mark.parametrize("number", [6, 12])
def test_the_plugin_counts_calls_whatever_device_they_allocate_on(number: int) -> None:
    """With `compat`, sums include only CPU and CUDA, but the call counts include allocations on any device."""
    job = Job()
    for place in range(25):
        job.range("outer", 10 * place, 8).range("aten::_softmax", 10 * place + 1, 5).change(
            10 * place + 2, 64, place, (number, 0)
        )
    job.change(3, 32, 99, (0, -1))

    per_operator = operator_memory(job.builder.build(), compat=COMPAT).per_operator

    assert per_operator.select("device_type", "operator", "call_count", "self_allocated_bytes").rows() == [
        ("cpu", "aten::_softmax", 25, 32),
        ("cpu", "outer", 25, 0),
    ]


def test_a_window_counts_its_own_events_and_keeps_true_times() -> None:
    """A window from 4 to 8 µs includes events at both ends; a block that is freed later keeps its release time."""
    result = operator_memory(nested_job().builder.build(), start_ns=4_000, end_ns=8_000)

    assert result.per_operator.select(
        "operator", "call_count", "self_increase_bytes", "self_unreleased_bytes"
    ).rows() == [
        ("aten::addmm", 1, 40, 40),
        ("aten::linear", 1, -100, 0),
    ]
    assert result.blocks.select("block_bytes", "allocated_ns", "released_ns").rows() == [
        (40, 4_000, 22_000),
        (100, None, 8_000),
    ]


def test_a_window_without_events_has_neither_rows_nor_findings() -> None:
    """For a window after the last event, the tables are empty, and there are no findings."""
    result = operator_memory(nested_job().builder.build(), start_ns=1_000_000)
    assert (len(result.per_operator), len(result.blocks), result.findings) == (0, 0, ())


def test_without_addresses_there_are_sums_but_no_blocks() -> None:
    """Files from before 2022 have no addresses, so sums are known but lifetimes are not."""
    result = operator_memory(Job().range("a", 0, 9).change(1, 8).change(2, -8).builder.build())
    assert result.per_operator.select("self_allocated_bytes", "self_unreleased_bytes").rows() == [(8, None)]
    assert result.blocks.is_empty()
    assert result.findings == ("rank 0: the memory events have no addresses, so the lifetimes of blocks are unknown",)


def test_an_address_allocated_twice_and_freed_twice() -> None:
    """Two blocks are allocated at one address, and two are freed there.

    The first free releases the block that was allocated last; the second free matches no allocation.
    """
    job = Job().change(1, 100, 2).change(2, 700, 2).change(3, -700, 2).change(4, -100, 2)
    blocks = operator_memory(job.builder.build()).blocks.select("block_bytes", "allocated_ns", "released_ns")
    assert blocks.rows() == [(100, 1_000, None), (700, 2_000, 3_000), (100, None, 4_000)]


changes = st.lists(
    st.tuples(st.integers(0, 50), st.integers(-9, 9), st.integers(0, 3), st.sampled_from([(0, -1), (1, 0), (12, 0)])),
    max_size=30,
)
ranges = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 20)), max_size=8)


@given(changes, ranges)
def test_nothing_is_counted_twice_or_lost(
    events: list[tuple[int, int, int, tuple[int, int]]], calls: list[Any]
) -> None:
    """For random events, each allocation is one block; the self columns add up to the changes inside calls."""
    job = Job()
    for name, start, length in calls:
        job.range(name, start, length)
    for time, size, address, device in events:
        job.change(time, size, address, device)

    result = operator_memory(job.builder.build())

    allocated = [size for _, size, *_ in events if size > 0]
    assert sorted(result.blocks.drop_nulls("allocated_ns")["block_bytes"]) == sorted(allocated)
    inside = [
        (time, size) for time, size, *_ in events if any(start <= time < start + length for _, start, length in calls)
    ]
    assert result.per_operator["self_increase_bytes"].sum() == sum(size for _, size in inside)
    assert result.per_operator["self_allocated_bytes"].sum() == sum(size for _, size in inside if size > 0)


def test_ranks_and_devices_of_a_type_add_up() -> None:
    """A call that allocates 8 B on one device and 4 B on another has a single row, with one call and 12 B."""
    job = Job().range("a", 0, 9).change(1, 8, 1).change(2, 4, 1, (1, 1))
    summed = summed_operator_memory(operator_memory(job.builder.build()).per_operator)
    assert summed.select("device_type", "operator", "call_count", "self_allocated_bytes").rows() == [
        ("cuda", "a", 1, 12)
    ]


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """Both tables of the example job of four CPU ranks equal their golden copies."""
    result = operator_memory(open_trace(DDP, cache=False))
    golden.check(result.per_operator, "operator_memory/ddp_gloo_4rank.per_operator")
    golden.check(result.blocks.filter(rank=0).head(200), "operator_memory/ddp_gloo_4rank.blocks")


@pytest.mark.parametrize(("name", "window"), WINDOWS)
def test_sums_equal_those_of_the_plugin(name: str, window: str, goldens: Path, real_traces: Path) -> None:
    """With `compat`, all rows equal the plugin's rows, once sizes are converted to KB and rounded as in the plugin."""
    opened = case(name, goldens, real_traces)
    theirs, window_ns = _theirs(opened, "memory", window)

    table = operator_memory(opened.trace, compat=COMPAT, **window_ns).per_operator

    mine: dict[str, list[tuple[Any, ...]]] = {}
    for row in table.iter_rows(named=True):
        sums = [_rounded(row[name] / 1024) if name.endswith("_bytes") else row[name] for name in SUMS]
        mine.setdefault(_device(row), []).append((row["operator"], row["call_count"], *sums))
    assert {device: sorted(rows) for device, rows in mine.items()} == {
        device: sorted(map(tuple, rows)) for device, rows in theirs.items()
    }


@pytest.mark.parametrize(("name", "window"), WINDOWS)
def test_blocks_equal_those_of_the_plugin(name: str, window: str, goldens: Path, real_traces: Path) -> None:
    """With `compat`, all blocks equal the plugin's, including blocks with only an allocation or only a release.

    A time halfway between two rounded values may be rounded up or down.
    """
    opened = case(name, goldens, real_traces)
    if opened.view("memory_events") is None:
        assert "memory_unknown_device" in str(opened.answers)  # the plugin fails on traces with an XPU
        return
    theirs, window_ns = _theirs(opened, "memory_events", window)
    first_ns = _at_ns(opened, opened.view("internals")["profiler_start_ts"])

    blocks = operator_memory(opened.trace, compat=COMPAT, **window_ns).blocks

    mine = [_their_row(row, first_ns) for row in blocks.iter_rows(named=True)]
    shown = [(device, *row) for device, rows in theirs.items() for row in rows]
    assert sorted(row[:3] for row in mine) == sorted(row[:3] for row in shown)
    for place in (3, 4, 5):  # the order of blocks with equal device, operator and size is arbitrary
        times, expected = (
            sorted((*row[:3], row[place]) for row in rows if row[place] is not None) for rows in (mine, shown)
        )
        assert [row[:3] for row in times] == [row[:3] for row in expected]
        assert [row[3] for row in times] == pytest.approx([row[3] for row in expected], abs=0.00501)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_series_contain_the_curve_of_the_plugin(name: str, goldens: Path, real_traces: Path) -> None:
    """`memory_timeline` contains every point of the plugin's curve; the plugin draws at most 10,240 points."""
    opened = case(name, goldens, real_traces)
    curve = opened.view("memory_curve_raw")
    if curve is None:
        assert "memory_unknown_device" in str(opened.answers)
        return
    first_ns = _at_ns(opened, opened.view("internals")["profiler_start_ts"])
    series = memory_timeline(opened.trace).series
    for device, rows in curve["rows"].items():
        mine = series.filter(_is_of(device)).select("time_ns", "allocated_bytes", "reserved_bytes").rows()
        changes = {(round((time_ns - first_ns) / 1e3), *sizes) for time_ns, *sizes in mine}
        shown = {(round(time_us), *sizes) for time_us, *sizes in rows}
        assert shown <= changes
        assert len(rows) in {len(mine), MOST_POINTS}


def _theirs(opened: Case, view: str, window: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the plugin's rows by device, and the window as options of `operator_memory`."""
    answer = opened.view(view + window)
    if not window:
        return answer["rows"], {}
    start_us, end_us = answer["window"]
    return answer["data"]["rows"], {"start_ns": _at_ns(opened, start_us), "end_ns": _at_ns(opened, end_us)}


def _at_ns(opened: Case, time_us: float) -> int:
    (rank_trace,) = opened.trace.ranks.values()
    return round(time_us * 1_000) + rank_trace.header.base_time_ns


def _device(row: dict[str, Any]) -> str:
    return "CPU" if row["device_type"] == "cpu" else f"GPU{row['device']}"


def _is_of(device: str) -> pl.Expr:
    if device == "CPU":
        return pl.col("device_type") == "cpu"
    return (pl.col("device_type") == "cuda") & (pl.col("device") == int(device.removeprefix("GPU")))


def _their_row(row: dict[str, Any], first_ns: int) -> tuple[Any, ...]:
    """Return the device, name, KB and times (ms) of a block as the plugin shows them."""
    times_ms = [None if row[name] is None else (row[name] - first_ns) / 1e6 for name in ("allocated_ns", "released_ns")]
    lifetime = None if row["lifetime_ns"] is None else row["lifetime_ns"] / 1e6
    return _device(row), _their_name(row), _rounded(row["block_bytes"] / 1024), *times_ms, lifetime


def _their_name(row: dict[str, Any]) -> str:
    operator, caller = row["operator"], row["caller"]
    if operator.startswith("("):
        return "<unknown>"
    return f"{caller} ({operator})" if operator.startswith("aten::empty") and caller else operator


def _rounded(value: float) -> float:
    """Round as the plugin does: to two decimals, or to one significant digit if the value is below 0.01."""
    return round(value, 2) if value == 0 or abs(value) >= LEAST_OF_TWO_DIGITS else float(f"{value:.0e}")
