"""Compress tables that a worker process sends to the process that combines all ranks."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple

import polars as pl


class PackedTable(NamedTuple):
    """A table as compressed Arrow."""

    content: bytes


def packed(table: pl.DataFrame) -> PackedTable:
    """Compress a table."""
    written = BytesIO()
    table.write_ipc(written, compression="zstd")
    return PackedTable(written.getvalue())


def unpacked(table: PackedTable) -> pl.DataFrame:
    """Return the table that was packed.

    >>> unpacked(packed(pl.DataFrame({"rank": [3]}))).rows()
    [(3,)]
    """
    return pl.read_ipc(BytesIO(table.content))


def reduced(record: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Implement `__reduce__` for a NamedTuple so that pickling compresses its tables."""
    fields = [packed(value) if isinstance(value, pl.DataFrame) else value for value in record]
    return _restored, (type(record), *fields)


def _restored(record_type: type[Any], *fields: object) -> object:
    return record_type(*(unpacked(field) if isinstance(field, PackedTable) else field for field in fields))
