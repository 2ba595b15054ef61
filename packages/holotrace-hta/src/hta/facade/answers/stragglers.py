"""Finds stragglers; takes the arguments of `TraceAnalysis.get_potential_stragglers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pandas as pd

from holotrace.analyses.stragglers.compute import plan
from holotrace.analyses.stragglers.figure import plot_stragglers
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS
from holotrace.store.trace import Trace
from hta.facade.results.show import show
from hta.facade.trace.trace_view import TraceView

StragglerMethod: TypeAlias = Callable[..., pd.Series]
"""A function that returns a score for each rank; ranks with the highest scores become candidates.

It has four arguments: the events of the steps (a frame with a column `rank`), the symbol table, the number of ranks to
find, and whether to show figures.
"""


def potential_stragglers(
    view: TraceView,
    *,
    profiler_steps: Sequence[int] | None,
    num_candidates: int,
    visualize: bool,
    method: StragglerMethod | None,
) -> list[int]:
    """Return the ranks that other ranks wait for, the worst first; see `TraceAnalysis`."""
    count = max(1, num_candidates)
    chosen = _known_steps(view, profiler_steps)
    if method is None:
        return _by_waits(view.trace_by_steps, chosen, count, visualize=visualize)
    scores = method(_events_of_steps(view, chosen), view.symbol_table, count, visualize)
    best_first = scores.sort_values(ascending=False, kind="stable")
    return [int(rank) for rank in best_first.index[:count]]


def _by_waits(trace: Trace, steps: list[int] | None, count: int, *, visualize: bool) -> list[int]:
    result = plan(steps=steps, by_durations=True).run(trace, IN_PROCESS)
    if visualize:
        show(plot_stragglers(result))
    return result.candidates(count)


def _known_steps(view: TraceView, wanted: Sequence[int] | None) -> list[int] | None:
    """Return the given steps that exist, by default all steps; None if the trace has no steps."""
    available = sorted({step for rank in view.get_ranks() for step in view.get_iterations(rank)})
    chosen = available if wanted is None else [step for step in wanted if step in available]
    if wanted is not None and not chosen:
        raise InvalidOptionError.unknown(list(wanted), available, what="step")
    return chosen or None


def _events_of_steps(view: TraceView, steps: list[int] | None) -> pd.DataFrame:
    frames = view.get_all_traces()
    joined = pd.concat(list(frames.values()), keys=list(frames), names=["rank", "idx"]).reset_index()
    return joined if steps is None else joined.loc[joined["iteration"].isin(steps)]
