"""Write docs/reference/schema.md from what the code declares: `python scripts/write_schema_page.py`."""

from __future__ import annotations

from pathlib import Path

from holotrace.schema import TABLES, Column
from holotrace.sql.views import VIEWS
from holotrace.store.parquet_tables import is_text, parquet_name

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "schema.md"

_BEGINNING = """\
# Stored tables and SQL views

This page lists what a [store](#a-store) holds and what [`holotrace sql`](../how-to/ask_in_sql.md) sees. Times are whole nanoseconds since the
Unix epoch, in UTC; lengths are whole nanoseconds; a column may be null unless it says otherwise. `event_index` is the position of an event in
the file of its rank: together with `rank` it joins all tables and views.

## Views

Each begins with `rank` (int32). Their rows follow the same rules as the analyses: what is device work, which call launched it, which
operator it belongs to, what a step is. So sums over a view are those that the commands print.
"""

_STORE = """\
## A store

`holotrace ingest TRACE... -o STORE` and `holotrace.write_store(trace, "STORE")` write one folder, here or behind a URL:

```
STORE/
  _holotrace_store.json            version
  _holotrace_ranks/
    0.json                   whether the rank is there or still awaited; the file it was read from (path, size, time, etag, hash)
  _holotrace_left_out/
    <hash>.json              a file that was found and left out, and why
  rank=0/
    _holotrace_rank.json           the same for this rank, with the header of the trace, the health of its file, and checksums
    events.parquet           one file for each table that has rows
    tracks.parquet
    …
  rank=1/
```

The files are plain Parquet (zstd, row groups of 262,144 rows, texts dictionary-encoded), and the folders are named as Hive partitions are:

```sql
-- DuckDB
SELECT rank, name, sum(duration_ns) FROM read_parquet('STORE/rank=*/events.parquet', hive_partitioning = true)
WHERE kind = 'kernel' GROUP BY ALL
```

```
pl.scan_parquet("STORE/rank=*/events.parquet", hive_partitioning=True)                      # Polars
pd.concat(pd.read_parquet(f"STORE/rank={rank}/events.parquet") for rank in range(8))        # pandas
spark.read.option("basePath", "STORE").parquet("STORE/rank=*/events.parquet")               # Spark
```

`events`, `tracks` and `strings` have a file for every rank; any other table only where it has rows. A rank is there once
`_holotrace_ranks/<rank>.json` says `"is_there": true`; a rank that is awaited was begun by a run that goes on or was interrupted. Stores are
versioned; another version of holotrace asks for `holotrace ingest` again instead of guessing.

Checksums are [XXH3](https://xxhash.com) of 64 bits, in hexadecimal: in `_holotrace_rank.json` those of the Parquet files, which holotrace compares
before it or DuckDB reads them, and at the beginning of each JSON file that of the bytes after `{"checksum": "…",`.

## Stored tables

In SQL these are `stored.events`, `stored.kernels` and so on, each with `rank` in front. Those other than `events`, `tracks`,
`strings` and `metadata` have a row only for events that carry such args.
"""


def schema_page() -> str:
    """Return the text of the page."""
    views = [_section(f"### {view.name}", f"One row: {view.meaning}.", _rows(view.columns)) for view in VIEWS.values()]
    tables = [_section(f"### stored.{name}", "", _stored_rows(name)) for name in TABLES]
    return "\n".join([_BEGINNING, *views, _STORE, *tables]).rstrip("\n") + "\n"


def _section(heading: str, text: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [heading, "", *([text, ""] if text else []), "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {column_type} | {meaning.replace('|', '/')} |" for name, column_type, meaning in rows]
    return "\n".join([*lines, ""])


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


if __name__ == "__main__":
    PAGE.write_text(schema_page(), encoding="utf-8")
