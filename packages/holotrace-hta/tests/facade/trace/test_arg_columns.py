"""Args as columns of frames."""

from __future__ import annotations

import json

import numpy as np
import pytest

from holotrace import open_trace
from holotrace.schema import TABLES
from holotrace.testing.builder import TraceBuilder
from hta.common.trace import Trace
from hta.configs.parser_config import AttributeSpec, ParserConfig, ValueType
from hta.facade.trace.arg_columns import _STORED_ARGS, arg_values
from hta.facade.trace.trace_view import TraceView

TRACES = {"ns": "ns_resolution", "triton": "triton"}
"""Folder of the traces for each file with HTA's results for `parse_all_args`."""


def values(builder: TraceBuilder, spec: AttributeSpec, count: int = 1) -> list[object]:
    """Return an arg of the first events of a trace."""
    return arg_values(builder.build().ranks[0], np.arange(count), spec).tolist()


def test_every_arg_has_the_value_of_the_file() -> None:
    """Every stored arg of a device or host event has a column, which contains the value from the file."""
    builder, written = TraceBuilder(), {}
    for raw, (table, columns) in _STORED_ARGS.items():
        kind = next(column.type for column in TABLES[table] if column.name == columns[0])
        written[raw] = [7, 8, 9] if len(columns) > 1 else {"json": [[2]], "string": "some", "bool": True}.get(kind, 3)
        builder.operator("a", start_us=0, duration_us=1, args={raw: written[raw]})
        builder.kernel("k", start_us=0, duration_us=1, args={raw: written[raw]})
    rank_trace, rows = builder.build().ranks[0], np.arange(2 * len(written))
    values = {raw: arg_values(rank_trace, rows, AttributeSpec("x", raw, ValueType.Object, None)) for raw in written}
    own_rows = {raw: values[raw][2 * row : 2 * row + 2].tolist() for row, raw in enumerate(written)}
    assert [raw for raw in written if written[raw] not in own_rows[raw]] == []


def test_three_columns_are_one_list() -> None:
    """The arg `grid`, stored as three columns, becomes one column of lists in the frame."""
    builder = TraceBuilder().kernel("k", start_us=0, duration_us=1, args={"grid": [4, 2, 1]})
    builder.operator("a", start_us=0, duration_us=1)
    assert values(builder, AttributeSpec("grid", "grid", ValueType.Object, "[]"), 2) == [[4, 2, 1], "[]"]


def test_an_arg_without_a_column_is_found_by_its_name() -> None:
    """An arg without a stored column is found by its name; events that lack the arg get the default value."""
    builder = TraceBuilder()
    for written in ({"my arg": 1}, {"my arg": 2.5, "text": "t"}, {}):
        builder.operator("a", start_us=0, duration_us=1, args=written)
    assert values(builder, AttributeSpec("x", "my arg", ValueType.Int, -7), 3) == [1, 2, -7]
    assert values(builder, AttributeSpec("x", "my arg", ValueType.Float, 0.0), 3) == [1, 2.5, 0]
    assert values(builder, AttributeSpec("x", "text", ValueType.String, ""), 3) == ["", "t", ""]
    assert values(builder, AttributeSpec("x", "nowhere", ValueType.Int, -1), 3) == [-1, -1, -1]


def test_text_in_a_column_of_numbers_counts_as_missing() -> None:
    """In a numeric column, text such as Intel's hexadecimal contexts counts as missing."""
    builder = TraceBuilder()
    for context in (3, "0xab"):
        builder.kernel("k", start_us=0, duration_us=1, args={"context": context})
    assert values(builder, AttributeSpec("context", "context", ValueType.Int, -1), 2) == [3, -1]


def test_a_default_of_none_is_kept() -> None:
    """If the default is None, events without the arg have None, even in a numeric column."""
    builder = TraceBuilder().operator("a", start_us=0, duration_us=1, args={"one": 1})
    builder.operator("b", start_us=0, duration_us=1)
    assert values(builder, AttributeSpec("x", "one", ValueType.Int, None), 2) == [1, None]


@pytest.mark.parametrize("name", TRACES)
def test_all_args_equal_htas(real_traces, goldens, name) -> None:
    """With `parse_all_args`, a frame has HTA's columns in HTA's order, plus `end`."""
    theirs = json.loads((goldens / "hta" / "_misc" / f"parse_all_args.{name}.json").read_text(encoding="utf-8"))
    view = TraceView(open_trace(real_traces / TRACES[name], cache=False), "", ParserConfig(parse_all_args=True))
    frame = view.get_trace(0)
    same_name = {"process_group_id": "process_group_name"}
    wanted = [same_name.get(column, column) for column in theirs["columns"] if column != "end"]
    assert set(frame.columns) - {"end"} == set(wanted)
    known = {spec.name for spec in ParserConfig.get_all_available_args().values()}
    known -= set(same_name.values())
    assert [name for name in frame.columns if name in known] == [name for name in wanted if name in known]
    assert len(frame) == theirs["rows"]


def test_parse_all_args_shows_the_args_of_listed_events(tmp_path) -> None:
    """Columns of known args come before those of unknown args; args of events that have no row get no column."""
    builder = TraceBuilder().operator("a", start_us=0, duration_us=1, args={"mine": "x", "Ev Idx": 4})
    builder.event(
        ph="i", name="[memory]", cat="cpu_instant_event", pid=1, tid=1, ts=0, s="t", args={"Bytes": 1, "other": 2}
    )
    builder.write(tmp_path)
    trace = Trace(trace_dir=str(tmp_path), parser_config=ParserConfig(parse_all_args=True))
    frame = trace.get_trace(0)
    assert frame.columns.tolist()[7:-3] == ["ev_idx", "mine"]
    assert frame[["ev_idx", "mine"]].to_numpy().tolist() == [[4, "x"]]
