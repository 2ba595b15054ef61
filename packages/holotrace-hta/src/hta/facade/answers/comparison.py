"""Comparisons of two traces with HTA's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from holotrace.analyses.compare_traces.compute import Device, compare_traces
from holotrace.store.trace import Trace
from hta.facade.results.times import microseconds
from hta.facade.trace.names import shorten_name

CHANGES = ("added", "deleted", "increased", "decreased", "unchanged")
_SUMS = ("control_event_count", "control_total_ns", "test_event_count", "test_total_ns")


def comparison_frame(
    traces: tuple[Trace, Trace],
    steps: tuple[list[int] | None, list[int] | None],
    labels: tuple[str, str],
    device: Device,
    *,
    use_short_name: bool,
) -> pd.DataFrame:
    """Return the count and summed duration of each name in both traces, and the differences.

    Names of the control trace come first, in alphabetical order, then names that only the test trace has.
    """
    result = compare_traces(*traces, control_steps=steps[0], test_steps=steps[1], device=device, exact_names=True)
    name = "short_name" if use_short_name else "name"
    table = _summed(result.per_name, use_short_name=use_short_name)
    control_counts, test_counts = table["control_event_count"].to_numpy(), table["test_event_count"].to_numpy()
    control, test = labels
    columns: dict[str, Any] = {
        f"{control}_counts": control_counts,
        f"{control}_total_duration": microseconds(table["control_total_ns"]),
        f"{test}_counts": test_counts,
        f"{test}_total_duration": microseconds(table["test_total_ns"]),
        "diff_counts": test_counts - control_counts,
        "diff_duration": microseconds(table["test_total_ns"] - table["control_total_ns"]),
    }
    signs = np.array(["-", "=", "+"], dtype=object)[np.sign(columns["diff_counts"]) + 1]
    return pd.DataFrame(
        {**columns, "counts_change_categories": signs}, index=pd.Index(table["name"].to_list(), name=name)
    )


def names_by_change(frame: pd.DataFrame, labels: tuple[str, str]) -> dict[str, list[str]]:
    """Return the names in a comparison, grouped by how their counts changed."""
    control, test = (frame[f"{label}_counts"] for label in labels)
    is_in_both = (control > 0) & (test > 0)
    chosen = (
        (control == 0) & (test > 0),
        (control > 0) & (test == 0),
        is_in_both & (test > control),
        is_in_both & (test < control),
        is_in_both & (test == control),
    )
    return {change: frame.index[rows].tolist() for change, rows in zip(CHANGES, chosen, strict=True)}


def _summed(per_name: pl.DataFrame, *, use_short_name: bool) -> pl.DataFrame:
    """Add up all rows that have the same name (or short name, if requested), even if their kinds of event differ."""
    known = per_name["name"].unique()
    keys = {name: shorten_name(name) if use_short_name else name for name in known}
    named = per_name.with_columns(pl.col("name").replace_strict(keys, return_dtype=pl.String))
    return named.group_by("name").agg(pl.col(_SUMS).sum()).sort(pl.col("control_event_count") == 0, "name")
