"""The table that maps the name and category ids of HTA's frames to text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from holotrace.errors import InvalidOptionError
from hta.facade.imports.modules_later import pd
from hta.facade.trace.names import shorten_name
from hta.facade.trace.patterns import (
    CPU_EVENTS_CATEGORY_PATTERN,
    CPU_OP_CATEGORY_PATTERN,
    DEVICE_RUNTIME_CATEGORY_PATTERN,
    KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    GroupingPattern,
    MemoryKernelGroupingPattern,
    ProfilerStepGroupingPattern,
)


class TraceSymbolTable:
    """Maps symbol ids to strings; a string's id is its index in `sym_table`."""

    def __init__(self) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}

    @classmethod
    def create_from_symbol_id_map(cls, symbol_id_map: Mapping[str, int]) -> TraceSymbolTable:
        """Create a table from `{text: id}`; unused ids map to `Undefined-<id>`."""
        texts = {number: text for text, number in symbol_id_map.items()}
        table = cls()
        table.sym_table = [texts.get(number, f"Undefined-{number}") for number in range(max(texts, default=-1) + 1)]
        table.sym_index = {text: number for number, text in enumerate(table.sym_table)}
        return table

    @classmethod
    def create_from_df(cls, df: pd.DataFrame) -> TraceSymbolTable:
        """Create a table of the strings in `cat` and `name`.

        Raises:
            InvalidOptionError: the columns contain numbers.
        """
        table = cls()
        for column in ("cat", "name"):
            if pd.api.types.is_numeric_dtype(df[column]):
                message = f"the column {column} contains numbers instead of text"
                raise InvalidOptionError(message)
            table.add_symbols(df[column].unique())
        return table

    @classmethod
    def from_csv_file(cls, file_path: str) -> TraceSymbolTable:
        """Create a table from a CSV file whose column `symbol` contains the strings in the order of their ids.

        Raises:
            InvalidOptionError: the file has no such column.
        """
        texts = pd.read_csv(file_path, keep_default_na=False)
        if "symbol" not in texts.columns:
            message = f"{file_path} has no column `symbol`; its columns are: {', '.join(map(str, texts.columns))}"
            raise InvalidOptionError(message)
        table = cls()
        table.add_symbols(map(str, texts["symbol"]))
        return table

    @classmethod
    def clone(cls, symbol_table: TraceSymbolTable) -> TraceSymbolTable:
        """Copy a table."""
        table = cls()
        table.add_symbols(symbol_table.sym_table)
        return table

    @classmethod
    def combine_symbol_tables(cls, tables: Iterable[TraceSymbolTable]) -> TraceSymbolTable:
        """Merge tables, keeping the ids of the first table."""
        combined = cls()
        for table in tables:
            combined.add_symbols(table.sym_table)
        return combined

    def is_empty(self) -> bool:
        """Return whether the table is empty."""
        return not self.sym_table

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Add the strings that are not in the table yet, and give them the next ids."""
        for text in symbols:
            if text not in self.sym_index:
                self.sym_index[text] = len(self.sym_table)
                self.sym_table.append(text)

    def add_symbols_mp(self, symbols_list: Iterable[Iterable[str]]) -> None:
        """Call `add_symbols` for each of several lists of strings."""
        for symbols in symbols_list:
            self.add_symbols(symbols)

    def get_sym_id_map(self) -> dict[str, int]:
        """Return {text: id}."""
        return self.sym_index

    def get_sym_index(self) -> dict[str, int]:
        """Return {text: id}."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the strings in the order of their ids."""
        return self.sym_table

    def get_sym_index_series(self) -> pd.Series:
        """Return the ids, indexed by string."""
        return pd.Series(self.sym_index, dtype="int64")

    def get_sym_table_series(self) -> pd.Series:
        """Return the strings, indexed by id."""
        return pd.Series(self.sym_table, dtype=object)

    def find_matches(self, patterns: Iterable[str]) -> list[int]:
        """Return the ids of the symbols that contain any of these strings."""
        return [self.sym_index[text] for text in self.find_matched_symbols(patterns)]

    def find_matched_symbols(self, patterns: Iterable[str]) -> list[str]:
        """Return the symbols that contain any of these strings."""
        wanted = list(patterns)
        return [text for text in self.sym_table if any(pattern in text for pattern in wanted)]

    def get_symbol_names(self, symbol_ids: Iterable[int]) -> dict[int, str]:
        """Return {id: text} for the ids in the table."""
        return {number: self.sym_table[number] for number in symbol_ids if 0 <= number < len(self.sym_table)}

    def get_symbol_ids(self, symbol_pattern: GroupingPattern) -> dict[str, int]:
        """Return {text: id} for the symbols in a group."""
        return {text: number for text, number in self.sym_index.items() if symbol_pattern.match(text)}

    def get_profiler_step_ids(self) -> list[int]:
        """Return the ids of step names."""
        return self._ids(ProfilerStepGroupingPattern)

    def get_memory_name_ids(self) -> list[int]:
        """Return the ids of the names of copies and memsets."""
        return self._ids(MemoryKernelGroupingPattern)

    def get_kernel_launch_ids(self) -> list[int]:
        """Return the ids of the names of launch calls."""
        return self._ids(KERNEL_LAUNCH_CATEGORY_PATTERN)

    def get_cpu_event_cat_ids(self) -> list[int]:
        """Return the ids of the categories of operators, annotations and runtime calls."""
        return self._ids(CPU_EVENTS_CATEGORY_PATTERN)

    def get_gpu_kernel_cat_ids(self) -> list[int]:
        """Return the ids of the categories of device work."""
        return self._ids(KERNEL_CATEGORY_PATTERN)

    def get_events_mask(self, df: pd.DataFrame, events: Iterable[str]) -> pd.Series:
        """Return a mask of the rows with one of these names."""
        return df["name"].isin([self.sym_index[name] for name in events if name in self.sym_index])

    def get_operator_or_cuda_runtime_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return a mask of operators, annotations, and runtime or driver calls."""
        return df["cat"].isin([*self._ids(CPU_OP_CATEGORY_PATTERN), *self._ids(DEVICE_RUNTIME_CATEGORY_PATTERN)])

    def get_runtime_launch_events_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return a mask of the runtime and driver calls, of any name, that are linked to device work."""
        is_call = df["cat"].isin(self._ids(DEVICE_RUNTIME_CATEGORY_PATTERN))
        return is_call & (df["index_correlation"] >= 0)

    def get_operator_or_cuda_runtime_query(self) -> str:
        """Return the condition of `get_operator_or_cuda_runtime_mask` as a pandas query, as in HTA 0.5."""
        return f"cat in {[*self._ids(CPU_OP_CATEGORY_PATTERN), *self._ids(DEVICE_RUNTIME_CATEGORY_PATTERN)]}"

    def get_runtime_launch_events_query(self) -> str:
        """Return the condition of `get_runtime_launch_events_mask` as a pandas query, as in HTA 0.5."""
        return f"cat in {self._ids(DEVICE_RUNTIME_CATEGORY_PATTERN)} and index_correlation >= 0"

    def update_encoded_df(self, df: pd.DataFrame, old_symbol_table: TraceSymbolTable) -> None:
        """Replace another table's ids in `cat` and `name` with this table's ids, adding symbols if needed."""
        for column in ("cat", "name"):
            texts = old_symbol_table.get_symbol_names(df[column].unique())
            self.add_symbols(texts.values())
            df[column] = df[column].map({number: self.sym_index[text] for number, text in texts.items()})

    def ids_matching(self, pattern: str) -> list[int]:
        """Return the ids of the symbols that match a regular expression at their start."""
        compiled = re.compile(pattern)
        return [number for number, text in enumerate(self.sym_table) if compiled.match(text)]

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Replace each id in a column with its text, or with "" if the id is unknown."""
        trace_df[col] = self._texts(trace_df[col], shorten=False)

    def encode_df(self, df: pd.DataFrame) -> None:
        """Replace the text in `cat` and `name` with ids, adding symbols if needed."""
        for column in ("cat", "name"):
            self.add_symbols(df[column].unique())
            df[column] = df[column].map(self.sym_index)

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:  # noqa: FBT001, FBT002 -- HTA's
        """Replace the ids in `cat` and `name` with text, or write the text to new columns `s_cat` and `s_name`."""
        for column in ("cat", "name"):
            df[f"s_{column}" if create_new_columns else column] = self._texts(df[column], shorten=False)

    def _ids(self, group: GroupingPattern) -> list[int]:
        return list(self.get_symbol_ids(group).values())

    def _texts(self, numbers: pd.Series, *, shorten: bool) -> pd.Series:
        """Return the text for each id, or "" if the id is unknown; looks up each distinct id once."""
        known = self.get_symbol_names(numbers.unique())
        texts = {number: shorten_name(text) if shorten else text for number, text in known.items()}
        return numbers.map(texts).fillna("").astype(object)


def decode_symbol_id_to_symbol_name(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    use_shorten_name: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
) -> None:
    """Add `s_name`, optionally shortened, and `s_cat` to a frame."""
    df["s_cat"] = symbol_table._texts(df["cat"], shorten=False)  # noqa: SLF001 -- same module
    df["s_name"] = symbol_table._texts(df["name"], shorten=use_shorten_name)  # noqa: SLF001 -- same module
