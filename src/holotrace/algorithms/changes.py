"""Classifies the change of a count from one recording to another."""

from __future__ import annotations

import polars as pl

CHANGES = ("added", "deleted", "increased", "decreased", "unchanged")


def change_of_count(control: pl.Expr, test: pl.Expr) -> pl.Expr:
    """Return, for each row, how the count changed from `control` to `test`: one of `CHANGES`."""
    return (
        pl.when((control == 0) & (test > 0))
        .then(pl.lit("added"))
        .when((test == 0) & (control > 0))
        .then(pl.lit("deleted"))
        .when(test > control)
        .then(pl.lit("increased"))
        .when(test < control)
        .then(pl.lit("decreased"))
        .otherwise(pl.lit("unchanged"))
    )
