"""Convert DuckDB results to frames; types that Polars does not support become text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("hugeint", "float", "double", "decimal"),
}
_LEAVES = _NUMBERS | {"varchar", "uuid"}
"""DuckDB types that frames support, also inside lists and structs."""

_ALONE = {
    "date",
    "time",
    "timestamp",
    "timestamp_s",
    "timestamp_ms",
    "timestamp_ns",
    "timestamp with time zone",
    "blob",
}
_LISTS = {"list", "array"}

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days since 1970: Python and Polars can print dates in this range; DuckDB's range is
larger."""

_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def representable(relation: Any) -> Any:  # noqa: ANN401 -- DuckDB is imported late
    """Return the relation, converting maps to lists of pairs, and other unsupported types to text."""
    casts = [_cast(number + 1, duckdb_type) for number, duckdb_type in enumerate(relation.types)]
    if not any(casts):
        return relation
    names = _distinct(relation.columns)
    return relation.project(
        ", ".join(f'{cast or f"#{number + 1}"} AS "{_quoted(names[number])}"' for number, cast in enumerate(casts))
    )


def as_frame(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pl.DataFrame:
    """Return a frame; columns with dates outside the years 1 to 9999 become text, because Polars cannot print them."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra, and slow to import

    names = _distinct(schema.names)
    renamed = pa.schema([column.with_name(name) for column, name in zip(schema, names, strict=True)])
    table = pa.Table.from_batches([batch.rename_columns(names) for batch in batches], schema=renamed)
    rows = pl.DataFrame(pl.from_arrow(table))
    return rows.with_columns(_far_as_text(rows[name]) for name in rows.columns if _is_far(rows[name]))


def _cast(number: int, duckdb_type: Any) -> str | None:  # noqa: ANN401 -- DuckDB is imported late
    if _is_supported(duckdb_type) or duckdb_type.id in _ALONE:
        return None
    if duckdb_type.id == "map" and all(_is_supported(inner) for _, inner in duckdb_type.children):
        return f"map_entries(#{number})"
    return f"CAST(#{number} AS VARCHAR)"


def _is_supported(duckdb_type: Any) -> bool:  # noqa: ANN401 -- DuckDB is imported late
    """Return whether a frame supports a type: a number, a string, or a list or struct of supported types."""
    if str(duckdb_type) in {"JSON", "GEOMETRY"}:  # these are not text, even if DuckDB gives them the `id` "varchar"
        return False
    if duckdb_type.id in _LISTS:
        return _is_supported(duckdb_type.children[0][1])
    if duckdb_type.id == "struct":
        return bool(duckdb_type.children) and all(_is_supported(inner) for _, inner in duckdb_type.children)
    return duckdb_type.id in _LEAVES


def _is_far(column: pl.Series) -> bool:
    bounds = _bounds(column.dtype)
    if bounds is None:
        return False
    ticks = column.to_physical().drop_nulls()
    return bool(((ticks < bounds[0]) | (ticks > bounds[1])).any())


def _far_as_text(column: pl.Series) -> pl.Series:
    """Format dates as text; a date out of range becomes its distance from 1970, such as `3000000 days from 1970`."""
    bounds = _bounds(column.dtype)
    unit = getattr(column.dtype, "time_unit", "days")
    first, last = bounds or (0, 0)
    ticks = column.to_physical()
    near = (ticks >= first) & (ticks <= last)
    printed = column.to_frame().select(pl.when(near).then(column)).to_series().cast(pl.String)
    distance = ticks.cast(pl.String) + f" {unit} from 1970"
    return printed.to_frame("near").select(pl.coalesce("near", distance.alias("far"))).to_series().alias(column.name)


def _bounds(dtype: pl.DataType) -> tuple[int, int] | None:
    if dtype == pl.Date:
        return _FIRST_DAY, _LAST_DAY
    if isinstance(dtype, pl.Datetime) and dtype.time_unit != "ns":  # times in ns are always within these years
        per_day = _PER_DAY[dtype.time_unit]
        return (_FIRST_DAY + 1) * per_day, _LAST_DAY * per_day
    return None


def _distinct(names: Sequence[str]) -> list[str]:
    """Append numbers to duplicate column names: `a`, `a_1`, `a_2`."""
    taken: set[str] = set()
    distinct = []
    for name in names:
        free, number = name, 0
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free)
        distinct.append(free)
    return distinct


def _quoted(name: str) -> str:
    return name.replace('"', '""')
