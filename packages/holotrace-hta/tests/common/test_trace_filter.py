"""Filters of trace frames."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from holotrace import open_trace
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.common import trace_filter as filters
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_view import TraceView


@pytest.fixture(scope="module")
def view() -> TraceView:
    """Build steps 4 and 5, each with an operator and a kernel, on streams 0 and 7; step 5 also has a copy."""
    builder = TraceBuilder()
    for step, stream in ((4, 0), (5, 7)):
        start = 100 * step
        builder.step(step, start, 90).operator("aten::mm", start_us=start + 1, duration_us=10 * (step - 4))
        builder.kernel("gemm", start_us=start + 20, duration_us=5, launch_us=start + 2, stream=stream)
    builder.copy("Memcpy HtoD (Pinned -> Device)", start_us=560, duration_us=1)
    return TraceView(builder.build(), "")


def kept(view: TraceView, chosen: filters.Filter, *, with_symbols: bool = True) -> list[tuple[str, float]]:
    """Return the name and the start of each matching row; the first step starts at 0."""
    frame = view.get_trace(0)
    passed = chosen(frame, view.symbol_table if with_symbols else None)
    texts = view.symbol_table.get_sym_table()
    return [(texts[name], ts) for name, ts in zip(passed["name"], passed["ts"], strict=True)]


FIRST_STEP = [("ProfilerStep#4", 0), ("aten::mm", 1), ("cudaLaunchKernel", 2), ("gemm", 20)]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (filters.IterationFilter(4), FIRST_STEP),
        (filters.IterationFilter([9]), []),
        (filters.IterationIndexFilter([0, 7]), FIRST_STEP),
        (filters.FirstIterationFilter(), FIRST_STEP),
        (filters.TimeRangeFilter((1, 26)), FIRST_STEP[1:]),
        (filters.NameFilter("gemm|Mem"), [("gemm", 20), ("gemm", 120), ("Memcpy HtoD (Pinned -> Device)", 160)]),
        (filters.NameIdColumnFilter("aten"), [("aten::mm", 1), ("aten::mm", 101)]),
        (filters.QueryFilter("dur == 90"), [("ProfilerStep#4", 0), ("ProfilerStep#5", 100)]),
        (filters.GPUKernelFilter(), [("gemm", 20), ("gemm", 120), ("Memcpy HtoD (Pinned -> Device)", 160)]),
        (filters.MemCopyEventFilter("Memcpy HtoD (Pinned -> Device)"), [("Memcpy HtoD (Pinned -> Device)", 160)]),
        (filters.MemCopyEventFilter("gemm"), []),
        (filters.MemCopyEventFilter("unknown"), []),
        (filters.CompositeFilter([filters.GPUKernelFilter(), filters.QueryFilter("stream == 0")]), [("gemm", 20)]),
        (filters.CompositeFilter([filters.ZeroDurationFilter(), filters.NameFilter("aten")]), [("aten::mm", 101)]),
    ],
)
def test_each_filter_keeps_its_events(view, chosen, expected) -> None:
    """A filter keeps the order of rows, and treats stream 0 as a device stream."""
    assert kept(view, chosen) == expected


def test_host_and_device_are_complements(view) -> None:
    """Every event passes exactly one of the host and device filters, with or without a symbol table."""
    for symbols in (True, False):
        count = sum(
            len(kept(view, kernel_filter, with_symbols=symbols))
            for kernel_filter in (filters.GPUKernelFilter(), filters.CPUOperatorFilter())
        )
        assert count == len(view.get_trace(0))


def test_ranks_are_selected_if_the_frame_has_them(view) -> None:
    """`RankFilter` keeps all rows of a frame without the column `rank`."""
    frame = view.get_trace(0)
    assert len(filters.RankFilter(3)(frame)) == len(frame)
    assert filters.RankFilter([3])(frame.assign(rank=0)).empty


def test_names_may_be_texts() -> None:
    """Filters read names as text from `s_name` or from a given column."""
    frame = pd.DataFrame({"name": [1, 2], "s_name": ["aten::mm", "gemm"], "mine": ["x", "y"]})
    assert filters.NameFilter("aten")(frame).index.tolist() == [0]
    assert filters.NameFilter("y", name_column="mine")(frame).index.tolist() == [1]
    assert filters.NameStringColumnFilter("gemm", "s_name")(frame).index.tolist() == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: filters.TimeRangeFilter((2, 1)),
        lambda: filters.NameFilter("("),
        lambda: filters.CompositeFilter([len]),
        lambda: filters.NameIdColumnFilter("a")(pd.DataFrame({"name": [0]})),
    ],
)
def test_an_option_without_meaning_is_an_error(make) -> None:
    """A reversed range, an invalid pattern, a missing symbol table, or an object that is no filter raises an error."""
    with pytest.raises(InvalidOptionError):
        make()


def test_the_filters_keep_the_same_rows_as_htas(real_traces, goldens) -> None:
    """Each filter keeps the same rows as HTA's filter; rows are compared by their position in the file."""
    trace = open_trace(real_traces / "two_rank_128", cache=False).where(before_last_step)
    view = TraceView(trace, "")
    frame, table = view.get_trace(0), view.symbol_table
    golden = goldens / "hta" / "_misc" / "filters.trace_filter_rank0.json.gz"
    theirs = json.loads(gzip.decompress(golden.read_bytes()))
    for name, chosen in _filters_of(table, theirs["iterations"][0]).items():
        assert sorted(chosen(frame, table)["index"]) == sorted(theirs[name]), name


def _filters_of(table: TraceSymbolTable, first: int) -> dict[str, filters.Filter]:
    to_device, to_host = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)"
    return {
        "IterationFilter(first)": filters.IterationFilter(first),
        "IterationIndexFilter(0)": filters.IterationIndexFilter(0),
        "FirstIterationFilter": filters.FirstIterationFilter(),
        "TimeRangeFilter(0,100000)": filters.TimeRangeFilter((0, 100_000)),
        "GPUKernelFilter": filters.GPUKernelFilter(),
        "CPUOperatorFilter": filters.CPUOperatorFilter(),
        "NameFilter(aten::)": filters.NameFilter("aten::", table),
        "NameFilter(nccl)": filters.NameFilter("nccl", table),
        "MemCopyEventFilter(HtoD)": filters.MemCopyEventFilter(to_device, table),
        "MemCopyEventFilter(DtoH)": filters.MemCopyEventFilter(to_host, table),
        "ZeroDurationFilter": filters.ZeroDurationFilter(),
        "RankFilter(0)": filters.RankFilter(0),
    }
