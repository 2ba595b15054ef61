"""Tests of the communication_overlap figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.communication_overlap.compute import CommunicationOverlap, communication_overlap
from holotrace.analyses.communication_overlap.figure import plot_communication_overlap
from holotrace.units import percent_text
from jobs import gpu_job


def test_communication_overlap_splits_the_time_into_hidden_and_exposed() -> None:
    """On rank 0, a gemm hides 20 of 40 µs of an all-reduce; rank 1 does not communicate and has bars of length 0."""
    figure = plot_communication_overlap(communication_overlap(gpu_job().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {"hidden": [20, 0], "exposed": [20, 0]}
    assert figure.layout.xaxis.title.text == "communication time (µs)"
    assert list(figure.data[1].text) == ["50.0 % hidden", f"{percent_text(None)} hidden"]


def test_a_trace_without_communication_has_a_message_instead_of_axes() -> None:
    """Without communication, the figure shows a message, because empty axes would look like a failure."""
    table = pl.DataFrame(
        {"rank": [0], "communication_ns": [0], "overlap_ns": [0], "exposed_ns": [0], "overlap_fraction": [None]}
    )
    figure = plot_communication_overlap(CommunicationOverlap(table))
    assert figure.layout.annotations[0].text == "No rank communicates."
