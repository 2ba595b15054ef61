"""The verdict and the headline numbers of a run, and reasons to doubt them, for the overview and the list of runs."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.enrich.job.one_job import Wholeness, wholeness
from holotrace.store.trace import Trace
from holotrace.web.session.session import Scope, Session
from holotrace.whole_job.summary import DIAGNOSIS, losses, verdict_on

VERDICT_KEY = "verdict"


@dataclass(frozen=True)
class Headline:
    """The headline of a run, from its diagnosis.

    verdict        one sentence
    step_ns        mean duration of the steady steps; None without steps
    busy_fraction  fraction of the mean step in which a GPU is busy; in runs without steps, fraction of the recording in
                   which a GPU is busy; None without GPU work
    rank_count     number of readable ranks
    gpus           names of the GPU models
    doubts         reasons why the verdict may not cover the whole job, one sentence each
    """

    verdict: str
    step_ns: float | None
    busy_fraction: float | None
    rank_count: int
    gpus: tuple[str, ...]
    doubts: tuple[str, ...]


def headline(session: Session, scope: Scope) -> Headline:
    """Return the headline of a run."""
    row = _diagnosed(session, scope)
    trace = session.trace(scope)
    return Headline(
        verdict=verdict(session, scope)[0],
        step_ns=row["step_ns"] if row.get("step_count") else None,
        busy_fraction=row.get("busy_fraction"),
        rank_count=len(trace.ranks),
        gpus=_gpus(trace),
        doubts=doubts(session, scope),
    )


def verdict(session: Session, scope: Scope) -> tuple[str, pl.DataFrame]:
    """Return the verdict and the table `cpu_side` (see `Summary`), which has rows only if the job has no GPU work."""
    whole = _whole(session, scope)
    return session.remembered(
        scope, VERDICT_KEY, lambda trace: verdict_on(trace, session.results(scope, (DIAGNOSIS,)), whole)
    )


def covers_one_job(session: Session, scope: Scope) -> bool:
    """Return whether all traces are from PyTorch's profiler and from one job; if not, the numbers are meaningless."""
    return _whole(session, scope).has_diagnosis


def doubts(session: Session, scope: Scope) -> tuple[str, ...]:
    """Return sentences that say why the verdict may not cover the whole job."""
    return (*_whole(session, scope).sentences, *session.remembered(scope, "losses", losses))


def _whole(session: Session, scope: Scope) -> Wholeness:
    return session.remembered(scope, "wholeness", wholeness)


def _diagnosed(session: Session, scope: Scope) -> dict[str, float]:
    """Return the headline numbers of the diagnosis; empty if the data that the diagnosis needs were not recorded."""
    known = session.results(scope, (DIAGNOSIS,)).get(DIAGNOSIS)
    return known.headline.row(0, named=True) if isinstance(known, Diagnosis) and len(known.headline) else {}


def _gpus(trace: Trace) -> tuple[str, ...]:
    headers = (rank_trace.header for rank_trace in trace.ranks.values())
    names = {gpu.get("name") for header in headers for gpu in header.device_properties}
    return tuple(sorted(name for name in names if isinstance(name, str)))
