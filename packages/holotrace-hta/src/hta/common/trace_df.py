"""Lookups in frames of `analyzer.t.get_trace(rank)`, with HTA's names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from holotrace.errors import WrongTypeError
from hta.facade.trace.symbols import TraceSymbolTable


def get_iterations(df: pd.DataFrame) -> list[int]:
    """Return the step numbers of a frame in ascending order, without -1.

    Raises:
        WrongTypeError: the frame has no integer column `iteration`.
    """
    if "iteration" not in df.columns or not pd.api.types.is_integer_dtype(df["iteration"]):
        message = "the frame has no integer column `iteration`; frames of analyzer.t.get_trace(rank) have one"
        raise WrongTypeError(message)
    return sorted(number for number in df["iteration"].unique().tolist() if number >= 0)


def find_op_occurrence(
    df: pd.DataFrame, op_name: str, position: int, name_column: str = "s_name"
) -> tuple[bool, pd.Series]:
    """Return whether the requested occurrence of an operator exists, and its row (an empty series if it does not).

    Args:
        df: a frame with names as text in `name_column`.
        op_name: the exact name.
        position: which occurrence, in order of time: 0 for the first, -1 for the last.
        name_column: the column of the names.
    """
    if df.empty or not {"ts", name_column} <= set(df.columns):
        return False, pd.Series(dtype=object)
    occurrences = df[df[name_column] == op_name].sort_values("ts", kind="stable")
    if not -len(occurrences) <= position < len(occurrences):
        return False, pd.Series(dtype=object)
    return True, occurrences.iloc[position]


def find_events_by_name_patterns_using_symbol_table(
    df: pd.DataFrame, list_name_patterns: Iterable[str], symbol_table: TraceSymbolTable
) -> pd.Series:
    """Return the column `index` of the events whose name matches one of these regular expressions at its start.

    The column `name` must contain symbol ids.
    """
    ids = {number for pattern in list_name_patterns for number in symbol_table.ids_matching(pattern)}
    return df.loc[df["name"].isin(ids), "index"]


def find_events_by_name_patterns_using_decoded_names(
    df: pd.DataFrame, list_name_patterns: Iterable[str], name_column: str = "s_name"
) -> pd.Series:
    """Return the column `index` of the events whose name matches one of these regular expressions at its start.

    `name_column` contains text.
    """
    patterns = [re.compile(pattern) for pattern in list_name_patterns]
    names = df[name_column]
    matching = {name for name in names.unique() if any(pattern.match(str(name)) for pattern in patterns)}
    return df.loc[names.isin(matching), "index"]
