"""Write tables as CSV, and prevent spreadsheets from running text as formulas.

An apostrophe is put before each string and heading that begins like a formula
(`holotrace.visible_text.FORMULA_START`), unless it is a number. Lists and other nested values are written as JSON.
"""

from __future__ import annotations

import json
from typing import IO

import polars as pl
from polars import selectors

from holotrace.visible_text import FORMULA_START, PLAIN_NUMBER, inert_cell


def write_csv(
    rows: pl.DataFrame, file: IO[bytes], *, include_header: bool = True, escape_formulas: bool = True
) -> None:
    """Write rows as CSV; `escape_formulas=False` leaves all text unchanged, for files that only programs read."""
    texts = flattened(rows)
    if escape_formulas:
        texts = inert(texts)
    texts.write_csv(file, include_header=include_header)


def inert(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with an apostrophe before each string that begins like a formula."""
    text = selectors.string()
    acts = text.str.contains(FORMULA_START) & ~text.str.contains(PLAIN_NUMBER)
    safe = rows.with_columns(pl.when(acts).then(pl.lit("'") + text.as_expr()).otherwise(text.as_expr()).name.keep())
    return safe.rename({name: inert_cell(name) for name in safe.columns})


def flattened(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with lists and structs as JSON and bytes in hexadecimal, since CSV supports none of them."""
    flat = rows.with_columns(selectors.binary().bin.encode("hex"), selectors.categorical().cast(pl.String))
    nested = [name for name, dtype in flat.schema.items() if dtype.is_nested()]
    return flat.with_columns(
        pl.Series(name, [None if value is None else json_text(value) for value in flat[name].to_list()], pl.String)
        for name in nested
    )


def json_text(value: object) -> str:
    """Return a value as JSON; values that JSON does not support become strings."""
    return json.dumps(value, default=str, ensure_ascii=False)
