"""Lookups in frames."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError
from hta.common import trace_df
from hta.facade.trace.symbols import TraceSymbolTable

SYMBOLS = TraceSymbolTable()
SYMBOLS.add_symbols(["aten::mm", "aten::mm_out", "nccl"])

FRAME = pd.DataFrame(
    {
        "index": [4, 5, 6, 7],
        "name": [0, 1, 0, 2],
        "s_name": ["aten::mm", "aten::mm_out", "aten::mm", "nccl"],
        "ts": [9, 1, 3, 5],
        "iteration": [2, -1, 1, 1],
    }
)


@pytest.mark.parametrize(("position", "index"), [(0, 6), (1, 4), (-1, 4), (-2, 6), (2, None), (-3, None)])
def test_an_operator_is_found_by_its_whole_name_and_position(position, index) -> None:
    """`find_op_occurrence` matches the whole name and counts occurrences by time, not by row."""
    is_found, row = trace_df.find_op_occurrence(FRAME, "aten::mm", position)
    assert (is_found, row.get("index")) == (index is not None, index)


def test_events_are_found_by_patterns() -> None:
    """Regular expressions match at the start of names, whether the frame has the names as text or as symbol ids."""
    for indexes in (
        trace_df.find_events_by_name_patterns_using_symbol_table(FRAME, ["aten::mm$", "n"], SYMBOLS),
        trace_df.find_events_by_name_patterns_using_decoded_names(FRAME, ["aten::mm$", "n"]),
    ):
        assert indexes.tolist() == [4, 6, 7]


def test_the_steps_of_a_frame() -> None:
    """`get_iterations` returns ascending step numbers without -1; for a frame without steps, it raises an error."""
    assert trace_df.get_iterations(FRAME) == [1, 2]
    for wrong in (FRAME.drop(columns="iteration"), FRAME.assign(iteration="1")):
        with pytest.raises(InvalidOptionError, match="iteration"):
            trace_df.get_iterations(wrong)
