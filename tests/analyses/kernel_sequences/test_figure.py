"""The figure of kernel sequences."""

from __future__ import annotations

from holotrace.analyses.kernel_sequences.compute import kernel_sequences
from holotrace.analyses.kernel_sequences.figure import plot_kernel_sequences
from jobs import launching_job


def test_sequences_show_time_and_count() -> None:
    """One sequence, on two ranks: 12 µs of kernels, launched twice; the hover spells markup out."""
    (bar,) = plot_kernel_sequences(kernel_sequences(launching_job().build())).data

    assert (list(bar.x), list(bar.y), list(bar.text)) == ([12], ["1. aten::mm, 3 kernels"], ["2 calls"])
    assert "<script>" not in bar.customdata[0]


def test_without_sequences_the_figure_says_so() -> None:
    """No call launches so many."""
    (note,) = plot_kernel_sequences(kernel_sequences(launching_job().build(), min_kernel_count=4)).layout.annotations
    assert "launches so many" in note.text
