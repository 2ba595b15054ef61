"""Tests of the kernel_sequences figure."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from holotrace.analyses.kernel_sequences.compute import kernel_sequences
from holotrace.analyses.kernel_sequences.figure import plot_kernel_sequences
from jobs import launching_job


def test_sequences_show_time_and_count() -> None:
    """A sequence launched once on each of two ranks shows 12 µs and "2 calls"; the hover text is escaped."""
    figure = plot_kernel_sequences(kernel_sequences(launching_job().build()))
    (bar,) = figure.data

    assert (list(bar.x), list(bar.text)) == ([12], ["2 calls"])
    assert [name.text for name in figure.layout.annotations] == ["aten::mm, 3 kernels"]
    assert "<script>" not in bar.customdata[0]


def test_a_long_operator_is_cut_with_an_ellipsis() -> None:
    """Long names are cut; the prefix that autograd adds to every backward operator is dropped."""
    prefix = "autograd::engine::evaluate_function: "
    result = kernel_sequences(launching_job().build())
    labels = []
    for name in (f"{prefix}AddmmBackward0", "a" * 60):
        renamed = replace(result, per_pattern=result.per_pattern.with_columns(operator=pl.lit(name)))
        labels += [label.text for label in plot_kernel_sequences(renamed).layout.annotations]

    assert labels == ["AddmmBackward0, 3 kernels", f"{'a' * 47}…, 3 kernels"]


def test_without_sequences_the_figure_says_so() -> None:
    """If no call launches `min_kernel_count` kernels, the figure shows a message."""
    (note,) = plot_kernel_sequences(kernel_sequences(launching_job().build(), min_kernel_count=4)).layout.annotations
    assert "launches the required number of kernels" in note.text
