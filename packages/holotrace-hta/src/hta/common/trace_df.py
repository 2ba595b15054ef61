"""Looking things up in the frames of `analyzer.t.get_trace(rank)`, as scripts written for HTA do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from holotrace.errors import WrongTypeError
from hta.facade.trace.symbols import TraceSymbolTable


def get_iterations(df: pd.DataFrame) -> list[int]:
    """Return the numbers of the steps in a frame, in rising order, -1 left out.

    Raises:
        WrongTypeError: the frame has no column `iteration` of whole numbers.
    """
    if "iteration" not in df.columns or not pd.api.types.is_integer_dtype(df["iteration"]):
        message = "the frame needs a column `iteration` of whole numbers, as analyzer.t.get_trace(rank) has it"
        raise WrongTypeError(message)
    return sorted(number for number in df["iteration"].unique().tolist() if number >= 0)


def find_op_occurrence(
    df: pd.DataFrame, op_name: str, position: int, name_column: str = "s_name"
) -> tuple[bool, pd.Series[Any]]:
    """Return whether an operator of exactly this name occurs so often, and its row; an empty series where not.

    Args:
        df: a frame with names as texts in `name_column`.
        op_name: the whole name.
        position: 0 for the first in time, -1 for the last.
        name_column: the column of the names.
    """
    if df.empty or not {"ts", name_column} <= set(df.columns):
        return False, pd.Series(dtype=object)
    found = df[df[name_column] == op_name].sort_values("ts", kind="stable")
    if not -len(found) <= position < len(found):
        return False, pd.Series(dtype=object)
    return True, found.iloc[position]


def find_events_by_name_patterns_using_symbol_table(
    df: pd.DataFrame, list_name_patterns: Iterable[str], symbol_table: TraceSymbolTable
) -> pd.Series[int]:
    """Return the column `index` of the events whose name, a number in `name`, matches one of these expressions.

    A regular expression matches from the beginning of a name.
    """
    ids = {number for pattern in list_name_patterns for number in symbol_table.ids_matching(pattern)}
    return df.loc[df["name"].isin(ids), "index"]


def find_events_by_name_patterns_using_decoded_names(
    df: pd.DataFrame, list_name_patterns: Iterable[str], name_column: str = "s_name"
) -> pd.Series[int]:
    """Return the column `index` of the events whose name, a text, matches one of these regular expressions.

    They match from the beginning of a name.
    """
    patterns = [re.compile(pattern) for pattern in list_name_patterns]
    names = df[name_column]
    matching = {name for name in names.unique() if any(pattern.match(str(name)) for pattern in patterns)}
    return df.loc[names.isin(matching), "index"]
