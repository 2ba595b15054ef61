"""The symbol table."""

from __future__ import annotations

import pandas as pd

from hta.common import trace_symbol_table
from hta.facade.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name


def table_of(*texts: str) -> TraceSymbolTable:
    """Return a table of these texts."""
    table = TraceSymbolTable()
    table.add_symbols(texts)
    return table


def test_it_is_where_scripts_import_it_from() -> None:
    """hta.common.trace_symbol_table."""
    assert trace_symbol_table.TraceSymbolTable is TraceSymbolTable


def test_each_text_has_one_number() -> None:
    """Both directions agree, and a known text is not added again."""
    table = table_of("b", "a", "b")
    assert table.get_sym_table() == ["b", "a"]
    assert table.get_sym_index() == table.get_sym_id_map() == {"b": 0, "a": 1}
    assert table.get_sym_index_series().to_dict() == {"b": 0, "a": 1}
    assert table.get_sym_table_series().to_dict() == {0: "b", 1: "a"}
    assert (table.is_empty(), TraceSymbolTable().is_empty()) == (False, True)


def test_texts_are_found_by_parts_and_patterns() -> None:
    """Parts are plain text; patterns are regular expressions from the beginning."""
    table = table_of("aten::mm", "aten::add", "nccl.*")
    assert table.find_matched_symbols(["mm", ".*"]) == ["aten::mm", "nccl.*"]
    assert table.find_matches(["aten"]) == [0, 1]
    assert table.ids_matching("aten::a") == [1]
    assert table.get_symbol_names([1, 7, -1]) == {1: "aten::add"}


def test_tables_are_copied_joined_and_made_from_numbers() -> None:
    """A copy is independent; a gap has a name."""
    first = table_of("a")
    copy = TraceSymbolTable.clone(first)
    copy.add_symbols(["b"])
    assert (first.sym_table, copy.sym_table) == (["a"], ["a", "b"])
    assert TraceSymbolTable.combine_symbol_tables([first, table_of("c", "a")]).sym_table == ["a", "c"]
    assert TraceSymbolTable.create_from_symbol_id_map({"x": 1}).sym_table == ["Undefined-0", "x"]


def test_frames_are_encoded_and_decoded() -> None:
    """There and back; a number without a text becomes empty."""
    frame = pd.DataFrame({"cat": ["kernel", "cpu_op"], "name": ["void f<int>(int)", "aten::mm"]})
    table = TraceSymbolTable()
    table.encode_df(frame)
    assert frame.to_numpy().tolist() == [[0, 2], [1, 3]]
    table.decode_df(frame)
    assert frame["s_name"].tolist() == ["void f<int>(int)", "aten::mm"]
    decode_symbol_id_to_symbol_name(frame, table)
    assert frame["s_name"].tolist() == ["f", "aten::mm"]
    frame["annotation"] = [-1, 3]
    table.add_symbols_to_trace_df(frame, "annotation")
    assert frame["s_annotation"].tolist() == ["", "aten::mm"]
    table.decode_df(frame, create_new_columns=False)
    assert frame["cat"].tolist() == ["kernel", "cpu_op"]
