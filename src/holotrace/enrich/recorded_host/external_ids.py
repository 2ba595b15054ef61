"""Find, for each device row, the operator that has the same external id."""

from __future__ import annotations

import polars as pl

from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace


def same_external_id(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.Series:
    """Return, for each device row, the first operator in the file with the same external id."""
    kinds_wanted = pl.col("kind") == EventKind.CPU_OP
    events = rank_trace.table("events", ["event_index", "kind", "external_id"]).filter(pl.col("external_id") > 0)
    operators = events.filter(kinds_wanted).unique("external_id", keep="first", maintain_order=True)
    by_id = operators.select("external_id", pl.col("event_index").alias("operator_index"))
    ids = launched.join(events, on="event_index", how="left", maintain_order="left").select("external_id")
    return ids.join(by_id, on="external_id", how="left", maintain_order="left")["operator_index"]
