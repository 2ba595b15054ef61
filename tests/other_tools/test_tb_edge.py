"""Holotrace reads all 59 small inputs, each of which tests one rule of the TensorBoard plugin."""

from __future__ import annotations

import gzip
import inspect
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.enrich.compat import Compat
from holotrace.errors import MissingDataError
from holotrace.store.trace import Trace
from matrices import slow_except
from tb_goldens import EDGE, LOST

CASES = sorted((*EDGE, *LOST))

REPAIRED = {"kernel_without_dur": "missing_duration", "unquoted_NA_json": "bare_literal"}
"""{file: kind of the finding in its health record}."""

NOT_OPERATORS = (
    "[pl]",
    "ProfilerStep",
    "enumerate(",
    "Optimizer.",
    "DistributedDataParallel.forward",
    "DataParallel.forward",
)

each_case = pytest.mark.parametrize("name", slow_except(CASES, CASES[::12]))


@cache
def opened(goldens: Path, name: str) -> Trace:
    """Open the trace of a case; later calls return the same object."""
    return holotrace.open_trace(str(goldens / "tb_edge" / name / "input.pt.trace.json"), cache=False)


@cache
def plugins_index(goldens: Path) -> dict[str, Any]:
    """Return the plugin's answers for all cases."""
    index: dict[str, Any] = json.loads(gzip.decompress((goldens / "tb_edge" / "_index.json.gz").read_bytes()))
    return index


def recorded(goldens: Path, name: str, category: str) -> Counter[tuple[str, int]]:
    """Return the duration in ns of each complete event of a category; each key is the event's name and position."""
    text = (goldens / "tb_edge" / name / "input.pt.trace.json").read_text(encoding="utf-8")
    document = json.loads(text.replace("N/A", '"N/A"'))
    events = document if isinstance(document, list) else document["traceEvents"]
    chosen = (event for event in events if event["ph"] == "X" and str(event.get("cat")).lower() == category)
    return Counter({(event["name"], i): int(1000 * event.get("dur", 0)) for i, event in enumerate(chosen)})


def by_name(events: Counter[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Return, for each name, the number of events and their summed duration."""
    names = {name for name, _ in events}
    durations = {name: [ns for (other, _), ns in events.items() if other == name] for name in names}
    return {name: (len(all_ns), sum(all_ns)) for name, all_ns in durations.items()}


def test_all_cases_are_listed(goldens: Path) -> None:
    """Every input is in EDGE or, if the plugin cannot read it, in LOST."""
    assert sorted(path.name for path in (goldens / "tb_edge").iterdir() if path.is_dir()) == CASES
    assert [name for name in CASES if not plugins_index(goldens)[name]["head"]["ok"]] == list(LOST)


@each_case
def test_no_event_of_a_file_is_lost(name: str, goldens: Path) -> None:
    """The health record of a file counts all its events; only repaired files have a finding."""
    (rank_trace,) = opened(goldens, name).ranks.values()
    text = (goldens / "tb_edge" / name / "input.pt.trace.json").read_text(encoding="utf-8")
    health = rank_trace.health
    assert health.event_count == len(re.findall(r'"ph":', text))
    assert [finding.kind for finding in health.findings] == ([REPAIRED[name]] if name in REPAIRED else [])


@each_case
def test_operators_and_kernels_are_those_of_the_file(name: str, goldens: Path) -> None:
    """`operators` and `kernels` count every operator and kernel once, even if other events of the file are damaged."""
    trace = opened(goldens, name)
    operators = {
        row["operator"]: (row["call_count"], row["host_total_ns"])
        for row in holotrace.operators(trace).per_operator.to_dicts()
    }
    asked = by_name(recorded(goldens, name, "cpu_op"))
    assert operators == {operator: value for operator, value in asked.items() if not operator.startswith(NOT_OPERATORS)}
    kernels = by_name(recorded(goldens, name, "kernel"))
    if not kernels:
        return
    result = {
        row["name"]: (row["call_count"], row["total_ns"]) for row in holotrace.kernels(trace).per_kernel.to_dicts()
    }
    assert result == kernels


@pytest.mark.slow
@each_case
@pytest.mark.parametrize("compat", [None, "torch_tb_profiler"])
def test_every_view_answers_or_names_the_missing_input(name: str, compat: Compat | None, goldens: Path) -> None:
    """Every analysis returns a result or raises MissingDataError, with and without `compat`."""
    trace = opened(goldens, name)
    for analysis in ANALYSES:
        if compat and "compat" not in inspect.signature(analysis.compute).parameters:
            continue
        try:
            analysis.compute(trace, **({"compat": compat} if compat else {}))
        except MissingDataError as error:
            assert str(error).startswith(f"{analysis.name}: ")  # noqa: PT017 -- most cases raise nothing


@each_case
def test_compat_has_the_plugins_operators(name: str, goldens: Path) -> None:
    """With `compat`, each operator has the plugin's call count and times, if the plugin can read the file."""
    answer = plugins_index(goldens)[name]["head"]
    table = holotrace.operators(opened(goldens, name), compat="torch_tb_profiler").per_operator
    if not answer["ok"]:
        assert table.height == len(by_name(recorded(goldens, name, "cpu_op")))
        return
    columns = ("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
    ours = {
        row["operator"]: (row["call_count"], *((row[column] or 0) / 1000 for column in columns))
        for row in table.to_dicts()
    }
    assert ours == {row[0]: tuple(row[1:6]) for row in answer["ops"]}
