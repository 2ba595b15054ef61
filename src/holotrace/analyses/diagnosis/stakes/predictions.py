"""Predict what fixing the causes saves, by replaying the critical path's graph of a steady step without them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import covered_length, intersection, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import Case, Rule
from holotrace.analyses.diagnosis.stakes.claims import Claim
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.enrich.critical_path.what_if import Change, Remove, Replace, Replay, Scale, changed, unchanged, window_ns
from holotrace.enrich.job_graph.python_time import python_functions, with_python_time
from holotrace.enrich.job_graph.what_if.job_what_if import REPLAY_TOLERANCE
from holotrace.errors import HolotraceError, InvalidOptionError

_MOST_PREDICTED = 5
"""Only the costliest cases of a rank are replayed, because a replay visits the whole graph of a step."""

_MOST_SCALED = 2.0
"""If a case explains less than half as much in the replayed step as in the mean step, that step hardly shows what it costs."""


class _Step(NamedTuple):
    """A steady step that can be replayed: its graph, its Python functions, and the unchanged replay with its length."""

    graph: PathGraph
    functions: pl.DataFrame
    replay: Replay
    replayed_ns: int


class Predictions(NamedTuple):
    """What the replays of one step save.

    saved_ns  per case: how much shorter the replayed step of the rank gets without it, in ns
    end_ns    the end of the replayed step; None if no step was replayed
    """

    saved_ns: list[float | None]
    end_ns: int | None


def predictions(evidence: RankEvidence, cases: Sequence[tuple[Rule, Case, Claim]]) -> Predictions:
    """Replay a step of the rank without each case.

    The saved time is None for cases without a change, for all but the costliest cases, and if a replay without changes does not
    reproduce the step.
    """
    saved: list[float | None] = [None] * len(cases)
    rows = [row for row, (_, case, claim) in enumerate(cases) if case.change is not None and claim.claimed_ns > 0]
    chosen = sorted(rows, key=lambda row: -cases[row][2].claimed_ns)[:_MOST_PREDICTED]
    step = _step(evidence) if chosen else None
    if step is None:
        return Predictions(saved, None)
    for row in chosen:
        change = cases[row][1].change
        saved[row] = _saved_ns(step, change if isinstance(change, tuple) else (change,))
    return Predictions(saved, step.graph.graph.window_end_ns)


def in_mean_step(evidence: RankEvidence, case: Case, saved_ns: float, end_ns: int) -> float:
    """Return what the mean step saves without a case if the replayed step, which ends at `end_ns`, saves `saved_ns`.

    A cause may cost more in some steps than in others. So if the replay saves some share of the time that the case explains in the
    replayed step, the same share of its time in the mean step counts, but at most twice the saved time. What the replay saves beyond
    the explained time counts as it is.
    """
    replayed = evidence.steady.filter(pl.col("start_ns") < end_ns, pl.col("end_ns") >= end_ns)
    here_ns = covered_length(*intersection(case.explained, union_of(replayed)))
    if not here_ns:
        return saved_ns
    mean_ns = evidence.per_step(intersection(case.explained, evidence.step_windows))
    more = min(_MOST_SCALED, mean_ns / here_ns)
    return more * min(saved_ns, here_ns) + max(0.0, saved_ns - here_ns)


def _step(evidence: RankEvidence) -> _Step | None:
    """Return the last step but one; None if its replay differs from the measured length by more than 3 %."""
    with suppress(HolotraceError):
        graph = critical_path_graph(evidence.rank_trace)
        replay = unchanged(graph.graph)
        replayed_ns = window_ns(replay)
        measured_ns = graph.graph.window_end_ns - graph.graph.window_start_ns
        if abs(replayed_ns - measured_ns) <= REPLAY_TOLERANCE * measured_ns:
            return _Step(graph, python_functions(evidence.rank_trace, graph.graph), replay, replayed_ns)
    return None


def _saved_ns(step: _Step, changes: Sequence[Change | None]) -> float | None:
    """Return the time that the changes save together; None if they select nothing in this step."""
    replay = step.replay
    for change in changes:
        if change is not None:
            replay = _changed(step, replay, change) or replay
    return None if replay is step.replay else float(step.replayed_ns - window_ns(replay))


def _changed(step: _Step, replay: Replay, change: Change) -> Replay | None:
    """Apply a change, also to Python functions; None if it selects nothing."""
    after = None
    with suppress(InvalidOptionError):
        after = changed(step.graph, replay, change)
    if isinstance(change, Scale | Remove | Replace):
        after = with_python_time(step.graph.graph, after or replay, step.functions, change) or after
    return after
