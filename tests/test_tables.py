"""Results as tables for people."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.analyses.gpu_summary.entry import use_per_device
from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.idle_time.entry import idle_per_device
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_breakdown.entry import kernels_over_ranks, states_over_ranks
from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_bandwidth.entry import bandwidth_per_kind
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.queue_length.entry import queues_per_stream
from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.analyses.temporal_breakdown.entry import temporal_per_device
from holotrace.tables import Cell, cell, heading, print_frame
from holotrace.testing.builder import TraceBuilder
from holotrace.units import percent_text
from jobs import gpu_job


@pytest.mark.parametrize(
    ("column", "value", "printed"),
    [
        ("idle_ns", 1_234_567, Cell("1.23 ms", is_number=True)),
        ("mean_ns", 1_500.5, Cell("1.5 µs", is_number=True)),
        ("idle_fraction", 0.125, Cell("12.5 %", is_number=True)),
        ("call_count", 12_345, Cell("12,345", is_number=True)),
        ("mean_bytes_per_s", 12_345_678_901.5, Cell("12.3 GB/s", is_number=True)),
        ("bytes", 3 << 20, Cell("3 MiB", is_number=True)),
        ("idle_fraction", None, Cell(percent_text(None), is_number=True)),
        ("state", "memory", Cell("memory", is_number=False)),
        ("name", "void f<int>(int)", Cell("f<int>", is_number=False, whole="void f<int>(int)")),
        ("event", "void f<int>(int)", Cell("f<int>", is_number=False, whole="void f<int>(int)")),
        ("event", "aten::mm", Cell("aten::mm", is_number=False)),
        ("event", "torch::autograd::CppNode<Lookup>", Cell("torch::autograd::CppNode<Lookup>", is_number=False)),
        ("name", "\x1b[31mred", Cell("�[31mred", is_number=False)),
    ],
)
def test_a_cell_is_printed_in_the_unit_its_column_names(column: str, value: float | str | None, printed: Cell) -> None:
    """`_ns` is a duration, `fraction` a percentage, nothing a dash; names are shortened and harmless."""
    assert cell(column, value) == printed


def test_a_column_without_a_name_of_its_own_is_called_as_it_is() -> None:
    """Underscores are for programs."""
    assert (heading("overlap_fraction"), heading("some_thing")) == ("hidden share", "some thing")


def test_too_many_rows_are_cut_to_the_most_telling_ones_in_their_order() -> None:
    """Of four rows, the two with the largest value stay, and the table counts the others."""
    frame = pl.DataFrame({"rank": [0, 1, 2, 3], "idle_ns": [5, None, 9, 7]})
    table = print_frame("Idle", frame, 2, telling="idle_ns")
    assert [row[0].text for row in table.rows] == ["2", "3"]
    assert (table.left_out, table.chosen_by) == (2, "idle for")


def test_a_table_that_fits_is_whole() -> None:
    """Nothing is left out, nothing is said about it."""
    table = print_frame("Idle", pl.DataFrame({"rank": [0]}), 1, telling="rank")
    assert (len(table.rows), table.left_out, table.chosen_by) == (1, 0, "")


def test_the_device_is_shown_only_where_a_rank_has_several() -> None:
    """A column of zeros tells nothing."""
    several = TraceBuilder().kernel("a", start_us=0, duration_us=1).kernel("a", start_us=0, duration_us=1, device=1)
    assert "device" not in temporal_per_device(temporal_breakdown(gpu_job().build())).columns
    assert "device" in temporal_per_device(temporal_breakdown(several.build())).columns


def test_kernels_are_summed_over_ranks() -> None:
    """gemm: 40 µs on rank 0 and 100 µs on rank 1, two calls."""
    row = kernels_over_ranks(kernel_breakdown(gpu_job().build())).row(0, named=True)
    assert row == {
        "name": "gemm",
        "kernel_kind": "computation",
        "total_ns": 140_000,
        "fraction": pytest.approx(140 / 190),
        "call_count": 2,
        "mean_ns": 70_000.0,
        "min_ns": 40_000,
        "max_ns": 100_000,
    }


def test_states_are_summed_over_ranks() -> None:
    """The shares are of the busy time of all ranks: 70 µs and 100 µs."""
    table = states_over_ranks(kernel_breakdown(gpu_job().build()))
    assert table.select("state", "total_ns").rows() == [
        ("computation", 130_000),
        ("communication", 20_000),
        ("computation + communication", 20_000),
    ]
    assert table["fraction"].sum() == pytest.approx(1)


def test_queues_and_copies_have_a_row_each() -> None:
    """The kernel launched at 80 waits until 100; nothing is copied."""
    assert queues_per_stream(queue_length(gpu_job().build())).row(0) == (0, 7, 1.0, 1.0, 1, 1, 0, 2, 1)
    assert bandwidth_per_kind(memory_bandwidth(gpu_job().build())).is_empty()


def test_idle_categories_stand_side_by_side() -> None:
    """One row a device: its idle time, the number of its gaps' parts, and the share of each category."""
    assert idle_per_device(idle_time(gpu_job().build())).rows() == [
        (0, 40_000, 2, 0.5, 0.5, 0.0),
        (1, 0, 0, None, None, None),
    ]


def test_a_share_with_an_unknown_part_is_headed_as_a_bound() -> None:
    """40 of 100 µs on tensor cores, 50 unknown; where nothing is unknown the table does not speak of it."""
    builder = TraceBuilder().step(1, 0, 100).kernel("nvjet_tst_64x8", start_us=0, duration_us=40)
    known = builder.kernel("relu", start_us=40, duration_us=10).build()
    partly = builder.kernel("mystery", start_us=50, duration_us=50).build()

    rows = (
        use_per_device(gpu_summary(partly)).select("tensor_core_least_fraction", "tensor_core_unknown_fraction").rows()
    )
    assert rows == [(0.4, 0.5)]
    assert heading("tensor_core_least_fraction") == "on tensor cores, at least"
    assert [name for name in use_per_device(gpu_summary(known)).columns if "tensor" in name] == ["tensor_core_fraction"]


def test_kernels_that_look_alike_have_different_names_in_a_table() -> None:
    """Their short names would be the same; the whole ones are kept beside them."""
    names = [f"void at::f<{'x' * 200}, {number}>(int)" for number in range(2)]

    printed = print_frame("", pl.DataFrame({"name": names, "total_ns": [2, 1]}), 9, telling="total_ns")

    assert [row[0] for row in printed.rows] == [
        Cell("f<…0…>", is_number=False, whole=names[0]),
        Cell("f<…1…>", is_number=False, whole=names[1]),
    ]
