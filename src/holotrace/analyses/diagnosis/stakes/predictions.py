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


class _Step(NamedTuple):
    """A steady step that can be replayed: its graph, its Python functions, and the unchanged replay with its length."""

    graph: PathGraph
    functions: pl.DataFrame
    replay: Replay
    replayed_ns: int


def predictions(evidence: RankEvidence, cases: Sequence[tuple[Rule, Case, Claim]]) -> list[float | None]:
    """Return how much shorter the mean step of the rank gets without each case, in ns, as a replay of one step predicts.

    A cause may cost more in some steps than in others. So if the replay saves some share of the time that the case explains in the
    replayed step, the same share of its time in the mean step counts; what the replay saves beyond that time counts as it is.
    The value is None for cases without a change, for all but the costliest cases, and if a replay without changes does not
    reproduce the step.
    """
    saved: list[float | None] = [None] * len(cases)
    rows = [row for row, (_, case, claim) in enumerate(cases) if case.change is not None and claim.claimed_ns > 0]
    chosen = sorted(rows, key=lambda row: -cases[row][2].claimed_ns)[:_MOST_PREDICTED]
    step = _step(evidence) if chosen else None
    if step is not None:
        for row in chosen:
            case = cases[row][1]
            saved_ns = _saved_ns(step, case.change if isinstance(case.change, tuple) else (case.change,))
            saved[row] = None if saved_ns is None else _in_mean_step(evidence, case, step, saved_ns)
    return saved


def _in_mean_step(evidence: RankEvidence, case: Case, step: _Step, saved_ns: float) -> float:
    """Return what the mean step saves if the replayed step saves `saved_ns`; unchanged if the case explains nothing in it."""
    end_ns = step.graph.graph.window_end_ns
    replayed = evidence.steady.filter(pl.col("start_ns") < end_ns, pl.col("end_ns") >= end_ns)
    here_ns = covered_length(*intersection(case.explained, union_of(replayed)))
    if not here_ns:
        return saved_ns
    mean_ns = evidence.per_step(intersection(case.explained, evidence.step_windows))
    return mean_ns * min(1.0, saved_ns / here_ns) + max(0.0, saved_ns - here_ns)


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
