"""Compute what a late rank costs: replay a few steps of all ranks as if this rank were as fast as its median peer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from holotrace.analyses.diagnosis.ranking import LEAST_COST_BETWEEN_RANKS, rank_of, weight
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job_graph.job_window import WindowOptions, job_window
from holotrace.enrich.job_graph.what_if.job_what_if import predicted
from holotrace.enrich.job_graph.what_if.peers_median import PeersMedian
from holotrace.enrich.steps.steps import windows
from holotrace.errors import HolotraceError

if TYPE_CHECKING:
    from holotrace.analyses.diagnosis.compute import Diagnosis
    from holotrace.execution.executor import Executor
    from holotrace.store.trace import Trace

_RULE = "late_rank"
_MOST_STEPS = 5
_MOST_EVENTS = 600_000
"""Jobs with more events are not replayed: joining the graphs of all ranks takes about 1 s for this many events."""


class _Replay(NamedTuple):
    """The measured length of a window over all ranks, and how much more time is saved if one more rank is fast."""

    window_ns: int
    saved_ns: int


def with_replays(result: Diagnosis, trace: Trace, executor: Executor) -> Diagnosis:
    """Replay steps to compute the stake of each late rank (the time that a fix saves), and add it to the diagnosis.

    A step is used only if a replay without any change differs from its measured length by at most 3 %. The stake of a
    late rank is the length of the mean step, multiplied by the share of the replayed time that is saved if this rank is
    fast. The share is computed over all replayed windows together, because a rank may be late in only some steps. (A
    window is longer than a step: it begins when the first rank begins the step, and ends when the last rank ends it.)
    The stake is at most the length of the mean step minus the sum of the stakes of all other findings.
    """
    late = result.per_finding.filter(pl.col("rule") == _RULE)["rank"].to_list()
    if not late or _event_count(trace) > _MOST_EVENTS:
        return result
    replays = _replays(trace, late, executor)
    if not replays:
        return result
    return replace(result, per_finding=_findings(result, replays), evidence=_evidence(result, replays))


def _event_count(trace: Trace) -> int:
    return sum(sum(rank_trace.event_counts().values()) for rank_trace in trace.ranks.values())


def _replays(trace: Trace, ranks: Sequence[int], executor: Executor) -> dict[int, list[_Replay]]:
    """Return, for each late rank, the time saved in a few replayed steps if this rank is as fast as its median peer.

    The result is empty if no step can be replayed.
    """
    replays: dict[int, list[_Replay]] = {}
    first = next(iter(trace.ranks.values()))
    numbers = windows(first)["window"].to_list()
    for number in numbers[-_MOST_STEPS:]:
        for rank, replay in _replays_of_step(trace, number, ranks, executor):
            replays.setdefault(rank, []).append(replay)
    return replays


def _replays_of_step(
    trace: Trace, number: int, ranks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, _Replay]]:
    """Make one rank after another as fast as its median peer, and yield how much more time each of them saves.

    The ranks of earlier replays stay fast, because one late rank may hide the delay of another.
    """
    try:
        window = job_window(trace, WindowOptions(instance=number, data_loading=tuple(DATA_LOADING)), executor)
    except HolotraceError:
        return
    chosen: list[int] = []
    before_ns = 0
    for rank in ranks:
        try:
            replay = predicted(window, [PeersMedian([*chosen, rank])], executor=executor)
        except HolotraceError:  # no peers, or a replay without changes is off by more than 3 %
            continue
        chosen.append(rank)
        saved_ns = replay.measured_ns - replay.predicted_ns
        yield rank, _Replay(replay.measured_ns, max(0, saved_ns - before_ns))
        before_ns = max(before_ns, saved_ns)


def _findings(result: Diagnosis, replays: Mapping[int, Sequence[_Replay]]) -> pl.DataFrame:
    """Return the findings with the new stakes, the costliest first.

    Only late ranks get a new stake, which is usually lower than their former one. The stakes of all other findings stay
    upper bounds. If late ranks were sorted by their new stakes, they would come too far down the list. A late rank is
    therefore sorted by its former stake or by twice its new stake, whichever is smaller. (If the new stake exceeds the
    former, the rank is sorted by its new stake.)

    If the job is hardly faster without a rank's delay, the delay is considered random, and the finding is left out.
    If the line of code that delays the rank is known, the finding is kept, with its former stake: the job may be hardly
    faster only because it would then wait for other late ranks.
    """
    rows = result.per_finding.to_dicts()
    bounds_ns = [row["stake_ns"] or 0 for row in rows]
    step_ns = result.headline["step_ns"][0]
    for row in rows:
        if row["rule"] == _RULE and row["rank"] in replays:
            others_ns = sum(other["stake_ns"] or 0 for other in rows if other is not row)
            stake = _stake(replays[row["rank"]], step_ns, max(0, step_ns - others_ns))
            is_clear = row["confidence"] != "low" and row["source_line"] is not None
            if not is_clear or (stake["stake_fraction"] or 0) >= LEAST_COST_BETWEEN_RANKS:
                row.update(stake)
    stakes_ns = [row["stake_ns"] or 0 for row in rows]
    places = [
        weight(row["rule"]) * max(ns, min(2 * ns, bound_ns))
        for row, ns, bound_ns in zip(rows, stakes_ns, bounds_ns, strict=True)
    ]
    for place in reversed(range(len(rows) - 1)):
        # A finding without a stake was sorted by the cost that is expected in steps after the recording. The table does
        # not contain this cost, so keep the finding ahead of all findings that come after it in the old order.
        if rows[place]["stake_ns"] is None:
            places[place] = max(places[place + 1 :])
    order = sorted(range(len(rows)), key=lambda place: (*rank_of(rows[place]), -places[place]))
    kept = [rows[place] for place in order if not _is_refuted(rows[place])]
    return pl.DataFrame(kept, result.per_finding.schema, orient="row")


def _is_refuted(row: Mapping[str, Any]) -> bool:
    """Return whether a late rank costs almost nothing, or has a cost that varies so much that chance may explain it.

    If the line of code that makes the rank late is known, the cost is not attributed to chance, even if the line is
    slow in only a few steps.
    """
    if row["rule"] != _RULE or row["basis"] != "what-if":
        return False
    is_clear = row["confidence"] != "low" and row["source_line"] is not None
    is_chance = not is_clear and (row["stake_error_ns"] or 0) >= (row["stake_ns"] or 0)
    return is_chance or (row["stake_fraction"] or 0) < LEAST_COST_BETWEEN_RANKS


def _stake(replays: Sequence[_Replay], step_ns: int, most_ns: int) -> dict[str, Any]:
    stake_ns = min(round(_saved_share(replays) * step_ns), most_ns)
    of_steps = [_saved_share([replay]) * step_ns for replay in replays]
    error_ns = round((max(of_steps) - min(of_steps)) / 2) if len(of_steps) > 1 else None
    fraction = stake_ns / step_ns if step_ns else None
    return {"stake_ns": stake_ns, "stake_fraction": fraction, "basis": "what-if", "stake_error_ns": error_ns}


def _saved_share(replays: Sequence[_Replay]) -> float:
    return sum(replay.saved_ns for replay in replays) / max(1, sum(replay.window_ns for replay in replays))


def _evidence(result: Diagnosis, replays: Mapping[int, Sequence[_Replay]]) -> pl.DataFrame:
    """Return the evidence; `saved_ns` of a late rank is the time per step that is saved in the replays of this rank."""
    step_ns = result.headline["step_ns"][0]
    known = {str(rank): round(_saved_share(of_rank) * step_ns) for rank, of_rank in replays.items()}
    replayed = pl.col("subject").replace_strict(known, default=None, return_dtype=pl.Int64)
    is_late = pl.col("rule") == _RULE
    return result.evidence.with_columns(
        pl.when(is_late).then(pl.coalesce(replayed, "saved_ns")).otherwise("saved_ns").alias("saved_ns")
    )
