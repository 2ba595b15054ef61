"""Tests of sequences of kernels."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.kernels.kernel_sequences import sequence_texts, sequences
from holotrace.testing.builder import TraceBuilder

KERNELS = {"owner": pl.Int64, "name": pl.UInt32, "kernel_ns": pl.Int64}


def test_sequences_keep_the_order_of_the_rows():
    """Owner 5 has kernels with the names 1 and 2, in this order; owner 3 has one kernel with the name 1."""
    kernels = pl.DataFrame({"owner": [5, 3, 5], "name": [1, 1, 2], "kernel_ns": [10, 20, 30]}, schema=KERNELS)

    assert sequences(kernels, "owner").rows() == [(5, "1,2", 2, 40), (3, "1", 1, 20)]


def test_texts_are_the_names_joined():
    """A sequence's text joins its names, including repeated names; an empty column of sequences has no texts."""
    rank_trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build().ranks[0]
    gemm = rank_trace.table("events", ["name"])["name"].item()

    texts = sequence_texts(rank_trace, pl.Series("sequence", [f"{gemm},{gemm}", str(gemm)]), " -> ")

    assert texts.to_list() == ["gemm -> gemm", "gemm"]
    assert sequence_texts(rank_trace, pl.Series("sequence", [], dtype=pl.String), "|").to_list() == []
