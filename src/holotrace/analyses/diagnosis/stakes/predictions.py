"""Predict how much time fixing a cause saves: replay the critical-path graph of a steady step without the cause."""

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
"""Only this many of a rank's costliest cases are replayed, because each replay goes through the whole graph of a step."""

_MOST_SCALED = 2.0
"""A saving in the replayed step is scaled up by at most this factor, because the replayed step may be atypical."""


class _Step(NamedTuple):
    """A steady step: its graph, its Python functions, a replay of it without changes, and the length of that replay."""

    graph: PathGraph
    functions: pl.DataFrame
    replay: Replay
    replayed_ns: int


class Predictions(NamedTuple):
    """The results of replaying one step without the cause of each case.

    saved_ns  per case: how much shorter the replayed step becomes without the cause of the case, in ns
    end_ns    the end of the replayed step; None if no step was replayed
    """

    saved_ns: list[float | None]
    end_ns: int | None


def predictions(evidence: RankEvidence, cases: Sequence[tuple[Rule, Case, Claim]]) -> Predictions:
    """For each of the rank's costliest cases, replay a step without the cause of the case.

    The saved time of a case is None if the case is not one of the costliest or has no `change`. All saved times
    are None if a replay without any change takes clearly more or less time than the recorded step.
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
    """Return a case's saving in the mean step, estimated from `saved_ns`, its saving in the replayed step.

    A cause may cost more in some steps than in others. Therefore, the saving is multiplied by a factor: the time that
    the case explains in the mean step, divided by the time that the case explains in the replayed step. This factor is
    at most 2. If the replay saves more time than the case explains in the replayed step, only the explained time is
    multiplied by this factor; the rest of the saving is added unchanged. The replayed step is the one that ends at
    `end_ns`.
    """
    replayed = evidence.steady.filter(pl.col("start_ns") < end_ns, pl.col("end_ns") >= end_ns)
    here_ns = covered_length(*intersection(case.explained, union_of(replayed)))
    if not here_ns:
        return saved_ns
    mean_ns = evidence.per_step(intersection(case.explained, evidence.step_windows))
    more = min(_MOST_SCALED, mean_ns / here_ns)
    return more * min(saved_ns, here_ns) + max(0.0, saved_ns - here_ns)


def _step(evidence: RankEvidence) -> _Step | None:
    """Return the second-to-last step; None if a replay without changes is over 3 % longer or shorter than the step."""
    with suppress(HolotraceError):
        graph = critical_path_graph(evidence.rank_trace)
        replay = unchanged(graph.graph)
        replayed_ns = window_ns(replay)
        measured_ns = graph.graph.window_end_ns - graph.graph.window_start_ns
        if abs(replayed_ns - measured_ns) <= REPLAY_TOLERANCE * measured_ns:
            return _Step(graph, python_functions(evidence.rank_trace, graph.graph), replay, replayed_ns)
    return None


def _saved_ns(step: _Step, changes: Sequence[Change | None]) -> float | None:
    """Return the time that all changes together save; None if no change selects an event in this step."""
    replay = step.replay
    for change in changes:
        if change is not None:
            replay = _changed(step, replay, change) or replay
    return None if replay is step.replay else float(step.replayed_ns - window_ns(replay))


def _changed(step: _Step, replay: Replay, change: Change) -> Replay | None:
    """Apply a change to the events and Python functions of the step; return None if the change selects none."""
    after = None
    with suppress(InvalidOptionError):
        after = changed(step.graph, replay, change)
    if isinstance(change, Scale | Remove | Replace):
        after = with_python_time(step.graph.graph, after or replay, step.functions, change) or after
    return after
