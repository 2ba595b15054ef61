"""Build JSON text for whole columns at once, because this is fast for many events."""

from __future__ import annotations

import json

import polars as pl

from holotrace.store.trace import RankTrace


def joined(*parts: pl.Expr | str) -> pl.Expr:
    """Concatenate strings and columns row by row."""
    return pl.concat_str([pl.lit(part) if isinstance(part, str) else part.cast(pl.String) for part in parts])


def decimal_text(value: pl.Expr, places: int) -> pl.Expr:
    """Return a whole number divided by `10**places` as exact decimal text."""
    sign = pl.when(value < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    whole, rest = (part.cast(pl.String) for part in (value.abs() // 10**places, value.abs() % 10**places))
    fraction = pl.when(rest != "0").then(pl.lit(".") + rest.str.zfill(places)).otherwise(pl.lit(""))
    return joined(sign, whole, fraction)


def track_texts(rank_trace: RankTrace) -> pl.DataFrame:
    """Return each `track_id`, with its `pid` and `tid` from the trace file as JSON texts."""
    tracks = rank_trace.table("tracks")
    return tracks.select("track_id").with_columns(
        pl.Series(name, _values(rank_trace, tracks[f"{source}_id"], tracks[f"{source}_text"]), dtype=pl.String)
        for name, source in (("pid", "process"), ("tid", "thread"))
    )


def _values(rank_trace: RankTrace, numbers: pl.Series, text_ids: pl.Series) -> list[str]:
    pairs = zip(numbers.to_list(), rank_trace.texts(text_ids).to_list(), strict=True)
    return [json.dumps(text if number is None else number) for number, text in pairs]
