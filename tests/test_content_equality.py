"""Results with equal tables are equal."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re

import polars as pl
import pytest

import holotrace
from holotrace.analyses.compare_operators.compute import compare_operators
from holotrace.analyses.compare_traces.compute import compare_traces
from holotrace.catalogue import ANALYSES
from holotrace.content_equality import EqualByContent
from holotrace.whole_job.summary import summary
from jobs import built_gpu_job

RESULTS = {
    **{analysis.name: analysis.compute for analysis in ANALYSES},
    "summary": summary,
    "compare_traces": lambda trace: compare_traces(trace, trace),
    "compare_operators": lambda trace: compare_operators(trace, trace),
    "critical_path_graph": lambda trace: holotrace.critical_path_graph(trace.ranks[0]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_equal_when_their_tables_are(name) -> None:
    """Two computations of an analysis return equal results with equal hashes; a result for fewer ranks differs."""
    trace = built_gpu_job()
    one, again = (RESULTS[name](trace) for _ in range(2))
    other = RESULTS[name](trace.select([0]))
    assert one == again
    assert hash(one) == hash(again)
    assert len({one, again}) == 1
    assert (one == other) is (str(vars(one)) == str(vars(other)))
    assert one != "something else"
    assert one is not None


@dataclasses.dataclass(frozen=True, eq=False)
class _Tables(EqualByContent):
    table: pl.DataFrame
    more: tuple[object, ...] = ()


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        (_Tables(pl.DataFrame({"a": [1.0, None, float("nan")]})), True),
        (_Tables(pl.DataFrame({"a": [1.0, 2.0, float("nan")]})), False),
        (_Tables(pl.DataFrame({"b": [1.0, None, float("nan")]})), False),
        (_Tables(pl.DataFrame({"a": [1.0, None, float("nan")]}, schema={"a": pl.Float32})), False),
        (_Tables(pl.DataFrame({"a": [1.0, None, float("nan")]}), (1,)), False),
    ],
)
def test_nulls_are_equal_and_types_matter(other, is_equal) -> None:
    """Two nulls or two NaNs count as equal; tables with other values, names or types are unequal."""
    one = _Tables(pl.DataFrame({"a": [1.0, None, float("nan")]}))
    assert (one == other) is is_equal
    assert (one != other) is not is_equal


def test_no_dataclass_with_tables_compares_them_as_tuples() -> None:
    """No dataclass with a table has the generated `__eq__`, because it would raise an error."""
    generated = []
    for module in pkgutil.walk_packages(holotrace.__path__, "holotrace."):
        if module.name.startswith(("holotrace.web", "holotrace.__main__", "holotrace._native")):
            continue
        for member in vars(importlib.import_module(module.name)).values():
            if dataclasses.is_dataclass(member) and isinstance(member, type) and member.__module__ == module.name:
                types = " ".join(
                    str(field.type) for field in dataclasses.fields(member) if "Callable" not in str(field.type)
                )
                has_tables = re.search(r"DataFrame|Series|ndarray|NDArray|_Int64", types)
                if has_tables and member.__dataclass_params__.eq:
                    generated.append(f"{module.name}.{member.__name__}")
    assert generated == []
