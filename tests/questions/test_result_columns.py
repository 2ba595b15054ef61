"""Every column of a result is declared with its type, and every declared column occurs in a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import holotrace
from holotrace.analyses.critical_path.tables import JOB_VIEWS
from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.cli.critical_path.what_if import Predictions
from holotrace.errors import MissingDataError
from holotrace.questions.result_columns import COLUMNS, GROUPS, heading_of, unit_of
from holotrace.questions.tables import View
from holotrace.sql_queries.views import VIEWS as SQL_VIEWS
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job

TYPES = {
    "int64": pl.Int64(),
    "int32": pl.Int32(),
    "uint32": pl.UInt32(),
    "float64": pl.Float64(),
    "bool": pl.Boolean(),
    "text": pl.String(),
    "list[text]": pl.List(pl.String()),
}
SMALL_TRACES = ("ddp_gloo_4rank", "triton", "cupti", "amd_mi250", "mtia_inference", "critical_path/simple_add")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[holotrace.Trace]:
    """Open a made-up job, and small recordings of several devices and profilers."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, ranks=3, steps=2, layers=2)
    recorded = Path(__file__).parents[1] / "reference" / "traces"
    unknown = TraceBuilder().step(1, 0, 100).operator("op", start_us=1, duration_us=20)
    unknown.kernel("triton_tem_fused_mm_3", start_us=30, duration_us=5, launch_us=5)
    unknown.kernel("ampere_s16816gemm", start_us=40, duration_us=5, launch_us=9)
    return [holotrace.open_trace(folder, cache=False), unknown.build()] + [
        holotrace.open_trace(recorded / name, cache=False) for name in SMALL_TRACES
    ]


@pytest.fixture(scope="module")
def answers(traces: list[holotrace.Trace]) -> list[tuple[Any, tuple[View, ...]]]:
    """Return the result of every analysis on every trace, each with the views of its analysis."""
    return list(results(traces))


def results(traces: list[holotrace.Trace]) -> Iterator[tuple[Any, tuple[View, ...]]]:
    """Run every analysis on every trace; yield each result with the views of its analysis."""
    for trace in traces:
        for analysis in ANALYSES:
            with suppress(MissingDataError):
                yield analysis.compute(trace), analysis.views
    yield holotrace.launch_statistics(traces[0], include_launches=True), ()
    yield holotrace.critical_path(traces[0], across_ranks=True), JOB_VIEWS
    for comparison in COMPARISONS:
        yield comparison.compute(*traces[:2]), comparison.views


def tables_of(result: Any) -> list[tuple[str, pl.DataFrame]]:
    """Return the tables of a result, each with its name."""
    tables = [(name, value) for name, value in vars(result).items() if isinstance(value, pl.DataFrame)]
    return [(f"{type(result).__name__}.{name}", table) for name, table in tables]


@pytest.mark.slow
def test_every_column_of_a_result_is_declared_with_its_type(answers: list[tuple[Any, tuple[View, ...]]]) -> None:
    """Each column of each result is declared with its actual type."""
    wrong = {
        (where, name, dtype)
        for result, _ in answers
        for where, table in tables_of(result)
        for name, dtype in table.schema.items()
        if name not in COLUMNS or TYPES[COLUMNS[name].type] != dtype
    }
    assert not wrong


@pytest.mark.slow
def test_every_declared_column_is_used(answers: list[tuple[Any, tuple[View, ...]]]) -> None:
    """Each declared column occurs in a result, in a printed table, or in the predictions of `critical-path`."""
    used = set(Predictions([]).table.columns)
    for result, views in answers:
        used |= {name for _, table in tables_of(result) for name in table.columns}
        used |= {name for view in views for name in view.table(result).columns}
    # These columns occur only for the path classes that are on a critical path.
    shares = {name for name in COLUMNS if name.endswith("_path_fraction")}
    assert set(COLUMNS) - used - shares == set()
    assert used - set(COLUMNS) == set()


@pytest.mark.slow
def test_headings_of_printed_times_are_words(answers: list[tuple[Any, tuple[View, ...]]]) -> None:
    """Headings of time columns, such as `host, backward`, contain no unit, because each value has its own unit."""
    printed = {name for result, views in answers for view in views for name in view.table(result).columns}
    assert not [name for name in printed if unit_of(name) == "ns" and "ns" in heading_of(name).split()]


def test_each_name_is_declared_once() -> None:
    """No column is declared twice, not even in two groups of columns."""
    names = [column.name for columns in GROUPS.values() for column in columns]
    assert sorted(names) == sorted(COLUMNS)


def test_names_include_their_units() -> None:
    """A column's name ends in its unit, because a CSV file shows only the name."""
    endings = {
        "ns": ("_ns", "_ns_per_step"),
        "0..1": ("fraction",),
        "bytes": ("bytes", "bytes_moved"),
        "bytes/s": ("bytes_per_s",),
    }
    endings["ns since the Unix epoch"] = ("_ns",)
    wrong = [column for column in COLUMNS.values() if not column.name.endswith(endings.get(column.unit, ("",)))]
    assert not wrong


def test_sql_views_use_the_same_names() -> None:
    """If a result and an SQL view have the same column, its type and unit are the same in both."""
    wrong = [
        (view.name, column.name)
        for view in SQL_VIEWS.values()
        for column in view.columns
        if column.name in COLUMNS
        and (column.type, column.unit) != (COLUMNS[column.name].type, COLUMNS[column.name].unit)
    ]
    assert not wrong


def test_undeclared_columns_get_heading_and_unit_from_their_names() -> None:
    """If only an SQL query defines a column, such as `my_gap_ns`, its name determines its heading and unit."""
    assert [
        (heading_of(name), unit_of(name)) for name in ("my_gap_ns", "my_fraction", "json_bytes", "gpu_work", "n")
    ] == [
        ("my gap", "ns"),
        ("my fraction", "0..1"),
        ("JSON size", "bytes"),
        ("GPU work", ""),
        ("n", ""),
    ]
