"""The queries on the SQL docs page return the same as the analyses or, for made-up traces, the expected rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import holotrace
from holotrace.testing.builder import TraceBuilder
from pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "ask_in_sql.md"
_QUERY = re.compile(r"^## (.+?)\n(?:(?!^## ).)*?^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUERIES: dict[str, str] = dict(_QUERY.findall(PAGE.read_text(encoding="utf-8")))


def ask(trace: holotrace.Trace, heading: str) -> pl.DataFrame:
    """Run the query under a heading of the page."""
    return holotrace.sql(trace, QUERIES[heading])


def sums(rows: pl.DataFrame, keys: list[str], columns: list[str]) -> dict[Any, Any]:
    """Return the sums of the columns for each combination of keys."""
    totals = rows.group_by(keys).agg(pl.col(columns).sum())
    return {row[: len(keys)]: row[len(keys) :] for row in totals.iter_rows()}


def test_longest_kernels(job) -> None:
    """The query returns the ten largest kernels, with the same counts and times as `kernels`."""
    rows = ask(job, "Which kernels take longest")
    expected = sums(holotrace.kernels(job).per_kernel, ["name"], ["call_count", "total_ns"])
    assert len(rows) == 10
    assert rows["total_ns"].is_sorted(descending=True)
    assert {(row["name"],): (row["call_count"], row["total_ns"]) for row in rows.to_dicts()}.items() <= expected.items()


def test_busy_devices(job) -> None:
    """The query returns the same windows and busy times as `temporal_breakdown`."""
    rows = ask(job, "How busy each device was")
    expected = holotrace.temporal_breakdown(job).per_device.select(
        "rank", "device", "window_ns", (pl.col("computation_ns") + pl.col("non_computation_ns")).alias("busy_ns")
    )
    assert_frame_equal(rows.drop("busy_fraction"), expected)
    assert rows["busy_fraction"].to_list() == pytest.approx((rows["busy_ns"] / rows["window_ns"]).to_list())


def test_gaps(job) -> None:
    """The query finds both gaps of a made-up trace; the gaps of the example job add up to its idle time."""
    built = TraceBuilder().kernel("a", start_us=0, duration_us=10).kernel("b", start_us=5, duration_us=2)
    built.operator("aten::late", start_us=20, duration_us=10).kernel("c", start_us=30, duration_us=5, launch_us=25)
    built.kernel("d", start_us=36, duration_us=1, launch_us=26)
    rows = ask(built.build(), "The longest gaps, and what ended them")
    columns = ["gap_ns", "next_work", "operator", "host_was_late"]
    assert rows.select(columns).rows() == [(20_000, "c", "aten::late", True), (1_000, "d", "aten::late", False)]
    everything = holotrace.sql(job, QUERIES["The longest gaps, and what ended them"].replace("LIMIT 20", ""))
    idle = holotrace.temporal_breakdown(job).per_device
    assert sums(everything, ["rank"], ["gap_ns"]) == sums(idle, ["rank"], ["idle_ns"])


def test_work_without_launch() -> None:
    """Like `launch_statistics`, the query counts two kernels without a launch."""
    built = TraceBuilder().kernel("a", start_us=0, duration_us=10).kernel("a", start_us=15, duration_us=2)
    trace = built.kernel("b", start_us=30, duration_us=5, launch_us=25).build()
    rows = ask(trace, "Work without a known launch")
    assert rows.rows() == [(0, "computation", "a", 2, 12_000)]
    assert rows["pieces"].sum() == holotrace.launch_statistics(trace).per_rank["unknown_launch_count"].sum()


def test_delays(job) -> None:
    """The query returns the same median and maximum launch delays as `launch_statistics`."""
    rows = ask(job, "Delay between launch and start")
    expected = holotrace.launch_statistics(job).per_rank
    assert rows["pieces"].to_list() == expected["kernel_count"].to_list()
    assert rows["median_ns"].to_list() == expected["median_launch_delay_ns"].to_list()
    assert rows["max_ns"].to_list() == expected["max_launch_delay_ns"].to_list()
    assert (rows["median_ns"] <= rows["p95_ns"]).all()


def test_bytes_of_collectives(job) -> None:
    """The query returns the same numbers of calls and bytes as `distributed`."""
    rows = ask(job, "Bytes and time of each collective")
    expected = holotrace.distributed(job).per_operation
    assert sums(rows, ["rank", "collective"], ["call_count", "bytes"]) == sums(
        expected, ["rank", "collective"], ["call_count", "bytes"]
    )
    assert rows["gb_per_s"].to_list() == pytest.approx((rows["bytes"] / rows["ns"]).to_list())


def test_slowest_step(job) -> None:
    """The query returns the five longest steps in the result of `step_time`."""
    rows = ask(job, "The slowest step")
    steps = holotrace.step_time(job).per_step.sort("duration_ns", "rank", "step", descending=[True, False, False])
    assert rows.rows() == steps.select("rank", "step", "duration_ns").head(5).rows()


def test_waits_of_ranks() -> None:
    """The query shows that rank 0 waits 30 µs for rank 1 in one collective, and rank 1 waits 5 µs in another."""
    builder = TraceBuilder()
    for rank, starts in ((0, (0, 105)), (1, (30, 100))):
        for start in starts:
            builder.collective("all_reduce", start_us=start, duration_us=50, rank=rank)
    rows = ask(builder.build(), "Who waits for whom")
    assert rows.rows() == [(0, 1, 1, 30_000), (1, 0, 1, 5_000)]


def test_operators(job) -> None:
    """The query returns the same numbers of calls, device times and host times as `operators`."""
    rows = ask(job, "GPU time by operator")
    columns = ["call_count", "device_self_ns", "host_self_ns"]
    expected = holotrace.operators(job).per_operator
    assert sums(rows, ["rank", "name"], columns) == sums(expected, ["rank", "operator"], columns)


def test_operators_of_kernels(job) -> None:
    """The query returns the kernel time of each operator; these times add up to the total of `kernels`."""
    rows = ask(job, "The operator behind each kernel")
    everything = holotrace.sql(job, "SELECT operator, name, duration_ns FROM kernels")
    expected = sums(everything, ["operator", "name"], ["duration_ns"])
    assert {tuple(row[:2]): (row[3],) for row in rows.iter_rows()}.items() <= expected.items()
    assert sum(total_ns for (total_ns,) in expected.values()) == holotrace.kernels(job).per_kernel["total_ns"].sum()


def test_peak_of_memory(real_traces) -> None:
    """The query returns the same memory peaks as `memory_timeline`, at the same times."""
    trace = holotrace.open_trace(real_traces / "ddp_gloo_4rank", cache=False, ranks=[0, 1])
    rows = ask(trace, "The peak of memory")
    expected = holotrace.memory_timeline(trace).per_device
    keys = ["rank", "device_type", "device", "peak_bytes"]
    assert rows.select(keys).rows() == expected.select(keys).sort(keys[:3]).rows()
    assert rows["at_ns"].to_list() == expected.sort(keys[:3])["peak_ns"].to_list()


def test_ranks_compared(job) -> None:
    """In the result of the query, the late rank 3 spends the least time in communication."""
    rows = ask(job, "Ranks compared")
    communication = rows.filter(pl.col("kernel_kind") == "communication")
    assert communication["rank"].to_list()[-1] == 3
    assert communication["above_mean"].sum() == pytest.approx(0)


def test_short_kernels() -> None:
    """Among three kernels of 3, 4 and 10 µs, the query counts two that are shorter than 10 µs."""
    builder = TraceBuilder()
    for start, length in ((0, 3), (20, 10), (40, 4)):
        builder.kernel("a", start_us=start, duration_us=length)
    assert ask(builder.build(), "Short kernels").rows() == [(0, 3, 2, 7_000)]


def test_annotations() -> None:
    """The outer annotation takes 10 µs in total, and 7 µs without the inner annotation."""
    trace = (
        TraceBuilder().annotation("outer", start_us=0, duration_us=10).annotation("inner", start_us=2, duration_us=3)
    )
    rows = ask(trace.build(), "Time in my annotations")
    assert rows.rows() == [(0, "outer", False, 1, 10_000, 7_000), (0, "inner", False, 1, 3_000, 3_000)]


def test_stored_tables() -> None:
    """The query reads a kernel's grid and block from their columns, and another argument from the JSON."""
    args = {"grid": [4, 1, 1], "block": [64, 1, 1], "my arg": 7}
    trace = TraceBuilder().kernel("a", start_us=0, duration_us=3, args=args).build()
    query = QUERIES["Join stored tables, and read args that have no column"]
    rows = ask(trace, "Join stored tables, and read args that have no column")
    assert rows.rows() == [(0, "a", 4, 64, None)]
    assert holotrace.sql(trace, query.replace("est. achieved occupancy %", "my arg"))["other"].to_list() == ["7"]


def test_every_query_of_the_page_is_tested() -> None:
    """For every query on the page, a test in this module uses the heading of the query."""
    source = Path(__file__).read_text(encoding="utf-8")
    assert len(QUERIES) >= 12
    assert [heading for heading in QUERIES if f', "{heading}")' not in source] == []
