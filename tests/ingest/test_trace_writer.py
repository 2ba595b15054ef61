"""Files that were not written by PyTorch's profiler are recognised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import holotrace
from holotrace.ingest.trace_writer import other_writer

CALL = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 40, "name": "work (/app/main.py:3)", "cat": "FEE"}
OPERATOR = {**CALL, "name": "aten::add", "cat": "cpu_op"}
NPU = {"ph": "M", "name": "process_name", "pid": 800, "tid": 0, "args": {"name": "Ascend Hardware"}}


@pytest.mark.parametrize(
    ("document", "writer"),
    [
        ([CALL], "another program"),
        ({"traceEvents": [CALL], "viztracer_metadata": {"version": "1.0.0"}}, "VizTracer"),
        ([OPERATOR, NPU], "Ascend's profiler"),
        ([OPERATOR], ""),
        ([{**CALL, "name": "aten::add"}], ""),
        ({"traceEvents": [CALL], "schemaVersion": 1}, ""),
        ([], ""),
    ],
)
def test_the_writer_of_a_file(tmp_path: Path, document: Any, writer: str) -> None:
    """A file is attributed to PyTorch if it has no events, or has one of PyTorch's keys, categories or operators.

    But a file that has none of these keys and has a process named `Ascend Hardware` is attributed to Ascend's profiler.
    """
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (rank_trace,) = holotrace.open_trace(path, cache=False).ranks.values()

    assert other_writer(rank_trace) == writer


def test_the_diagnosis_says_that_device_work_was_not_read(tmp_path: Path) -> None:
    """The diagnosis says, in its answer and in a finding, that the device work in the file could not be read."""
    path = tmp_path / "trace.json"
    step = {**OPERATOR, "name": "ProfilerStep#3", "dur": 50}
    path.write_text(json.dumps([step, OPERATOR, NPU]), encoding="utf-8")
    result = holotrace.diagnosis(holotrace.open_trace(path, cache=False))

    assert "its device work could not be read from the file" in result.answer
    assert any("device work in this file could not be read" in finding for finding in result.findings)


def test_every_answer_begins_with_it(tmp_path: Path) -> None:
    """The summary, the diagnosis and the check say that PyTorch's profiler did not write the file."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([CALL]), encoding="utf-8")
    trace = holotrace.open_trace(path, cache=False)
    whole, checked = holotrace.summary(trace), holotrace.check(trace, strict=True)
    known = holotrace.diagnosis(trace).findings

    assert known[0].startswith("rank 0: the file was written by another program, not by PyTorch's profiler")
    assert whole.verdict == (
        "This is not a trace of PyTorch's profiler, so no rule can say where the time goes; the recording lasts 40 µs."
    )
    assert whole.doubts[0].startswith("Rank 0 (trace.json): written by another program, not by PyTorch's profiler")
    assert checked.verdict == "1 file: 1 clean, 1 not written by PyTorch's profiler."
    assert [doubt["rule"] for doubt in checked.doubts] == ["other_program"]
