"""Tables as CSV, which people open in spreadsheets: a text that would run there as a formula is made inert.

An apostrophe goes before a text that begins like a formula (`holotrace.visible_text.FORMULA_START`), headings included, unless
it is a number. Numbers are numbers, and stay as they are. What is not text, such as lists, is written as JSON.
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
    """Write rows as CSV; `escape_formulas=False` leaves texts exactly as they are, for programs."""
    texts = flattened(rows)
    if escape_formulas:
        texts = inert(texts)
    texts.write_csv(file, include_header=include_header)


def inert(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which no text begins like a formula."""
    text = selectors.string()
    acts = text.str.contains(FORMULA_START) & ~text.str.contains(PLAIN_NUMBER)
    safe = rows.with_columns(pl.when(acts).then(pl.lit("'") + text.as_expr()).otherwise(text.as_expr()).name.keep())
    return safe.rename({name: inert_cell(name) for name in safe.columns})


def flattened(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows without lists, structs and bytes, which CSV has no place for: the first as JSON, bytes in hex."""
    flat = rows.with_columns(selectors.binary().bin.encode("hex"), selectors.categorical().cast(pl.String))
    nested = [name for name, each in flat.schema.items() if each.is_nested()]
    return flat.with_columns(
        pl.Series(name, [None if each is None else json_text(each) for each in flat[name].to_list()], pl.String)
        for name in nested
    )


def json_text(value: object) -> str:
    """Return a value as JSON; what JSON does not know becomes text."""
    return json.dumps(value, default=str, ensure_ascii=False)
