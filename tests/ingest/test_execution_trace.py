"""Execution traces can be read and joined with a profiler trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from holotrace import open_trace
from holotrace.enrich.host.execution_nodes import execution_nodes
from holotrace.errors import InvalidOptionError, NotATraceError, TraceNotFoundError, UnreadableTraceError
from holotrace.ingest.execution_trace import read_execution_trace
from holotrace.testing.builder import TraceBuilder
from hta.common.execution_trace import add_et_column, correlate_execution_trace, load_execution_trace
from hta.facade.trace.trace_view import TraceView

OLD = {
    "id": 4, "name": "aten::mm", "rf_id": 2, "parent": 1, "op_schema": "aten::mm(Tensor a)", "seq_id": 7, "tid": 1,
    "inputs": [[6]], "input_shapes": [[2, 3]], "input_types": ["Tensor(float)"],
    "outputs": [[7]], "output_shapes": [[2]], "output_types": ["Tensor(float)"],
}  # fmt: skip
NEW = {
    "id": 4, "name": "aten::mm", "ctrl_deps": 1,
    "inputs": {"values": [[6]], "shapes": [[2, 3]], "types": ["Tensor(float)"]},
    "outputs": {"values": [[7]], "shapes": [[2]], "types": ["Tensor(float)"]},
    "attrs": [
        {"name": "rf_id", "type": "uint64", "value": 2}, {"name": "seq_id", "type": "int64", "value": 7},
        {"name": "tid", "type": "uint64", "value": 1}, {"name": "op_schema", "value": "aten::mm(Tensor a)"},
    ],
}  # fmt: skip
ROW = (4, "aten::mm", 2, 1, "aten::mm(Tensor a)", 7, 1, "[[2, 3]]", '["Tensor(float)"]', "[[2]]", '["Tensor(float)"]')


def written(folder: Path, *nodes: object) -> Path:
    """Write an execution trace."""
    path = folder / "et.json"
    path.write_text(json.dumps({"schema": "1.0.1", "pid": 3, "nodes": nodes}))
    return path


@pytest.mark.parametrize("node", [OLD, NEW], ids=["1.0", "1.1"])
def test_both_schemas_give_the_same_row(tmp_path, node) -> None:
    """Schema 1.0 stores values such as `rf_id` as keys of the node; schema 1.1 stores them in `attrs`."""
    execution_trace = read_execution_trace(written(tmp_path, node))
    assert execution_trace.nodes.rows() == [ROW]
    assert execution_trace.header == {"schema": "1.0.1", "pid": 3}


def test_an_empty_trace_and_a_bare_node_are_read(tmp_path) -> None:
    """A trace without nodes has no rows; a node with only an id has nulls and empty lists."""
    assert read_execution_trace(written(tmp_path)).nodes.is_empty()
    row = read_execution_trace(written(tmp_path, {"id": 1})).nodes.row(0)
    assert row == (1, "", None, None, "", None, None, "[]", "[]", "[]", "[]")


def test_other_files_are_errors(tmp_path) -> None:
    """A missing file, a truncated file, a text file and a profiler trace raise different errors."""
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"{}" * 99)[:20])
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "trace.json").write_text('{"traceEvents": []}')
    for name, error in (
        ("missing", TraceNotFoundError),
        ("cut.gz", UnreadableTraceError),
        ("text.json", NotATraceError),
        ("trace.json", NotATraceError),
    ):
        with pytest.raises(error):
            read_execution_trace(tmp_path / name)


@pytest.mark.parametrize("arg", ["External id", "Record function id"])
def test_operators_are_joined_by_their_number(tmp_path, arg) -> None:
    """An operator is joined to the first node with the same `rf_id`; kernels and thread nodes are not joined."""
    thread = {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "rf_id": 3}
    et = read_execution_trace(written(tmp_path, thread, OLD, {"id": 9, "name": "twice", "rf_id": 2}))
    builder = TraceBuilder()
    for name, number in (("aten::mm", 2), ("thread", 3), ("later", 4)):
        builder.operator(name, start_us=number, duration_us=1, args={arg: number})
    builder.kernel("gemm", start_us=9, duration_us=1, args={"External id": 2})
    (rank_trace,) = builder.build().ranks.values()

    assert execution_nodes(rank_trace, et).rows() == [(0, *ROW)]


def test_nodes_equal_those_of_hta(real_traces, goldens) -> None:
    """For every operator of the sample, our node and the values in our columns equal HTA's."""
    folder = real_traces / "execution_trace"
    view = TraceView(open_trace(folder, cache=False), str(folder))
    et = load_execution_trace(str(folder / "benchmark_simple_add_et.json.gz"))
    theirs = pd.read_csv(goldens / "hta" / "_misc" / "correlate_execution_trace.csv", index_col=0)
    frame = view.get_trace(0)

    correlate_execution_trace(view, 0, et)
    ours = frame.set_index("index", drop=False).loc[theirs["index"]]

    pd.testing.assert_series_equal(ours["et_node"], theirs.set_index("index")["et_node"], check_index_type=False)
    for column in ("op_schema", "input_shapes", "output_types", "et_node_name"):
        add_et_column(ours, et, column)
        texts = [str(value) for value in ours[column] if value is not None and value != ""]
        assert texts == [value for value in theirs[column].dropna() if value], column


def test_a_column_that_does_not_exist_is_an_error(tmp_path) -> None:
    """An unknown column, or a frame without the column `et_node`, raises an InvalidOptionError."""
    et = read_execution_trace(written(tmp_path, OLD))
    for frame, column in ((pd.DataFrame({"et_node": [4.0]}), "speed"), (pd.DataFrame(), "op_schema")):
        with pytest.raises(InvalidOptionError):
            add_et_column(frame, et, column)
