"""The table that turns the name and category numbers of HTA's frames into text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pandas as pd

from hta.facade.names import shorten_name


class TraceSymbolTable:
    """Texts and their numbers: a text's number is its place in `sym_table`."""

    def __init__(self) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}

    @classmethod
    def create_from_symbol_id_map(cls, sym_id_map: Mapping[str, int]) -> TraceSymbolTable:
        """Make a table from `{text: number}`; numbers that stand for nothing are called `Undefined-<number>`."""
        texts = {number: text for text, number in sym_id_map.items()}
        table = cls()
        table.sym_table = [texts.get(number, f"Undefined-{number}") for number in range(max(texts, default=-1) + 1)]
        table.sym_index = {text: number for number, text in enumerate(table.sym_table)}
        return table

    @classmethod
    def clone(cls, other: TraceSymbolTable) -> TraceSymbolTable:
        """Copy a table."""
        table = cls()
        table.add_symbols(other.sym_table)
        return table

    @classmethod
    def combine_symbol_tables(cls, tables: Iterable[TraceSymbolTable]) -> TraceSymbolTable:
        """Join tables; the numbers of the first are kept."""
        combined = cls()
        for table in tables:
            combined.add_symbols(table.sym_table)
        return combined

    def is_empty(self) -> bool:
        """Say whether there is no text."""
        return not self.sym_table

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Give every new text the next number."""
        for text in symbols:
            if text not in self.sym_index:
                self.sym_index[text] = len(self.sym_table)
                self.sym_table.append(text)

    def get_sym_id_map(self) -> dict[str, int]:
        """Return {text: number}."""
        return self.sym_index

    def get_sym_index(self) -> dict[str, int]:
        """Return {text: number}."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the texts in the order of their numbers."""
        return self.sym_table

    def get_sym_index_series(self) -> pd.Series[int]:
        """Return the numbers, indexed by text."""
        return pd.Series(self.sym_index, dtype="int64")

    def get_sym_table_series(self) -> pd.Series[str]:
        """Return the texts, indexed by number."""
        return pd.Series(self.sym_table, dtype=object)

    def find_matches(self, patterns: Iterable[str]) -> list[int]:
        """Return the numbers of the texts that contain one of these strings."""
        return [self.sym_index[text] for text in self.find_matched_symbols(patterns)]

    def find_matched_symbols(self, patterns: Iterable[str]) -> list[str]:
        """Return the texts that contain one of these strings."""
        wanted = list(patterns)
        return [text for text in self.sym_table if any(pattern in text for pattern in wanted)]

    def get_symbol_names(self, ids: Iterable[int]) -> dict[int, str]:
        """Return {number: text} of those numbers that stand for a text."""
        return {number: self.sym_table[number] for number in ids if 0 <= number < len(self.sym_table)}

    def ids_matching(self, pattern: str) -> list[int]:
        """Return the numbers of the texts that match a regular expression from their beginning."""
        compiled = re.compile(pattern)
        return [number for number, text in enumerate(self.sym_table) if compiled.match(text)]

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Add `s_<col>`, the text of each number in `col`; "" where it stands for none."""
        trace_df[f"s_{col}"] = self._texts(trace_df[col], shorten=False)

    def encode_df(self, df: pd.DataFrame) -> None:
        """Replace the texts of `cat` and `name` by numbers, new ones where needed."""
        for column in ("cat", "name"):
            self.add_symbols(df[column].unique())
            df[column] = df[column].map(self.sym_index)

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:  # noqa: FBT001, FBT002 -- HTA's
        """Put the texts of `cat` and `name` into `s_cat` and `s_name`, or in their place."""
        for column in ("cat", "name"):
            df[f"s_{column}" if create_new_columns else column] = self._texts(df[column], shorten=False)

    def _texts(self, numbers: pd.Series[int], *, shorten: bool) -> pd.Series[str]:
        """Return the text of each number, "" for none; each distinct number is looked up once."""
        known = self.get_symbol_names(numbers.unique())
        texts = {number: shorten_name(text) if shorten else text for number, text in known.items()}
        return numbers.map(texts).fillna("").astype(object)


def decode_symbol_id_to_symbol_name(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    use_shorten_name: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
) -> None:
    """Add `s_name`, shortened if asked for, and `s_cat` to a frame."""
    df["s_cat"] = symbol_table._texts(df["cat"], shorten=False)  # noqa: SLF001 -- its other half
    df["s_name"] = symbol_table._texts(df["name"], shorten=use_shorten_name)  # noqa: SLF001 -- its other half
