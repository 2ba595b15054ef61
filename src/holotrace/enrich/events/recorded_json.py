"""Parses shapes, types and values of inputs, which the profiler records as JSON."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from holotrace.store.trace import RankTrace


def recorded_list(text: str | None) -> list[Any]:
    """Return a recorded list; empty if the text is missing, damaged, nested too deeply, or not a list."""
    try:
        listed = json.loads(text) if text is not None else []
    except (ValueError, RecursionError):
        return []
    return listed if isinstance(listed, list) else []


def one_spacing(text: str) -> str:
    """Return JSON text on one line with standard spacing; return any other text unchanged."""
    try:
        return json.dumps(json.loads(text))
    except (ValueError, RecursionError):  # the file is damaged, but its text is more useful than an error
        return text


def texts_with_one_spacing(rank_trace: RankTrace, ids: pl.Series) -> pl.Series:
    """Return the text of each string id, with standard JSON spacing, so that equal values have equal texts."""
    distinct = ids.unique().drop_nulls()
    texts = [one_spacing(text) for text in rank_trace.texts(distinct)]
    return ids.replace_strict(distinct, pl.Series(texts, dtype=pl.String), default=None)
