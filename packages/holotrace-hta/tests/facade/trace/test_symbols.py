"""The symbol table."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError
from hta.common import trace_symbol_table
from hta.facade.trace.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name


def table_of(*texts: str) -> TraceSymbolTable:
    """Return a symbol table of these texts."""
    table = TraceSymbolTable()
    table.add_symbols(texts)
    return table


def test_scripts_import_the_symbol_table_from_its_old_module() -> None:
    """`hta.common.trace_symbol_table` contains the same class as `hta.facade.trace.symbols`."""
    assert trace_symbol_table.TraceSymbolTable is TraceSymbolTable


def test_each_text_has_one_number() -> None:
    """Each text gets one id, and a known text is not added again."""
    table = table_of("b", "a", "b")
    assert table.get_sym_table() == ["b", "a"]
    assert table.get_sym_index() == table.get_sym_id_map() == {"b": 0, "a": 1}
    assert table.get_sym_index_series().to_dict() == {"b": 0, "a": 1}
    assert table.get_sym_table_series().to_dict() == {0: "b", 1: "a"}
    assert (table.is_empty(), TraceSymbolTable().is_empty()) == (False, True)


def test_texts_are_found_by_parts_and_patterns() -> None:
    """`find_matches` finds plain text anywhere in a symbol; `ids_matching` matches a pattern at its start."""
    table = table_of("aten::mm", "aten::add", "nccl.*")
    assert table.find_matched_symbols(["mm", ".*"]) == ["aten::mm", "nccl.*"]
    assert table.find_matches(["aten"]) == [0, 1]
    assert table.ids_matching("aten::a") == [1]
    assert table.get_symbol_names([1, 7, -1]) == {1: "aten::add"}


def test_tables_are_copied_joined_and_made_from_numbers() -> None:
    """A copied table is independent; an unused id maps to `Undefined-0`."""
    first = table_of("a")
    copy = TraceSymbolTable.clone(first)
    copy.add_symbols(["b"])
    assert (first.sym_table, copy.sym_table) == (["a"], ["a", "b"])
    assert TraceSymbolTable.combine_symbol_tables([first, table_of("c", "a")]).sym_table == ["a", "c"]
    assert TraceSymbolTable.create_from_symbol_id_map({"x": 1}).sym_table == ["Undefined-0", "x"]


def test_frames_are_encoded_and_decoded() -> None:
    """A table encodes text as ids and decodes ids as text; unknown ids become empty text."""
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
    assert frame["annotation"].tolist() == ["", "aten::mm"]
    table.decode_df(frame, create_new_columns=False)
    assert frame["cat"].tolist() == ["kernel", "cpu_op"]


def test_tables_are_made_from_frames_and_files(tmp_path) -> None:
    """A table can be created from `cat` and `name` of a frame, or from the column `symbol` of a file."""
    frame = pd.DataFrame({"cat": ["kernel", "kernel"], "name": ["a", "b"]})
    assert TraceSymbolTable.create_from_df(frame).sym_table == ["kernel", "a", "b"]
    path = tmp_path / "symbols.csv"
    path.write_text("symbol,id\na,0\nNone,1\n", encoding="utf-8")
    assert TraceSymbolTable.from_csv_file(str(path)).sym_table == ["a", "None"]
    path.write_text("name\na\n", encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="its columns are: name"):
        TraceSymbolTable.from_csv_file(str(path))


def test_groups_of_texts_have_numbers() -> None:
    """A table returns the ids of all names or categories in a group, such as the names of launch calls."""
    table = table_of("cpu_op", "kernel", "cuda_driver", "ProfilerStep#3", "Memcpy HtoD", "cuLaunchKernelEx", "aten::mm")
    assert table.get_cpu_event_cat_ids() == [0, 2]
    assert table.get_gpu_kernel_cat_ids() == [1]
    assert table.get_profiler_step_ids() == [3]
    assert table.get_memory_name_ids() == [4]
    assert table.get_kernel_launch_ids() == [5]
    assert table.get_symbol_ids(trace_symbol_table.ProfilerStepGroupingPattern) == {"ProfilerStep#3": 3}


def test_kinds_of_rows_are_recognised() -> None:
    """Masks select rows by name or kind; a call that launched work is a launch, whatever its name."""
    table = table_of("cpu_op", "kernel", "cuda_driver", "aten::mm", "gemm", "cuLaunchKernelEx")
    frame = pd.DataFrame({"cat": [0, 1, 2, 2], "name": [3, 4, 5, 5], "index_correlation": [-1, 2, 0, -1]})
    assert table.get_events_mask(frame, ["gemm", "unknown"]).tolist() == [False, True, False, False]
    assert table.get_operator_or_cuda_runtime_mask(frame).tolist() == [True, False, True, True]
    assert table.get_runtime_launch_events_mask(frame).tolist() == [False, False, True, False]


def test_frames_move_from_one_table_to_another() -> None:
    """`new.update_encoded_df` replaces ids of `old` by ids of `new`, and adds missing texts to `new`."""
    old, new = table_of("kernel", "a", "b"), table_of("b")
    new.add_symbols_mp([["kernel"], ["c"]])
    frame = pd.DataFrame({"cat": [0, 0], "name": [1, 2]})
    new.update_encoded_df(frame, old)
    assert new.sym_table == ["b", "kernel", "c", "a"]
    assert frame.to_numpy().tolist() == [[1, 3], [1, 0]]
