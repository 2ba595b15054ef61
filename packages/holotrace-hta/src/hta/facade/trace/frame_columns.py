"""Derived columns for frames that scripts build themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta.facade.trace.symbols import TraceSymbolTable

_NONE = -1
_WAITS_OF_DEVICES = ("Event Sync", "Context Sync")
"""Names of device events that have no stream."""

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")


def transform_correlation_to_index(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
) -> pd.DataFrame:
    """Add `index_correlation` and return the frame.

    For device work, the column contains the index of its launch call; for a launch call, the index of the first device
    event that it launched; for all other events, -1.
    """
    if "correlation" not in df.columns:
        return df
    is_linked = (df["correlation"] >= 0).to_numpy()
    waits = [number for text, number in symbol_table.get_sym_index().items() if text in _WAITS_OF_DEVICES]
    on_device = ((df["stream"] >= 0) | df["name"].isin(waits)).to_numpy()
    partners = np.full(len(df), _NONE, np.int64)
    for here, there in (
        (is_linked & on_device, is_linked & ~on_device),
        (is_linked & ~on_device, is_linked & on_device),
    ):
        others = df[there].drop_duplicates("correlation").set_index("correlation")["index"]
        partners[here] = df.loc[here, "correlation"].map(others).fillna(_NONE).to_numpy(np.int64)
    df["index_correlation"] = partners
    return df


def add_iteration(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Add `iteration`, the step of each event (-1 outside of steps), and return the steps: ts, dur, name, s_name, iter.

    Host events belong to the step in which they start; device work belongs to the step of its launch call. Requires
    `index_correlation`.
    """
    matches = {number: _STEP.match(text) for text, number in symbol_table.get_sym_index().items()}
    numbers = {number: int(match[1]) for number, match in matches.items() if match}
    steps = df.loc[df["name"].isin(list(numbers)) & (df["stream"] < 0), ["ts", "dur", "name"]].sort_values("ts")
    iterations = _step_at(df["ts"].to_numpy(), steps, [numbers[name] for name in steps["name"].tolist()])
    own = pd.Series(iterations, index=df["index"].to_numpy())
    is_launched = ((df["stream"] >= 0) & (df["index_correlation"] >= 0)).to_numpy()
    calls = df.loc[is_launched, "index_correlation"]
    iterations[is_launched] = calls.map(own[~own.index.duplicated()]).fillna(_NONE).to_numpy(np.int64)
    df["iteration"] = iterations
    named = steps["name"].map(symbol_table.get_sym_table_series())
    return steps.assign(s_name=named, iter=steps["name"].map(numbers))


def _step_at(times: npt.NDArray[np.float64], steps: pd.DataFrame, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the number of the last step that contains each time, or -1 if no step contains it."""
    steps_at = np.full(len(times), _NONE, np.int64)
    for start, duration, number in zip(steps["ts"], steps["dur"], numbers, strict=True):
        steps_at[(start <= times) & (times < start + duration)] = number
    return steps_at
