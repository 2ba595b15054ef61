"""Finds the calls that a rank requests in the forward pass.

Such calls belong to layers. Calls that reduce gradients are requested later, during or after the backward pass.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, holding, union_of
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import steps, windows
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

BACKWARD = r"^(autograd::engine::evaluate_function|torch::autograd::)|Backward\d*$"
"""Operators of the backward pass, recorded by the autograd engine. DDP's hooks, which reduce gradients, run inside
these operators.

Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/engine.cpp
"""

_BEFORE_ALL = np.iinfo(np.int64).min
"""A time earlier than any time in a trace."""


def in_forward(rank_trace: RankTrace, asked_ns: pl.Series) -> pl.Series:
    """Return, for each call, whether the host requests it in a forward pass.

    A request is in a forward pass if it is made while no backward pass runs, and a backward pass begins later in the
    same step.

    Args:
        rank_trace: the rank.
        asked_ns: when the host requested each call, in any order; null if unknown.

    Returns:
        `in_forward`, bool. A request in a backward pass is false. Any other request is null if it is outside all steps
        or in a step without a backward pass.
    """
    passes, within = _backward(rank_trace), windows(rank_trace)
    if not len(passes[0]):
        return pl.repeat(None, len(asked_ns), dtype=pl.Boolean, eager=True).alias("in_forward")
    asked = asked_ns.fill_null(_BEFORE_ALL).to_numpy()
    in_backward = holding(passes, asked) >= 0
    begins, ends = within["start_ns"].to_numpy(), within["end_ns"].to_numpy()
    row = holding((begins, ends), asked)
    first, behind_last = np.searchsorted(passes[0], begins[row]), np.searchsorted(passes[0], ends[row])
    is_followed = np.searchsorted(passes[0], asked, side="right") < behind_last
    is_in_step = (row >= 0) & (first < behind_last) & (len(steps(rank_trace)) > 0)
    times = pl.DataFrame({"known": in_backward | is_in_step, "in_forward": is_followed & ~in_backward})
    return times.select(pl.when("known").then("in_forward").alias("in_forward")).to_series()


def _backward(rank_trace: RankTrace) -> Intervals:
    names = names_matching(rank_trace, BACKWARD)
    kinds = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
    ranges = event_ranges(rank_trace, kinds, ["start_ns", "end_ns"], names=names)
    return union_of(ranges)
