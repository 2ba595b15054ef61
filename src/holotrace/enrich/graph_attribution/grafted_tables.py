"""Extends tables about events: adds rows for the operators and modules that graphs replay."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.enrich.graph_attribution.attribution import references_of
from holotrace.enrich.graph_attribution.grafts import grafts, ids_of, may_graft
from holotrace.schema import TABLES
from holotrace.store.trace import RankTrace

_TEXT_TYPES = ("string", "json")


def described_events(rank_trace: RankTrace, table: str, columns: Sequence[str]) -> pl.DataFrame:
    """Return these columns of a table; add rows for the operators and modules that graphs replay.

    `columns` begins with `event_index`.
    """
    own = rank_trace.table(table, columns)
    if not may_graft(rank_trace) or grafts(rank_trace).nodes.is_empty():
        return own
    texts = [column.name for column in TABLES[table] if column.type in _TEXT_TYPES and column.name in columns]
    return pl.concat(
        [
            own,
            *(
                _of_reference(rank_trace, table, columns, texts, number)
                for number in range(len(references_of(rank_trace)))
            ),
        ]
    )


def _of_reference(
    rank_trace: RankTrace, table: str, columns: Sequence[str], texts: Sequence[str], number: int
) -> pl.DataFrame:
    nodes = grafts(rank_trace).nodes.filter(pl.col("reference") == number)
    reference = references_of(rank_trace)[number]
    written = reference.table(table, columns)
    ids = ids_of(rank_trace, reference)
    translated = written.with_columns(ids.gather(written[name]).alias(name) for name in texts)
    rows = nodes.select(pl.col("event_index").alias("graft_index"), pl.col("reference_index").alias("event_index"))
    joined = rows.join(translated, on="event_index", maintain_order="left")
    return joined.select(pl.col("graft_index").alias("event_index"), *columns[1:])
