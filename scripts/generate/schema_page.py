"""Generates `docs/reference/schema.md`, which lists the stored tables and SQL views."""

from __future__ import annotations

from markdown_table import table

from holotrace.schema import TABLES, Column
from holotrace.sql_queries.views import VIEWS
from holotrace.store.tables.parquet_tables import is_text, parquet_name

_BEGINNING = """\
# Stored tables and SQL views

This page lists the tables of a [store](#a-store) and the views of [`holotrace sql`](../how-to/ask_in_sql.md). Times are whole nanoseconds
since the Unix epoch, in UTC; durations are whole nanoseconds. A column may be null unless its meaning says otherwise. `event_index` is the position
of an event in the file of its rank. Join tables and views on `rank` and `event_index`.

## Views

The first column of each view is `rank` (int32). Views and analyses find device work, launches, operators and steps by the same rules, so
sums over a view equal the numbers that the commands print.
"""

_STORE = """\
## A store

`holotrace ingest TRACE... -o STORE` and `holotrace.write_store(trace, "STORE")` write one folder, which can be local or at a URL:

```
STORE/
  _holotrace_store.json      version
  _holotrace_ranks/
    0.json                   whether the rank is complete or still being written; its source file (path, size, time, etag, hash)
  _holotrace_left_out/
    <hash>.json              a skipped file, with the reason
  rank=0/
    _holotrace_rank.json     the header of the trace, the health of its file, and the rows, bytes and checksum of each table
    events.parquet           one file per table that has rows
    tracks.parquet
    …
  rank=1/
```

The files are plain Parquet (zstd, row groups of 262,144 rows, dictionary-encoded text), and the folders are named like Hive partitions:

```sql
-- DuckDB
SELECT rank, name, sum(duration_ns) FROM read_parquet('STORE/rank=*/events.parquet', hive_partitioning = true)
WHERE kind = 'kernel' GROUP BY ALL
```

```py
pl.scan_parquet("STORE/rank=*/events.parquet", hive_partitioning=True)  # Polars
pd.concat(pd.read_parquet(f"STORE/rank={rank}/events.parquet") for rank in range(8))  # pandas
spark.read.option("basePath", "STORE").parquet("STORE/rank=*/events.parquet")  # Spark
```

`events`, `tracks` and `strings` have a file for every rank; every other table has a file only for ranks that have rows in the table. A rank is complete if
`_holotrace_ranks/<rank>.json` contains `"is_there": true`. Otherwise the rank is still being written, or the writer was
interrupted. Each store has a format version. If holotrace cannot read that version, it asks you to run `holotrace ingest` again.

Checksums are 64-bit [XXH3](https://xxhash.com) in hexadecimal. `_holotrace_rank.json` contains the checksums of the Parquet files. Holotrace
checks them before it reads a file, and also before DuckDB reads the file for `holotrace sql`. Each JSON file begins with the checksum of the bytes after `{"checksum": "…",`.

## Stored tables

In SQL, these tables are named `stored.events`, `stored.kernels` and so on; the first column of each is `rank`. Tables other than `events`,
`tracks`, `strings` and `metadata` have rows only for events that have at least one of the table's args.
"""


def schema_page() -> str:
    """Return the text of the page."""
    views = [
        f"### {view.name}\n\nOne row is {view.meaning}.\n\n{_table(_rows(view.columns))}" for view in VIEWS.values()
    ]
    tables = [f"### stored.{name}\n\n{_table(_stored_rows(name))}" for name in TABLES]
    return "\n".join([_BEGINNING, *views, _STORE, *tables])


def _table(rows: list[tuple[str, str, str]]) -> str:
    return table(("column", "type", "meaning"), [(f"`{name}`", kind, meaning) for name, kind, meaning in rows])


def _rows(columns: tuple[Column, ...]) -> list[tuple[str, str, str]]:
    return [(column.name, column.type, _meaning(column)) for column in columns]


def _stored_rows(table: str) -> list[tuple[str, str, str]]:
    return [
        (parquet_name(table, column.name), _stored_type(table, column), _meaning(column)) for column in TABLES[table]
    ]


def _stored_type(table: str, column: Column) -> str:
    if column.type == "json":
        return "text (JSON)"
    return "text" if is_text(table, column) else column.type


def _meaning(column: Column) -> str:
    return f"{column.meaning} ({column.unit})" if column.unit else column.meaning
