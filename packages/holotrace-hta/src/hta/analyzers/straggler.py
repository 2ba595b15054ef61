"""HTA's method for finding stragglers: compares start times of communication kernels, so it needs synchronized clocks.

`TraceAnalysis.get_potential_stragglers` compares waiting times instead, so it works without synchronized clocks. To
make it use HTA's method, pass `straggler_identification_impl=find_stragglers_with_late_start_comm_kernels`. Unlike
HTA's version, this function recognizes the kernels of NCCL 2.20 and later and of RCCL, includes step 0 and stream 0,
and accepts fewer ranks than `n_stragglers`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from holotrace.drawing.colors import LATE, ON_TIME
from holotrace.drawing.theme import template
from hta.facade.imports.elsewhere import names_of
from hta.facade.results.show import show
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_KERNELS = r"^(?:nccl(?:Dev)?Kernel|rcclKernel|hcom_)"
_STEP = r"ProfilerStep\s*#\s*(\d+)"
_OPERATION = ["stream", "iteration", "name"]
_METRIC = "normalized_start_time"
_WORDS = {0: "on time", 1: "among the last"}


def extract_iteration_info(trace: TraceView) -> pd.DataFrame:
    """Return one row for each rank and step of `analyzer.t`: rank, iter, ts, dur, end."""
    names = trace.symbol_table.get_sym_index()
    numbers = {number: int(step[1]) for text, number in names.items() if (step := re.match(_STEP, text))}
    steps = []
    for rank, frame in trace.get_all_traces().items():
        own = frame[frame["name"].isin(list(numbers)) & (frame["stream"] < 0)]
        known = own.assign(rank=rank, iter=own["name"].map(numbers), end=own["ts"] + own["dur"])
        steps.append(known[["rank", "iter", "ts", "dur", "end"]])
    return pd.concat(steps, ignore_index=True)


def find_stragglers_with_late_start_comm_kernels(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    n_stragglers: int = 2,
    visualize: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
) -> pd.Series:
    """For each rank, count the steps in which it is among the last to start a communication kernel.

    Chooses the pair of kernel name and stream whose durations differ most between ranks. In each step, compares when
    each rank starts its last kernel with that name on that stream.

    Args:
        df: events of all ranks, with the columns of `analyzer.t.get_trace(rank)` and a column `rank`.
        symbol_table: maps the ids in `name` to text.
        n_stragglers: how many ranks to count as late in each step, latest first; ranks that tie with the last of them
            are also counted.
        visualize: show a figure of the time at which the kernel starts on each rank.

    Returns:
        The counts, indexed by rank; empty if no communication kernel takes at least 1 % of the mean duration of a step.
    """
    kernels = _kernels_that_differ_most(_long_kernels(df, symbol_table))
    per_step = kernels.groupby("iteration")[_METRIC]
    order = per_step.rank(method="min", ascending=False)
    flagged = kernels.assign(is_straggler=(order <= max(1, n_stragglers)).astype(int))
    if visualize and len(flagged):
        show(_figure(flagged))
    return flagged.groupby("rank")["is_straggler"].sum()


def _figure(flagged: pd.DataFrame) -> go.Figure:
    """Draw when the chosen kernel starts on each rank, with one panel per step."""
    shown = flagged.assign(rank=flagged["rank"].astype(str), is_straggler=flagged["is_straggler"].map(_WORDS))
    return px.bar(
        shown,
        x="rank",
        y=_METRIC,
        color="is_straggler",
        color_discrete_map={_WORDS[0]: ON_TIME, _WORDS[1]: LATE},
        facet_col="iteration",
        facet_col_wrap=4,
        title="Which ranks start the chosen communication kernel last?",
        labels={_METRIC: "start (as a multiple of the mean step duration)", "iteration": "step", "is_straggler": ""},
        template=template("light"),
    )


def _long_kernels(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Return the communication kernels that take at least 1 % of the mean duration of a step.

    Adds the start and the duration of each kernel as columns, both divided by the mean duration of a step.
    """
    first = df["ts"].min()
    mean_step = ((df["ts"] + df["dur"]).max() - first) / max(1, df["iteration"].nunique())
    texts = symbol_table.get_sym_table_series()
    is_communication = df["name"].isin(texts.index[texts.str.contains(_KERNELS)])
    is_long = (df["dur"] >= 0.01 * mean_step) & (df["dur"] > 0)
    chosen: pd.DataFrame = df.loc[is_communication & is_long & (df["stream"] >= 0) & (df["iteration"] >= 0)]
    return chosen.assign(**{_METRIC: (chosen["ts"] - first) / mean_step, "duration": chosen["dur"] / mean_step})


def _kernels_that_differ_most(kernels: pd.DataFrame) -> pd.DataFrame:
    last = kernels.groupby(["rank", *_OPERATION], as_index=False).last()
    spread = last.groupby(_OPERATION)["duration"].std().groupby(["stream", "name"]).mean().dropna()
    if spread.empty:
        return last
    stream, name = spread.index[int(spread.to_numpy().argmax())]
    chosen: pd.DataFrame = last.loc[(last["stream"] == stream) & (last["name"] == name)]
    return chosen
