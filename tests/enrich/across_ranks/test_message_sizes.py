"""Tests of message sizes and bus factors of collectives."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.across_ranks.message_sizes import bus_factor, message_bytes


@pytest.mark.parametrize(
    ("family", "in_bytes", "out_bytes", "size", "factor"),
    [
        ("all_reduce", 100, 100, 100, 1.5),
        ("all_gather", 25, 100, 100, 0.75),
        ("all_gather", 25, None, 100, 0.75),
        ("reduce_scatter", 100, 25, 100, 0.75),
        ("reduce_scatter", None, 25, 100, 0.75),
        ("all_to_all", 100, 100, 100, 0.75),
        ("gather", 25, 100, 100, 0.75),
        ("scatter", 100, 25, 100, 0.75),
        ("broadcast", 100, 100, 100, 1.0),
        ("reduce", 100, 100, 100, 1.0),
        ("send", 100, None, 100, 1.0),
        ("recv", None, 100, 100, 1.0),
        ("barrier", 1, 1, None, None),
        ("unknown", 100, 100, 100, None),
        ("all_reduce", None, None, None, 1.5),
    ],
)
def test_sizes_and_factors_on_four_ranks(family, in_bytes, out_bytes, size, factor):
    """Message sizes and bus factors on four ranks equal those of nccl-tests."""
    schema = {"family": pl.String, "in_bytes": pl.Int64, "out_bytes": pl.Int64, "group_size": pl.Int64}
    call = pl.DataFrame([(family, in_bytes, out_bytes, 4)], schema, orient="row")

    assert call.select(message_bytes(), bus_factor()).row(0) == (size, factor)
